# SPDX-License-Identifier: Apache-2.0
"""Whoever waits for a kernel hears of its end, and of its failure."""

import sys
import types

import pytest

from cuda_fake import FakeGPU
from shoal import ShoalError
from shoal.backends.cuda.phase_run import await_all

pytestmark = [pytest.mark.host_only("for machines without a GPU"), pytest.mark.usefixtures("way_out")]

NOT_READY, ILLEGAL_ADDRESS = 600, 700


class Event:
    """As CuPy's, of a stream of which CUDA will say one thing after the other."""

    def __init__(self, *says):
        self.says, self.ptr = list(says), self

    def query(self):
        return self.says.pop(0) if len(self.says) > 1 else self.says[0]

    def synchronize(self):
        if self.query() == ILLEGAL_ADDRESS:
            raise RuntimeError("cudaErrorIllegalAddress")


@pytest.fixture(autouse=True)
def gpu(monkeypatch):
    FakeGPU().install(monkeypatch)
    monkeypatch.setattr(sys.modules["cupy"].cuda.runtime, "eventQuery", Event.query)


def test_all_are_waited_for():
    events = [Event(0), Event(NOT_READY, NOT_READY, 0)]
    await_all(events, stop=lambda: None)
    assert [event.query() for event in events] == [0, 0]


@pytest.mark.parametrize("says", [(ILLEGAL_ADDRESS,), (NOT_READY, ILLEGAL_ADDRESS)])
def test_a_kernel_that_fails_is_an_error(says):
    with pytest.raises(ShoalError, match="the GPU failed: cudaErrorIllegalAddress; if it runs rules of your own"):
        await_all([Event(0), Event(*says)], stop=lambda: None)


def test_a_way_out_while_a_kernel_runs():
    stopped = []

    class Interrupted(types.SimpleNamespace):
        """Somebody presses Ctrl-C while it is asked."""

        @property
        def ptr(self):
            raise KeyboardInterrupt

    event = Interrupted(synchronize=lambda: stopped.append("and waited"))
    with pytest.raises(KeyboardInterrupt):
        await_all([event], stop=lambda: stopped.append("told"))
    assert stopped == ["told", "and waited"]
