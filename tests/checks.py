# SPDX-License-Identifier: Apache-2.0
"""Assertions that the tests of several algorithms, or of several kinds of devices, make."""

import threading
import time

import numpy as np
import pytest

from shoal.dataflow import Context, DataflowError, Link
from shoal.errors import ShoalError

STATS_KEYS = {
    "seconds",
    "num_supersteps",
    "edges_visited",
    "items_combined",
    "messages",
    "items_sent",
    "bytes_sent",
    "idle_seconds",
    "peak_memory_bytes",
    "stolen_edges",
    "steal_seconds",
    "work_items",
    "config",
    "supersteps",
}


def assert_refused(call, *words, error=ShoalError):
    """Assert that ``call`` raises ``error`` with one line that contains every one of ``words``."""
    with pytest.raises(error) as caught:
        call()
    message = str(caught.value)
    assert "\n" not in message
    for word in words:
        assert word in message, f"{word!r} is not in {message!r}"


def assert_thefts(stats):
    """Assert that something was stolen, and that totals, pairs of devices and supersteps agree on it."""
    thefts = np.array(stats["thefts"])
    assert thefts.sum() == stats["stolen_edges"] > 0
    assert (np.diag(thefts) == 0).all()
    by_thief = np.sum([row["stolen_edges"] for row in stats["supersteps"]], axis=0)
    np.testing.assert_array_equal(thefts.sum(axis=0), by_thief)


def assert_counted(stats):
    """Assert that ``stats`` has every documented total, and one entry for each superstep."""
    totals = stats.to_dict()
    assert set(totals) >= STATS_KEYS
    assert totals["seconds"] >= 0
    assert totals["num_supersteps"] == len(totals["supersteps"])
    return totals


def assert_context_fails(words, devices, act, seconds, error=DataflowError):
    """Hold a context, in which a worker waits for what never comes, to an error soon after something is done in it."""

    def run():
        with Context(devices) as context:
            context.start(context.devices[0], list, Link(context.host, context.devices[0]))
            act(context)

    began = time.monotonic()
    with pytest.raises(error, match=words):
        run()
    assert time.monotonic() - began < seconds
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("shoal-cuda")]
