# SPDX-License-Identifier: Apache-2.0
"""Compiled phases: the kernel of each is written once for a recording and the types of a graph, and built on demand."""

from __future__ import annotations

import functools
import hashlib
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from shoal.backends.base import Types
from shoal.backends.cuda.compiler import DeviceFunction, build
from shoal.backends.cuda.exports import Export
from shoal.backends.cuda.generator import PhaseSource, blocks_per_processor, write_phase, write_worklist
from shoal.backends.loops.recordings import recording_key, types_used
from shoal.errors import ArgumentError, ProgramError
from shoal.operators import Recording, check_phase, force_direction, mark_outputs, record
from shoal.program import Phase, Program, field_dtype

#: Operators for which there is no kernel, and what it would need.
NOT_ON_GPU = {
    "tally": "a table of keys for each vertex, as long as its list of neighbours",
    "intersect": "a mark of every vertex for each group of threads that is at one",
}

_phases: dict[Any, LoadedPhase] = {}
_lock = threading.RLock()  # Numba compiles one function at a time


@dataclass(frozen=True, eq=False)
class LoadedPhase:
    """A phase as source; `cubin` compiles it for an architecture."""

    source: PhaseSource
    title: str
    write: Callable[..., PhaseSource]  # the same phase again, with options of `write_phase`

    @property
    def uses_in_edges(self) -> bool:
        """Whether it looks at incoming edges."""
        return self.source.uses_in_edges

    @property
    def is_open(self) -> bool:
        """Whether only the run shows how much room it needs."""
        return self.source.flow.is_open and not self.source.is_asynchronous

    @functools.cached_property
    def growing(self) -> LoadedPhase:
        """The same phase for a run that begins with less room than its outputs may get.

        It is a kernel of its own: one whose queue is long enough from the begin asks nothing that costs time.
        """
        return LoadedPhase(self.write(grows=True), self.title, self.write)

    @property
    def variants(self) -> list[LoadedPhase]:
        """All that runs of the phase may ask for."""
        may_grow = self.source.flow.grows and not self.source.is_asynchronous
        return [self, self.growing] if may_grow else [self]

    def functions(self) -> list[DeviceFunction]:
        """Return the functions in Python that the kernel calls."""
        module = self.source.module
        return [DeviceFunction(f"{module}\0{export}", functools.partial(_compile, module, export))
                for export in self.source.exports]  # fmt: skip

    def cubin(self, arch: str) -> bytes:
        """Return the machine code, compiled now or found on disk."""
        with _lock:
            return build(self.source.text, arch, self.functions(), caches_in_l1=self.source.caches_in_l1)


def load_phase(
    program: Program, phase: Phase, types: Types, direction: str, duplication: str | None = None,
    load_balance: str = "auto", priority: str | None = None, stealing: str = "none",
) -> LoadedPhase:  # fmt: skip
    """Write a phase for the types of a graph, or find it written; with ``duplication`` for several devices.

    With ``stealing`` these visit edges for one another, where the rules allow it.  With a ``priority``, soft or none,
    it is one without supersteps.
    """
    recording = record(program, phase.step)
    force_direction(recording, direction if priority is None else "push")
    check_phase(recording, phase)
    _check_operators(recording)
    if duplication is not None:
        mark_outputs(recording)
    types = types_used(recording, types)
    num_blocks = blocks_per_processor(recording, phase, duplication)
    if duplication is None:
        stealing = "none"  # from whom
    key = (recording_key(recording, phase), types, duplication, load_balance, num_blocks, priority, stealing)
    loaded = _phases.get(key)
    if loaded is None:
        dtypes = {name: field_dtype(declared, types[0]) for name, declared in recording.fields.items()}
        title = type(program).__name__
        options: dict[str, Any] = {"title": title, "duplication": duplication, "load_balance": load_balance}
        write: Callable[..., PhaseSource] = write_phase
        if priority is not None:
            write, options["has_priority"] = write_worklist, priority == "soft"
        else:
            options["stealing"] = stealing
        write = functools.partial(write, recording, phase, dtypes, types, **options)
        loaded = _phases[key] = LoadedPhase(write(), title, write)
    return loaded


def _check_operators(recording: Recording) -> None:
    """Refuse a step with an operator for which there is no kernel."""
    for operator in recording.operators:
        if operator.kind in NOT_ON_GPU:
            raise ArgumentError(
                f"devices='cuda' is not possible: {recording.title} has the operator {operator.kind}, which needs "
                f"{NOT_ON_GPU[operator.kind]}, and there is no such kernel for a GPU; allowed: cpu"
            )


@functools.cache
def _module(text: str) -> dict[str, Any]:
    """Run the text of a module of rules."""
    name = f"shoal_rules_{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    namespace: dict[str, Any] = {"__name__": name}
    exec(compile(text, f"<{name}>", "exec"), namespace)
    return namespace


def _compile(module: str, export: Export, arch: str) -> bytes:
    """Return the LTO-IR of one function."""
    from numba import cuda
    from numba.core import errors
    from numba.cuda.core import errors as cuda_errors

    number = int(arch.removeprefix("sm_"))
    try:
        code, _ = cuda.compile(
            _module(module)[export.name], export.numba_signature(), abi="c", abi_info={"abi_name": export.name},
            cc=divmod(number, 10), output="ltoir", forceinline=True,
        )  # fmt: skip
    except (errors.NumbaError, cuda_errors.NumbaError) as error:  # types are Numba's own, if it is there
        raise ProgramError(f"{export.title} cannot be compiled for a GPU: {_reason(error)}") from None
    except KeyError as error:  # a function of NumPy that Numba knows on a CPU only
        raise ProgramError(f"{export.title} cannot be compiled for a GPU: there is no {error} there; "
                           "take the function of math, if there is one") from None  # fmt: skip
    return code


def _reason(error: Exception) -> str:
    """Return the line of Numba's message that says what is wrong."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = [line for line in lines if "Error" in line or "atomic" in line]
    return (told or lines or [type(error).__name__])[-1]
