# SPDX-License-Identifier: Apache-2.0
"""Programs on the ranks of an MPI job give what one device gives, whatever they tell one another."""

import re

import pytest

import shoal
from graphs import path_graph
from ranks import TESTS, run_job

pytestmark = pytest.mark.host_only("about CPU devices of several processes")


@pytest.mark.parametrize(
    ("num_ranks", "devices", "every"),
    [(2, "mpi", 1), (4, "mpi", 1), (2, "mpi:cpu:2", 29), (8, "mpi", 5)],
)
def test_every_algorithm_under_every_exchange(num_ranks, devices, every):
    status, output, errors = run_job(num_ranks, TESTS / "rank_program.py", devices, every)
    assert status == 0, output[-2000:] + errors[-4000:]
    count = int(re.search(r"^(\d+) cases$", output, re.MULTILINE)[1])
    assert count * every >= 100


@pytest.mark.parametrize(
    ("num_ranks", "devices", "every"), [(2, "mpi", 1), (4, "mpi", 2), (2, "mpi:cpu:2", 4), (1, "mpi:cpu:3", 8)]
)
def test_every_strategy_without_supersteps(num_ranks, devices, every):
    status, output, errors = run_job(num_ranks, TESTS / "rank_worklists.py", devices, every)
    assert status == 0, output[-2000:] + errors[-4000:]
    assert len(output.splitlines()) * every >= 25


@pytest.mark.parametrize(
    ("what", "messages"),
    [
        ("rule", ["RankError: rank 1 on .* failed: Failing: rule 'relax' .* failed on device mpi:1: AssertionError",
                  "ProgramError: Failing: rule 'relax' .* failed on device mpi:1: AssertionError"]),
        ("interrupt", ["RankError: rank 1 on .* failed: KeyboardInterrupt", "KeyboardInterrupt"]),
        ("stop", ["RankError: the run ended: rank 1 on .* was not heard of for 4 seconds"]),
    ],
)  # fmt: skip
def test_who_ends_a_run_without_supersteps_is_named(what, messages, tmp_path):
    program, limits = TESTS / "rank_failures.py", {"timeout_seconds": 120, "SHOAL_RANK_TIMEOUT": "4"}
    run_job(2, program, what, tmp_path, **limits)
    for rank, message in enumerate(messages):
        assert re.match(message, (tmp_path / f"rank-{rank}").read_text())


def test_components_without_supersteps_are_for_one_process():
    message = "execution='async' is not possible on mpi: components .* by links, which one process has; allowed: auto"
    with pytest.raises(shoal.ArgumentError, match=message):
        shoal.connected_components(path_graph(3), devices="mpi", execution="async")
    with pytest.raises(shoal.ArgumentError, match="one thread; mpi:cpu:6 has as many"):
        shoal.bfs(path_graph(3), 0, devices="mpi:cpu:2x3", execution="async")
