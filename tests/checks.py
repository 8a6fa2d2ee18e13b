# SPDX-License-Identifier: Apache-2.0
"""Assertions that the tests of several algorithms make."""

import pytest

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


def assert_counted(stats):
    """Assert that ``stats`` has every documented total, and one entry for each superstep."""
    totals = stats.to_dict()
    assert set(totals) >= STATS_KEYS
    assert totals["seconds"] >= 0
    assert totals["num_supersteps"] == len(totals["supersteps"])
    return totals
