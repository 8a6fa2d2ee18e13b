# SPDX-License-Identifier: Apache-2.0
"""GPU devices without supersteps, emulated: the results of supersteps on a CPU, whatever the devices and strategies."""

import pytest
from hypothesis import given, settings

from callbacks import CHECKS
from cuda_emulated import EmulatedGPU
from cuda_on_host import COMPILER
from graphs import graphs
from test_asynchronous import ALGORITHMS
from test_every_config import assert_same

pytestmark = [
    pytest.mark.skipif(COMPILER is None, reason="needs g++ or clang++"),
    pytest.mark.host_only("for machines without a GPU"),
]

CASES = [
    ("bfs", 1, {}), ("bfs", 3, {}), ("sssp", 1, {}), ("sssp", 4, {"partition": "random"}),
    ("sssp", 3, {"communication": "ring"}), ("sssp", 3, {"duplication": "all"}), ("sssp", 3, {"priority": "none"}),
    ("pagerank", 3, {}), ("own program", 3, {}),
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("kernels")


@pytest.mark.parametrize(("algorithm", "count", "how"), CASES)
def test_results_are_those_of_supersteps(algorithm, count, how, folder, monkeypatch):
    EmulatedGPU(folder).install(monkeypatch)
    run, devices = ALGORITHMS[algorithm], f"cuda:0*{count}"

    @settings(max_examples=3 if algorithm == "pagerank" else 8, deadline=None)  # of many rounds
    @given(graph=graphs(weights="int32", directed=False, max_vertices=40))
    def check(graph):
        assert_same(run(graph, execution="async", devices=devices, **how), run(graph, devices="cpu"))

    check()


#: What each check needs is compiled by itself, for one device, for several, and for several that have all copies.
CALLBACK_CASES = [
    ("every callback", 1, {}), ("every callback", 2, {}), ("every callback", 3, {"partition": "random"}),
    ("every callback", 4, {}), ("every callback", 4, {"priority": "none"}), ("sent to all", 3, {}),
    ("received by all", 3, {}), ("sent to and received by all", 4, {"partition": "random"}), ("removed", 1, {}),
    ("removed", 3, {}), ("asked", 1, {}), ("sums", 1, {}), ("sums", 4, {"partition": "random"}),
    ("sums", 3, {"communication": "ring"}), ("tallied", 2, {}), ("tallied", 4, {"partition": "random"}),
    ("tallied", 3, {"duplication": "all"}), ("tallied", 3, {"communication": "ring"}),
]  # fmt: skip


@pytest.mark.parametrize(("check", "count", "how"), CALLBACK_CASES)
def test_callbacks(check, count, how, folder, monkeypatch):
    EmulatedGPU(folder).install(monkeypatch)
    run, devices = CHECKS[check], f"cuda:0*{count}"

    @settings(max_examples=15, deadline=None)
    @given(graph=graphs(weights="int32", directed=False, max_vertices=40))
    def examine(graph):
        run(graph, devices=devices, **how)

    examine()
