# SPDX-License-Identifier: Apache-2.0
"""Room on a GPU: what a program needs there against what there is, in one error if that is too little.

CuPy keeps memory that arrays have let go of for the next ones, so what its pool has free counts as available.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from shoal.arrays import GraphSizes
from shoal.backends.cuda.device import Shard
from shoal.backends.cuda.generator import PhaseSource
from shoal.backends.cuda.needs import MAX_GPUS, Need, count_gpus_for, need_of, need_of_part, with_exchanges
from shoal.errors import OutOfMemoryError
from shoal.machine import format_bytes, import_cupy
from shoal.program import Phase

if TYPE_CHECKING:
    from shoal.strategies.memory import Scheme

Made = TypeVar("Made")


class Room:
    """A program's need on the GPU of a shard, which is the current one while it is asked."""

    def __init__(
        self, title: str, shard: Shard, phases: Sequence[tuple[Phase, PhaseSource]], state_bytes: int,
        scheme: Scheme | None = None,
    ) -> None:  # fmt: skip
        self.title, self.shard, self.phases, self.state_bytes, self.scheme = title, shard, phases, state_bytes, scheme
        self.cupy: Any = import_cupy()
        self.sizes = GraphSizes.of(shard.graph)  # of the whole graph, even if the shard is a part

    @cached_property
    def need(self) -> Need:
        """What the program needs on the device, where the room of its outputs grows as far as it may."""
        return self._need(at_first=False)

    @cached_property
    def first_need(self) -> Need:
        """What it needs to begin, at least."""
        return self._need(at_first=True)

    def _need(self, *, at_first: bool) -> Need:
        part = self.shard.part
        if part is None:
            return need_of(self.sizes, self.state_bytes, self.phases, self.scheme, at_first=at_first)
        sizes = replace(self.sizes, num_vertices=part.num_local, num_edges=part.num_edges)
        return with_exchanges(need_of(sizes, self.state_bytes, self.phases), sizes)

    @property
    def pool(self) -> Any:
        """Where CuPy has its memory from."""
        return self.cupy.get_default_memory_pool()

    def check(self) -> None:
        """Refuse a run that cannot fit, before anything is allocated for it."""
        needed = self.first_need.lasting_bytes
        # Asking the driver takes longer than a short run; the pool alone has enough after the first.
        if needed - self.shard.resident_bytes > self.pool.free_bytes() and needed > self.available_bytes:
            raise self._refusal()

    def fit(self, make: Callable[[], Made]) -> Made:
        """Return what ``make`` allocates; if that does not fit, it is tried again without what the pool holds back."""
        does_not_fit = self.cupy.cuda.memory.OutOfMemoryError
        try:
            return make()
        except does_not_fit:
            pass  # only behind this line the arrays that were made before the one that failed are gone
        self.pool.free_all_blocks()
        try:
            return make()
        except does_not_fit as error:
            detail = f" ({error})"
        raise self._refusal(detail)

    def has_spare(self, num_bytes: int) -> bool:
        """Whether there is room for so many bytes beside the program."""
        return self.need.total_bytes + num_bytes <= self.available_bytes

    @property
    def available_bytes(self) -> int:
        """What the program may have: what is free, what the pool has free, and what the graph has there already."""
        pool = self.pool
        available = self.cupy.cuda.runtime.memGetInfo()[0] + pool.free_bytes()
        if pool.get_limit():
            available = min(available, pool.get_limit() - pool.used_bytes())
        return available + self.shard.resident_bytes

    def _refusal(self, detail: str = "") -> OutOfMemoryError:
        need, available = self.need, self.available_bytes
        parts = {"the graph": need.graph_bytes, "the state": need.state_bytes, "buffers": need.buffer_bytes,
                 "others": need.other_bytes}  # fmt: skip
        listed = ", ".join(f"{name} {format_bytes(num_bytes)}" for name, num_bytes in parts.items())
        total = self.cupy.cuda.runtime.memGetInfo()[1]
        return OutOfMemoryError(
            f"{self.title}: device {self.shard.device.name} needs {format_bytes(need.total_bytes)} ({listed}); "
            f"{format_bytes(available)} of its {format_bytes(total)} are available{detail}; {self._remedy(available)}"
        )

    def _remedy(self, available: int) -> str:
        """Say how many such GPUs would do."""
        count = count_gpus_for(self.sizes, self.state_bytes, self.phases, available, self.scheme)
        if count is not None:
            return f"{count} such GPUs would have room, with all vertices on each and the edges divided evenly"
        least = need_of_part(self.sizes, self.state_bytes, self.phases, MAX_GPUS, self.scheme).total_bytes
        return f"no number of such GPUs would do with all vertices on each, which take {format_bytes(least)} alone"
