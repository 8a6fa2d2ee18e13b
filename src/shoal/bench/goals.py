# SPDX-License-Identifier: Apache-2.0
"""What shoal is to reach, as times measured elsewhere together with the other libraries' times there.

``MEASURED`` holds medians in ms on another machine, 2 cores, 2 threads, all libraries on the same graphs in one run:
GAPBS (C++ and OpenMP, the reference for a CPU), four Python libraries, and the goal set from them.  Times of two
machines, or of one machine in two different hours, cannot be compared; ratios between libraries can.  So a goal is
carried over by the libraries that were measured in both places: with ``here`` and ``there`` their medians for the same
graph and kernel,

    scale = median over the libraries of here / there        goal here = scale * goal there

The median keeps one library that is run by a better or worse method, or another version, from moving the goal.  Most of
these libraries use one thread and lose less than a program of two threads when other processes take a core away: then
(the table warns of it) the goal comes out too low.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass

SOURCE = "measured elsewhere, 2 cores, medians in ms"
GOAL, GAPBS = "goal", "gapbs"
_COLUMNS = (GAPBS, "graphblas", "networkit", "igraph", "scipy", GOAL)

_TABLE: dict[tuple[str, str], tuple[float | None, ...]] = {
    ("kron20", "bfs"): (16, 58, 317, 542, 140, 16),
    ("kron20", "sssp"): (130, 500, 1_052, 2_355, 864, 130),
    ("kron20", "pagerank"): (572, 480, 2_400, None, 880, 480),
    ("kron20", "cc"): (30, 168, 249, 581, 1_302, 30),
    ("kron20", "bc"): (900, 706, None, 4_245, None, 700),
    ("kron22", "bfs"): (80, 303, 1_857, 2_728, 839, 80),
    ("kron22", "sssp"): (788, 3_020, 6_949, 12_821, 4_535, 790),
    ("kron22", "cc"): (144, 2_060, 1_574, 2_935, 7_866, 144),
    ("kron22", "bc"): (6_105, 7_059, None, 23_997, None, 6_000),
    ("urand20", "bfs"): (22, 41, 671, 1_048, 341, 22),
    ("urand20", "sssp"): (273, 1_444, 1_859, 4_142, 1_629, 270),
    ("urand20", "pagerank"): (513, 600, 3_200, None, 890, 500),
    ("urand20", "cc"): (26, 188, 383, 1_030, 1_868, 26),
    ("urand20", "bc"): (2_598, 977, None, 8_974, None, 980),
    ("grid2000", "bfs"): (72, 699, 334, 823, 100, 70),
    ("grid2000", "sssp"): (172, 35_822, 1_402, 3_714, 934, 170),
    ("grid2000", "pagerank"): (250, 274, 616, None, 700, 250),
    ("grid2000", "cc"): (35, 597, 192, 465, 277, 35),
}

MEASURED: dict[tuple[str, str], dict[str, float]] = {
    row: {name: value for name, value in zip(_COLUMNS, values, strict=True) if value is not None}
    for row, values in _TABLE.items()
}


@dataclass(frozen=True)
class Goal:
    """The goal of one graph and kernel, there and carried over to the machine that is measured."""

    there_ms: float
    #: What GAPBS took there.
    gapbs_there_ms: float
    scale: float
    #: The libraries that the scale is the median of.
    libraries: tuple[str, ...]

    @property
    def here_ms(self) -> float:
        """The time that would be as good here as the goal is there."""
        return self.there_ms * self.scale

    @property
    def gapbs_here_ms(self) -> float:
        """The time that GAPBS would be expected to take here."""
        return self.gapbs_there_ms * self.scale


def find_goal(graph: str, kernel: str, medians_ms: dict[str, float]) -> Goal | None:
    """Carry the goal over by the libraries' medians here; None without a goal or a library measured in both places."""
    there = MEASURED.get((graph, kernel), {})
    ratios = {name: here / there[name] for name, here in medians_ms.items() if name in there}
    if not ratios:
        return None
    return Goal(there[GOAL], there[GAPBS], statistics.median(ratios.values()), tuple(ratios))
