# SPDX-License-Identifier: Apache-2.0
"""Results as tables of other libraries, as files, and in a notebook: what the command line writes is the oracle."""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pandas
import polars
import pyarrow as pa
import pyarrow.parquet
import pytest

import shoal
from checks import assert_refused
from graphs import from_pairs
from shoal.cli import main
from shoal.errors import ArgumentError, ShoalError
from shoal.graph import Graph

pytestmark = pytest.mark.host_only("about what becomes of results, which are the same on a GPU")

#: Vertices named by strings, by numbers with gaps, and not at all; the last vertex is out of reach.
GRAPHS = {
    "strings": Graph.from_edges([0, 1, 3], [1, 2, 3], labels=["ulm", "<b>", "bern", "genf"]),
    "numbers": Graph.from_edges([0, 1, 3], [1, 2, 3], labels=[10, 20, 5, 7]),
    "no labels": Graph.from_edges([0, 1, 3], [1, 2, 3]),
}
EXPECTED = {
    "strings": (["ulm", "<b>", "bern", "genf"], ["ulm", "ulm", "<b>", None]),
    "numbers": ([10, 20, 5, 7], [10, 10, 20, -1]),
    "no labels": ([0, 1, 2, 3], [0, 0, 1, -1]),
}
DISTANCE = [0, 1, 2, -1]


def as_lists(table):
    return {name: column.to_pylist() for name, column in zip(table.column_names, table.columns, strict=True)}


WAYS = {
    "arrow": lambda result, path: result.to_arrow(),
    "stream": lambda result, path: pa.table(result),
    "pandas": lambda result, path: pa.table(result.to_pandas()),
    "polars": lambda result, path: result.to_polars().to_arrow(),
    "stream to polars": lambda result, path: polars.DataFrame(result).to_arrow(),
    "parquet": lambda result, path: [result.to_parquet(path), pyarrow.parquet.read_table(path)][1],
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", GRAPHS)
def test_every_way_has_the_same_columns(kind, way, tmp_path):
    vertex, parent = EXPECTED[kind]
    found = as_lists(WAYS[way](shoal.bfs(GRAPHS[kind], 0), tmp_path / "out.parquet"))
    assert found == {"vertex": vertex, "distance": DISTANCE, "parent": parent}


@pytest.mark.parametrize("call", ["bfs", "cc", "pagerank", "bc --source 7 --source 5"])
def test_columns_are_those_of_the_command_line(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "g.csv").write_text("7,5\n5,9\n11,11\n")
    graph = shoal.read("g.csv")
    calls = {
        "bfs": lambda: shoal.bfs(graph, graph.vertex(7)),
        "cc": lambda: shoal.connected_components(graph),
        "pagerank": lambda: shoal.pagerank(graph),
        "bc --source 7 --source 5": lambda: shoal.betweenness_centrality(graph, [graph.vertex(7), graph.vertex(5)]),
    }
    name, *flags = call.split()
    flags = ["--source", "7"] if name == "bfs" else flags
    assert main([name, "g.csv", *flags, "--output", "out.parquet"]) == 0
    calls[call]().to_parquet("ours.parquet")
    assert as_lists(pyarrow.parquet.read_table("ours.parquet")) == as_lists(pyarrow.parquet.read_table("out.parquet"))


def test_a_batch_has_columns_for_each_source():
    table = shoal.bfs(GRAPHS["strings"], [0, 2]).to_arrow()
    assert table.column_names == ["vertex", "distance_0", "distance_1", "parent_0", "parent_1"]
    assert table["parent_1"].to_pylist() == ["<b>", "bern", "bern", None]


def test_values_are_shared():
    result = shoal.pagerank(GRAPHS["no labels"])
    assert np.shares_memory(result.rank, result.to_arrow()["rank"].to_numpy())
    assert np.shares_memory(result.rank, result.to_pandas()["rank"].to_numpy())
    assert np.shares_memory(result.rank, pandas.DataFrame(result.table(), copy=False)["rank"].to_numpy())


def test_parquet_is_whole_or_not_there(tmp_path, monkeypatch):
    result = shoal.bfs(GRAPHS["strings"], 0)
    assert_refused(lambda: result.to_parquet(tmp_path), "path=", "is a directory", error=ArgumentError)
    assert_refused(lambda: result.to_parquet(tmp_path / "no" / "a"), "path=", "does not exist", error=ArgumentError)

    def break_off(columns, path):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("shoal.tables._write_parquet", break_off)
    with pytest.raises((OSError, ShoalError), match="No space left"):
        result.to_parquet(tmp_path / "out.parquet")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_library_that_is_not_installed(library, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)
    result = shoal.bfs(GRAPHS["no labels"], 0)
    assert_refused(getattr(result, f"to_{library}"), f"needs {library}", "shoal[interop]")


class Page(HTMLParser):
    """The rows of a page, its text, and whether every element that is opened is closed."""

    def __init__(self, html):
        super().__init__()
        self.rows, self.open, self.tags = [], [], set()
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)
        self.tags.add(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data


class TestNotebook:
    def test_small_results_are_whole_and_labels_are_text(self):
        html = shoal.bfs(GRAPHS["strings"], 0)._repr_html_()
        page = Page(html)
        assert page.rows == [
            ["vertex", "distance", "parent"],
            ["ulm", "0", "ulm"],
            ["<b>", "1", "ulm"],
            ["bern", "2", "<b>"],
            ["genf", "-1", ""],
        ]
        assert "b" in page.tags  # of the caption
        assert html.count("<b>") == 1
        assert "TraversalResult</b> of 4 vertices: reached = 3, max_distance = 2" in html
        assert re.search(r"[\d.]+ ms on 1 device, \d supersteps, \d+ edges visited, [\d.]+ k?B at most", html)

    def test_the_summary_has_labels(self):
        html = shoal.pagerank(GRAPHS["strings"])._repr_html_()
        assert "top_vertex = &lt;b&gt;" in html

    @pytest.mark.parametrize("size", [0, 1, 5, 9, 10, 11, 1000])
    def test_first_and_last_rows(self, size):
        result = shoal.connected_components(from_pairs([], num_vertices=size))
        vertices = [row[0] for row in Page(result._repr_html_()).rows[1:]]
        expected = [str(v) for v in range(size)]
        assert vertices == (expected if size <= 10 else [*expected[:5], "⋮", *expected[-5:]])

    def test_only_what_is_shown_is_named(self, monkeypatch):
        result = shoal.connected_components(from_pairs([], num_vertices=1000))
        shown = []
        named = type(result).named_columns
        monkeypatch.setattr(type(result), "named_columns", lambda self, rows: shown.append(rows) or named(self, rows))
        result._repr_html_()
        assert [range(*rows.indices(1000)) for rows in shown] == [range(5), range(995, 1000)]

    def test_a_summary_is_text(self, monkeypatch):
        result = shoal.bfs(GRAPHS["strings"], 0)
        monkeypatch.setattr(result, "graph", SimpleNamespace(num_vertices=0, labels=None, label_of=str))
        monkeypatch.setattr(type(result), "summary", lambda self: {"<i>": "a & b"})
        assert "&lt;i&gt; = a &amp; b" in result._repr_html_()
