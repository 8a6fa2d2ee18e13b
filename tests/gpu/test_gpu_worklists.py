# SPDX-License-Identifier: Apache-2.0
"""Worklists with callbacks on devices of a GPU: what goes where they say is what it is on a CPU, in every order."""

import pytest

from callbacks import CHECKS
from graphs import random_graph
from shoal import generate
from shoal.backends.cuda.worklist_run import WorklistRun

SEVERAL = [name for name in CHECKS if name != "asked"]


@pytest.mark.parametrize("partition", ["random", "segment"])
@pytest.mark.parametrize("count", [2, 3, 4, 8])
@pytest.mark.parametrize("name", SEVERAL)
def test_several_devices(name, count, partition):
    for graph in (random_graph(40, 60, seed=1, weights="int32"), random_graph(3000, 20000, seed=2, weights="int32")):
        CHECKS[name](graph, devices=f"cuda:0*{count}", partition=partition)


@pytest.mark.parametrize("name", CHECKS)
def test_one_device(name):
    CHECKS[name](random_graph(300, 500, seed=3, weights="int32"), devices="cuda:0")


@pytest.mark.parametrize(
    ("duplication", "communication"), [("one-hop", "selective"), ("all", "selective"), ("all", "ring")]
)
def test_items_of_all_devices_for_one_vertex(duplication, communication):
    """Hubs that every device has found at once: nothing that is taken in is lost."""
    graph = random_graph(5000, 100_000, seed=4, weights="int32", skew=6.0)
    for seed in range(5):
        CHECKS["tallied"](
            graph, devices="cuda:0*8", partition="random", partition_seed=seed, duplication=duplication,
            communication=communication,
        )  # fmt: skip


@pytest.mark.parametrize("name", ["every callback", "sent to and received by all"])
def test_devices_that_get_ahead_of_one_another(name, monkeypatch):
    graph = generate.grid(60, 60, seed=1, weights=(1, 255))
    for jitter in (1, 12345, 2**40 + 7):
        monkeypatch.setattr(WorklistRun, "jitter", jitter)
        CHECKS[name](graph, devices="cuda:0*4", partition="random")
