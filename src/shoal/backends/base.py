# SPDX-License-Identifier: Apache-2.0
"""What execution asks of a backend: devices, compiled phases, and runs that come back with a reason.

A backend has a part of a graph as a shard on a device of its own kind, compiles the phases of a program, and runs them:
all devices at once, with what they send one another inside.  Its objects have the names below; nothing else of it is
known outside `shoal.backends`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from shoal.graph import Graph
from shoal.program import Field, Phase, Program

if TYPE_CHECKING:
    from shoal.config import DeviceSpec
    from shoal.strategies.communication import Schedule
    from shoal.strategies.memory import Allowance, Scheme
    from shoal.strategies.subgraph import Subgraph

#: Names of `RunConfig.stealing` under which devices give vertices of a superstep's frontier to one another,
DEALS = ("frontier", "both")
#: and hand over their parts for as long as there is little to do.
REGROUPS = ("ownership", "both")

Types = tuple[np.dtype, np.dtype, np.dtype | None]  # of vertex ids, edge offsets and weights


class Reason(IntEnum):
    """Why compiled loops came back; the larger, the more pressing."""

    RUNNING = 0
    DONE = 1
    BUDGET = 2
    NEEDS_MEMORY = 3
    STOPPED = 4
    OVERFLOW = 5


@dataclass
class Position:
    """Where a phase stands between two supersteps, whatever its devices; vertices by the graph's ids."""

    superstep: int
    num_visited: int
    direction: int
    has_pulled: bool
    frontier: np.ndarray | None  # all vertices, if None
    kept: list[np.ndarray] = field(default_factory=list)  # frontiers before this one that a replay will need


@dataclass
class Capture:
    """A run between two supersteps as one process sees it: what its own devices' vertices have, and where it stands."""

    ids: np.ndarray | None  # of the vertices; all of them in order, if None
    fields: Iterable[tuple[str, np.ndarray]]  # of vertices; each is made when it is asked for
    scalars: dict[str, np.ndarray]
    position: Position


class Ranks(Protocol):
    """The processes of a job, as one of them sees them."""

    rank: int
    size: int

    def gather_text(self, text: str, *, is_opening: bool = False) -> list[str]:
        """Return the texts of all of them; each must ask, at an opening as late as it likes."""

    def do(self, work: Callable[[], Any]) -> Any:
        """Return what some work returns that takes long, and let the others know meanwhile that this one is alive."""


class Alone:
    """A process that has no others."""

    rank, size = 0, 1

    def gather_text(self, text: str, *, is_opening: bool = False) -> list[str]:
        """Return the text."""
        return [text]

    def do(self, work: Callable[[], Any]) -> Any:
        """Return what the work returns."""
        return work()


class Regrouping(NamedTuple):
    """From a superstep of a phase on each device's part is with another device, or with itself."""

    superstep: int
    hosts: list[int]
    seconds: float  # that handing over took


class Device(Protocol):
    """Something that has memory and runs loops."""

    name: str
    is_here: bool  # not in another process

    def threads_for(self, graph: Graph) -> int:
        """Return the number of threads that pays for this graph."""

    def allocate(self, shape: int | tuple[int, ...], dtype: np.dtype, fill: Any) -> Any:
        """Return a new array filled with one value."""

    def place(self, graph: Graph, part: Subgraph | None = None) -> Shard:
        """Return the graph, or the device's part of it, as a shard."""

    def check_output(self) -> None:
        """Refuse to leave results here where their user could not work with them."""

    def upload(self, array: np.ndarray) -> Any:
        """Return an array of the host as one of the device."""

    def make_trees(self, graph: Graph) -> Trees:
        """Return room for trees of a graph's vertices."""


class Trees(Protocol):
    """Trees of vertices that a device joins: labels are pointers, and a root has the smallest id of its tree."""

    label: Any
    portion_edges: int  # that are worth a call of `hook_rows`
    packet_labels: int  # that are worth a message

    def begin(self) -> None:
        """Let every vertex be a tree."""

    def hook_rows(self, begin: int, end: int) -> None:
        """Join both ends of the edges of some rows."""

    def hook_labels(self, begin: int, labels: Any) -> None:
        """Join the vertices from ``begin`` on with their labels on another device."""

    def compress(self) -> None:
        """Label every vertex with its root."""


