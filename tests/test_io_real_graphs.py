# SPDX-License-Identifier: Apache-2.0
"""Real graphs: the few in ``tests/data`` always, all of them where ``SHOAL_DATA`` or ``../shared/data`` has them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from shoal.io import read, write

pytestmark = pytest.mark.host_only("about files: nothing is run")

TESTS = Path(__file__).resolve().parent
FOLDERS = [Path(os.environ.get("SHOAL_DATA", TESTS.parents[1] / "shared" / "data")), TESTS / "data"]


class Expected(NamedTuple):
    """What is known of a graph; edges and degree without direction, duplicates and self-loops."""

    num_vertices: int
    num_rows: int
    is_directed: bool
    num_loops: int
    num_edges: int
    max_degree: int
    weights: tuple[float, float] | None = None


GRAPHS = {
    "USA-road-d.NY.gr.gz": Expected(264_346, 733_846, True, 0, 365_050, 8, (1, 36_946)),
    "USA-road-FLA.pace.gr.gz": Expected(1_070_376, 1_343_951, False, 0, 1_343_951, 8),
    "bremen_dist.gr.gz": Expected(40_461, 86_475, True, 305, 47_154, 6, (0, 88_514)),
    "wiki-Vote.txt.gz": Expected(7_115, 103_689, True, 0, 100_762, 1_065),
    "soc-Epinions1.txt.gz": Expected(75_879, 508_837, True, 0, 405_740, 3_044),
    "facebook_combined.txt.gz": Expected(4_039, 88_234, False, 0, 88_234, 1_045),
    "email-Enron.txt.gz": Expected(36_692, 367_662, False, 0, 183_831, 1_383),
    "web-NotreDame.txt.gz": Expected(325_729, 1_497_134, True, 27_455, 1_090_108, 10_721),
    "uk-2007-05-100000.tsv.gz": Expected(100_000, 3_050_615, False, 15_670, 2_779_575, 55_252),
    "p2p-Gnutella30.txt.gz": Expected(36_682, 88_328, True, 0, 88_328, 55),
    "CA-CondMat.txt.gz": Expected(23_133, 186_936, True, 58, 93_439, 279),
    "PGPgiantcompo.graph.gz": Expected(10_680, 24_316, False, 0, 24_316, 205),
    "netscience.mtx.gz": Expected(1_589, 2_742, False, 0, 2_742, 34, (0.0526316, 4.75)),
}


def find(name):
    for folder in FOLDERS:
        if (folder / name).exists():
            return folder / name
    return pytest.skip(f"{name} is not here")


@pytest.mark.parametrize("name", GRAPHS)
def test_counts(name):
    expected = GRAPHS[name]
    graph = read(find(name))
    src = np.repeat(np.arange(graph.num_vertices), graph.degree)
    num_loops = int(np.count_nonzero(src == graph.indices))
    num_rows = graph.num_edges if graph.is_directed else (graph.num_edges + num_loops) // 2
    found = (graph.num_vertices, num_rows, graph.is_directed, num_loops)
    assert found == (expected.num_vertices, expected.num_rows, expected.is_directed, expected.num_loops)
    if expected.weights is None:
        assert graph.weights is None
    else:
        assert (graph.weights.min(), graph.weights.max()) == pytest.approx(expected.weights, rel=1e-6)


@pytest.mark.parametrize("name", GRAPHS)
def test_counts_without_duplicates_and_loops(name):
    graph = read(find(name), directed=False, deduplicate=True, drop_self_loops=True)
    expected = GRAPHS[name]
    assert (graph.num_edges // 2, graph.max_degree) == (expected.num_edges, expected.max_degree)
    assert graph.num_vertices == expected.num_vertices


def test_labels_are_the_ids_of_the_file():
    graph = read(find("wiki-Vote.txt.gz"))
    assert graph.labels.min() == 3
    assert graph.labels.max() == 8_297
    row = graph.indices[graph.indptr[graph.vertex(30)] : graph.indptr[graph.vertex(30) + 1]]
    assert {1412, 3352} <= set(graph.labels[row].tolist())


@pytest.mark.parametrize(
    "name", ["netscience.mtx.gz", "PGPgiantcompo.graph.gz", "wiki-Vote.txt.gz", "bremen_dist.gr.gz"]
)
@pytest.mark.parametrize("suffix", [".txt.zst", ".mtx.gz", ".parquet", ".npz", ".shoal"])
def test_conversions(tmp_path, name, suffix):
    graph = read(find(name))
    write(graph, tmp_path / f"g{suffix}")
    result = read(tmp_path / f"g{suffix}")
    assert result.is_directed == graph.is_directed
    assert np.array_equal(result.indptr, graph.indptr)
    assert np.array_equal(result.indices, graph.indices)
    assert np.array_equal(result.weights, graph.weights)
    if suffix != ".mtx.gz":
        assert np.array_equal(result.labels, graph.labels)
