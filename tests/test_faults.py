# SPDX-License-Identifier: Apache-2.0
"""Processes of a job that die, stop or are asked to end, and damaged checkpoints: noticed, and the job goes on.

What is done to them is in benchmarks/faults.py, which does it often; here each is done once or a few times.
"""

import numpy as np
import pytest

import faults

pytestmark = pytest.mark.host_only("about processes with CPU devices")


@pytest.mark.parametrize(
    ("fault", "seed"),
    [(faults.kill, 0), (faults.kill, 1), (faults.kill, 2), (faults.damage, 3), (faults.stop, 4), (faults.end, 5)],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_a_fault_is_noticed_and_the_job_goes_on(fault, seed):
    assert faults.tried(fault, np.random.default_rng(seed))