class Shard(Protocol):
    """A device's part of a graph."""

    graph: Graph
    part: Subgraph | None

    @property
    def device(self) -> Device:
        """Where it is."""

    @property
    def num_local(self) -> int:
        """Vertices that the device has: its own and copies."""


class Code(Protocol):
    """A compiled phase."""

    @property
    def uses_in_edges(self) -> bool:
        """Whether it looks at incoming edges."""

    @property
    def is_open(self) -> bool:
        """Whether only the run shows how much room it needs."""


class Run(Protocol):
    """One phase under way on all devices."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do at all."""

    def resume(self) -> Reason:
        """Run until the loops come back, and return why."""

    def grow(self) -> None:
        """Make room for what the next superstep needs."""

    def take_rows(self) -> list[list[np.ndarray]]:
        """Hand over the rows of the trace since the last time, by device."""

    @property
    def thefts(self) -> np.ndarray:
        """The edges that each device visited in the place of another, by their owner and who visited them."""

    @property
    def regroupings(self) -> list[Regrouping]:
        """When devices handed over their parts, or took them back."""

    @property
    def peaks(self) -> list[int]:
        """The most bytes that each device's buffers took."""

    @property
    def room_factor(self) -> float:
        """The most room that an output got on a device, in parts of its vertices."""

    @property
    def traffic(self) -> Callable[[], np.ndarray] | None:
        """What tells, when asked, the bytes from each of several devices to each; None where they are not counted."""


class CapturedRun(Run, Protocol):
    """A run that comes back between supersteps when it is asked to."""

    def come_back(self, num_supersteps: int, clock: int | None) -> None:
        """Come back after so many supersteps, or at a clock in nanoseconds, with `Reason.BUDGET`; asked each time."""

    def come_back_now(self) -> None:
        """Come back after the superstep under way; asked from anywhere."""


class Session(Protocol):
    """A program's state on its devices, from its first phase to its last."""

    def begin_phase(self, number: int, frontier: np.ndarray | None, allowances: Sequence[Allowance]) -> Run:
        """Return a run of one phase, ready to begin; None is the frontier of all vertices."""

    def skip_phase(self) -> None:
        """Note that a phase had nothing to do, and so left nothing to replay."""

    def end(self, state: dict[str, Any]) -> None:
        """Put what the devices have into the whole state; keep buffers for the next run."""

    def hand_over(self, state: dict[str, Any]) -> None:
        """End, with the device's own arrays as the fields of vertices in the state; scalars are on the host."""


class CapturingSession(Session, Protocol):
    """A session that can tell where a run stands, and begin there."""

    def begin_phase(
        self, number: int, frontier: np.ndarray | None, allowances: Sequence[Allowance],
        position: Position | None = None,
    ) -> Run:  # fmt: skip
        """Return a run of one phase, ready to begin, or with a position to go on."""

    def capture(self, run: Any) -> Capture:
        """Return what is needed to go on with a run that came back between two supersteps."""


class Backend(Protocol):
    """Devices of one kind."""

    kind: str
    captures: bool  # its sessions can tell where a run stands, and begin there
    least_shared_edges: int  # of a graph with fewer, one device does all sooner without supersteps than several do

    @property
    def ranks(self) -> Ranks:
        """The processes that run together."""

    def make_devices(self, spec: DeviceSpec) -> Sequence[Device]:
        """Return the devices that are asked for."""

    def load(
        self, program: Program, phase: Phase, types: Types, direction: str, duplication: str | None,
        load_balance: str, priority: str | None, stealing: str = "none",
    ) -> Code:  # fmt: skip
        """Compile a phase for the types of a graph, or find it compiled.

        With ``duplication`` for several devices, which with ``stealing`` visit edges for one another; with
        ``priority`` (``"soft"`` or ``"none"``) without supersteps.
        """

    def begin(
        self, shards: Sequence[Any], fields: dict[str, Field], phases: Sequence[tuple[Phase, Any]],
        schedule: Schedule | None, state: dict[str, Any], knobs: tuple[float, float], title: str, scheme: Scheme,
    ) -> Session:  # fmt: skip
        """Put a program's state on the devices of some shards; with a schedule there are several of them."""


def graph_types(graph: Graph) -> Types:
    """Return the element types that code is compiled for."""
    return graph.indices.dtype, graph.indptr.dtype, None if graph.weights is None else graph.weights.dtype
