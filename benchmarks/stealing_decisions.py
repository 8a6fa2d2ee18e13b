# SPDX-License-Identifier: Apache-2.0
"""What a decision about stealing takes, and how far it is from the best one.

    python benchmarks/stealing_decisions.py --json decisions.json

Random loads of devices between which there is no link, one, or two.  A frontier's decision is `choose_thefts`, beside
the linear program alone by SciPy's HiGHS.  A group's is `choose_group`, where there is much to do, and where there is
next to nothing.  Deviations are of `share_frontier` from the lower bound that HiGHS has for whole edges after a second,
so those of many devices are partly the solver's.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import LinearConstraint, linprog, milp

from figures import Figure, parser, publish
from shoal.strategies.stealing import Groups, choose_group, choose_thefts, cost_matrix, select, share_frontier
from shoal.strategies.stealing.decision import finish_times

ASKED_DEVICES, ASKED_MICROSECONDS, ASKED_PERCENT = 8, 3000.0, 1.0
LINKS = (6e9, 25e9, 50e9)  # bytes a second: through the host, one link, two links
LEAST_LOAD, MOST_LOAD, TAIL_LOAD = 10_000, 20_000_000, 200
SECONDS_PER_MEMBER = 1e-5
FRONTIER_SIZE = 1_000_000
SOLVER_SECONDS = 1.0
Case = tuple[np.ndarray, np.ndarray]


def main() -> None:
    """Measure and publish."""
    options = parser(__doc__)
    options.add_argument("--devices", type=int, nargs="+", default=[2, 4, 8, 16], help="numbers of devices (2 4 8 16)")
    options.add_argument("--repetitions", type=int, default=300, help="decisions of each kind (300)")
    options.add_argument("--solved", type=int, default=30, help="cases that are solved with whole edges too (30)")
    given = options.parse_args()
    figures = [figure for size in given.devices for figure in figures_of(size, given.repetitions, given.solved)]
    figures.append(figure_of_selection(given.repetitions))
    publish("stealing_decisions", f"random loads of {LEAST_LOAD:,} to {MOST_LOAD:,} edges", figures, given.json)


def figures_of(size: int, repetitions: int, num_solved: int) -> list[Figure]:
    """Return the times of every kind of decision for a number of devices, and the deviation."""
    generator = np.random.default_rng(size)
    cases = [make_case(generator, size) for _ in range(repetitions)]
    groups = Groups([np.minimum(np.arange(size), last) for last in range(size)])
    kinds: dict[str, Callable[[np.ndarray, np.ndarray], Any]] = {
        "frontier": choose_thefts,
        "frontier, linear program by HiGHS": solve_fractions,
        "group, much to do": lambda loads, costs: choose_group(loads, costs, groups, SECONDS_PER_MEMBER),
        "group, little to do": lambda loads, costs: choose_group(
            loads * TAIL_LOAD // MOST_LOAD, costs, groups, SECONDS_PER_MEMBER
        ),
    }
    asked = ASKED_MICROSECONDS if size == ASKED_DEVICES else None
    figures = [
        Figure(
            f"{kind}, {size} devices",
            median_microseconds(decide, cases),
            "us",
            asked if decide is not solve_fractions else None,
            repetitions,
        )
        for kind, decide in kinds.items()
    ]
    worst = max(deviation_percent(*case) for case in cases[:num_solved])
    asked = ASKED_PERCENT if size <= ASKED_DEVICES else None
    return [*figures, Figure(f"largest deviation from the best, {size} devices", worst, "%", asked, num_solved)]


def make_case(generator: np.random.Generator, size: int) -> Case:
    """Return loads, of which some are 0, and costs."""
    loads = generator.integers(LEAST_LOAD, MOST_LOAD, size) * (generator.random(size) < 0.9)
    loads[generator.integers(size)] = MOST_LOAD
    links = generator.choice(LINKS, (size, size))
    bandwidth = np.maximum(links, links.T)
    np.fill_diagonal(bandwidth, 900e9)
    return loads, cost_matrix(bandwidth, 8, generator.uniform(1e-10, 4e-10, size))


def median_microseconds(decide: Callable[..., Any], cases: list[Any]) -> float:
    """Return the median time of a decision, after one that loads."""
    decide(*cases[0])
    samples = []
    for case in cases:
        started = time.perf_counter_ns()
        decide(*case)
        samples.append(time.perf_counter_ns() - started)
    return statistics.median(samples) / 1e3


def solve_fractions(loads: np.ndarray, costs: np.ndarray) -> Any:
    """Solve the linear program where edges may be divided."""
    takes, gives, objective = constraints(costs / costs.max())
    return linprog(objective, takes, np.zeros(len(loads)), gives, loads, method="highs-ds")


def deviation_percent(loads: np.ndarray, costs: np.ndarray) -> float:
    """Return how much later the last device finishes than it must, as far as the solver knows."""
    unit = costs.max()
    takes, gives, objective = constraints(costs / unit)
    rows = LinearConstraint(
        np.vstack([takes, gives]), np.append(np.full(len(loads), -np.inf), loads), np.append(0 * loads, loads)
    )
    found = milp(objective, integrality=1 - objective, constraints=rows, options={"time_limit": SOLVER_SECONDS})
    ours = finish_times(share_frontier(loads, costs), costs).max()
    return max(0.0, 100 * (ours / (found.mip_dual_bound * unit) - 1))


def constraints(costs: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rows that say nobody finishes after z, rows that share out the loads, and z; shares come row by row."""
    size = len(costs)
    takes = np.append(np.tile(np.eye(size), size) * costs.ravel(), -np.ones((size, 1)), axis=1)
    gives = np.append(np.kron(np.eye(size), np.ones(size)), np.zeros((size, 1)), axis=1)
    return takes, gives, np.append(np.zeros(size * size), 1)


def figure_of_selection(repetitions: int) -> Figure:
    """Return the time to cut a long frontier for eight devices."""
    degrees = np.random.default_rng(1).integers(0, 50, FRONTIER_SIZE)
    prefix_degrees = np.cumsum(degrees)
    shares = np.diff(int(prefix_degrees[-1]) * np.arange(ASKED_DEVICES + 1) // ASKED_DEVICES)
    microseconds = median_microseconds(select, [(prefix_degrees, shares)] * repetitions)
    return Figure(
        f"selection, {FRONTIER_SIZE:,} vertices, {ASKED_DEVICES} devices", microseconds, "us", None, repetitions
    )


if __name__ == "__main__":
    main()
