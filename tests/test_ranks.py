# SPDX-License-Identifier: Apache-2.0
"""Programs on the ranks of an MPI job give what one device gives, whatever they tell one another."""

import re

import pytest

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
