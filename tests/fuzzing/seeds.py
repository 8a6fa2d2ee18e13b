# SPDX-License-Identifier: Apache-2.0
"""Good files of every kind, a few KB each: written by shoal, and by hand what it reads and does not write."""

from __future__ import annotations

import bz2
import functools
import gzip
import json
import struct
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import shoal
from shoal.io.shards import write_shards
from shoal.model import find_cost, find_topology
from shoal.report.trace import record_run
from shoal.strategies.duplication import build_subgraphs
from shoal.strategies.partition import partition_graph

Input = dict[str, bytes]

EDGE_LISTS = {
    "blanks.txt": b"# Directed graph\n# Vertex ids: 0 to 9\n0 1\n1 2\n\n# between\n9 9\n2 0\n",
    "weights.wel": b"0 1 5\n1 2 0.25\n2 0 1e-3\n0 2 123456789012345\n",
    "labels.txt": b'alice bob 3\nbob "c d" 4\n"a""b" alice 5\n',
    "numbers.el": b"7 1000000000\n12345678901 7\n999999999999999999 5\n",
    "header.csv": b'source,target,weight\nann,bob,2\n"x,y",cid,5\n',
    "tabs.tsv": b"from\tto\tw\nbig apple\torange\t1\norange\tpear\t-2\n",
    "commas.csv": b"0,1\n1,2\n2,0\n",
    "snap.txt": b"# Undirected graph: x\n# Nodes: 4 Edges: 3\n% more\n0\t1\r\n1\t2\r\n3\t1\r\n",
}
MATRICES = {
    "general.mtx": b"%%MatrixMarket matrix coordinate real general\n% a\n5 5 4\n1 2 0.5\n2 3 1e3\n5 5 7\n4 1 -2\n",
    "pattern.mtx": b"%%MatrixMarket matrix coordinate pattern symmetric\n4 4 3\n2 1\n3 1\n4 4\n",
    "integer.mtx": b"%%MatrixMarket matrix coordinate integer symmetric\n3 3 2\n2 1 5\n3 3 9007199254740992\n",
}
DIMACS = {
    "roads.gr": b"c roads\np sp 4 4\na 1 2 5\na 2 3 1\na 3 4 2\na 4 1 9\n",
    "pace.gr": b"c pace\np tw 4 3\n1 2\n2 3\n4 1\n",
    "tagged.gr": b"p edge 4 3\ne 1 2\ne 2 3\ne 4 1\n",
    "bare.gr": b"a 0 1 5\na 1 9 6\na 9 0 7\n",
}
METIS = {
    "plain.graph": b"% four\n4 4\n2 3\n1 3\n1 2 4\n3\n",
    "weights.graph": b"3 2 1\n2 5\n1 5 3 7\n2 7\n",
    "all.graph": b"3 2 111 2\n1 4 5 2 5\n1 4 5 1 5 3 7\n9 4 5 2 7\n",
    "isolated.graph": b"3 1\n2\n1\n\n",
}


def _graphs() -> dict[str, shoal.Graph]:
    """Return small graphs of every width and kind of weights."""
    src, dst = [0, 1, 2, 0, 5, 5], [1, 2, 3, 3, 5, 1]
    return {
        "plain": shoal.Graph.from_edges(src, dst, num_vertices=8),
        "arcs": shoal.Graph.from_edges(src, dst, directed=True),
        "whole": shoal.Graph.from_edges(src, dst, [1, 2, 3, 4, 5, 6]),
        "real": shoal.Graph.from_edges(src, dst, [0.5, 1, 2, 3, 4, 5.5], directed=True, labels=list("abcdef")),
        "wide": shoal.Graph.from_edges(src, dst, vertex_dtype="int64", labels=[3, 5, 7, 9, 11, 2**40]),
        "ordered": shoal.Graph.from_edges(src, dst, [1, 2, 3, 4, 5, 6]).optimized(),
    }


def _written(suffix: str, names: tuple[str, ...]) -> list[Input]:
    graphs, inputs = _graphs(), []
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            path = Path(folder, f"{name}{suffix}")
            shoal.write(graphs[name], path)
            inputs.append({path.name: path.read_bytes()})
    return inputs


def _single(files: dict[str, bytes]) -> list[Input]:
    return [{name: content} for name, content in files.items()]


def edge_lists() -> list[Input]:
    """Return edge lists with every separator and suffix."""
    return [*_single(EDGE_LISTS), *_written(".edges", ("arcs", "real"))]


def compressed() -> list[Input]:
    """Return text of every format in every compression."""
    texts = [next(iter(files.items())) for files in (EDGE_LISTS, MATRICES, DIMACS, METIS)]
    squeeze: dict[str, Callable[[bytes], bytes]] = {
        ".gz": functools.partial(gzip.compress, mtime=0),
        ".bz2": bz2.compress,
        ".zst": lambda text: pa.compress(text, "zstd", asbytes=True),
    }
    return [{name + suffix: make(text)} for name, text in texts for suffix, make in squeeze.items()]


def matrices() -> list[Input]:
    """Return Matrix Market files."""
    return _single(MATRICES)


def dimacs() -> list[Input]:
    """Return DIMACS files in every dialect."""
    return _single(DIMACS)


def metis() -> list[Input]:
    """Return METIS files with every kind of numbers."""
    return _single(METIS)


def gap() -> list[Input]:
    """Return serialized graphs, one of them without anything."""
    empty = struct.pack("<bqqq", 0, 0, 0, 0)
    return [*_written(".sg", ("plain", "arcs")), *_written(".wsg", ("whole",)), {"empty.sg": empty}]


def npz() -> list[Input]:
    """Return NumPy archives."""
    return _written(".npz", ("plain", "arcs", "real", "wide"))


def native() -> list[Input]:
    """Return files in shoal's own format."""
    return _written(".shoal", ("plain", "real", "wide", "ordered"))


def _tables(suffix: str) -> list[Input]:
    inputs = _written(suffix, ("plain", "arcs", "real", "wide"))
    columns = {"source": pa.array(["a", "b", "a"]).dictionary_encode(), "target": ["b", "c", "c"], "w": [1.5, 2, 3]}
    table = pa.table(columns).replace_schema_metadata({"shoal.directed": "1", "shoal.num_vertices": "1" + "0" * 15})
    with tempfile.TemporaryDirectory() as folder:
        for name, kept in (
            ("words", table),
            ("claim", pa.table({"src": [0], "dst": [1]}, metadata=table.schema.metadata)),
        ):
            path = Path(folder, f"{name}{suffix}")
            pa.parquet.write_table(kept, path) if suffix == ".parquet" else pa.feather.write_feather(kept, str(path))
            inputs.append({path.name: path.read_bytes()})
    return inputs


def parquet() -> list[Input]:
    """Return Parquet files."""
    import pyarrow.parquet  # noqa: F401

    return _tables(".parquet")


def arrow() -> list[Input]:
    """Return Arrow files, with and without compression."""
    import pyarrow.feather  # noqa: F401

    return _tables(".arrow")


def shards() -> list[Input]:
    """Return folders of shards of every duplication."""
    inputs = []
    graphs = _graphs()
    for name, duplication, count in (("plain", "all", 2), ("real", "one-hop", 3), ("wide", "one-hop", 2)):
        graph = graphs[name]
        owner = partition_graph(graph, count, "random", 1)
        parts = build_subgraphs(graph, owner, count, duplication, with_in_edges=name != "wide")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "parts")
            write_shards(path, graph, parts, "random", duplication)
            inputs.append({file.name: file.read_bytes() for file in sorted(path.iterdir())})
    return inputs


def traces() -> list[Input]:
    """Return traces of runs on one device and on two, with and without supersteps, and of two that steal."""
    graph = shoal.Graph.from_edges([0, 1, 2, 0, 3], [1, 2, 3, 4, 5])
    runs = {
        "one": shoal.bfs(graph, 0, devices="cpu:1x1"),
        "two": shoal.bfs(graph, 0, devices="cpu:2x1", memory_limit="1MB"),
        "apart": shoal.bfs(graph, 0, devices="cpu:2x1", execution="async"),
        "helping": shoal.bfs(graph, 0, devices="cpu:2x1", stealing="both"),
    }
    return [
        {f"{name}.json": json.dumps(record_run("bfs", graph, run.stats).to_dict(), default=str).encode()}
        for name, run in runs.items()
    ]


def _saved(value: Any, *suffixes: str) -> list[Input]:
    from shoal.model.tables import write_table

    inputs = []
    with tempfile.TemporaryDirectory() as folder:
        for suffix in suffixes:
            path = Path(folder, f"saved{suffix}")
            write_table(value, path)
            inputs.append({path.name: path.read_bytes()})
    return inputs


def topologies() -> list[Input]:
    """Return topologies as TOML and JSON, with bandwidths and with links."""
    links: dict[str, Any] = {"name": "pair", "num_devices": 3, "num_links": [[0, 1, 0], [1, 0, 2], [0, 2, 0]],
                             "link_bandwidth": 25e9, "local_bandwidth": 1e12, "host_bandwidth": 1e9,
                             "barrier_seconds": [1e-6, 2e-6], "source": {"num_links": "x"}}  # fmt: skip
    small = find_topology("pcie-k40-quad").resized(2)
    plain = {name: list(value) if isinstance(value, tuple) else value for name, value in small.to_dict().items()}
    return [*_saved(links, ".toml", ".json"), *_saved(plain, ".toml", ".json")]


def costs() -> list[Input]:
    """Return cost models as TOML and JSON."""
    cost = find_cost("cpu")
    plain = {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(cost).items()}
    flat = plain | {"coefficients": [1.5]}
    return [*_saved(plain, ".toml"), *_saved(flat, ".toml", ".json")]


def settings() -> list[Input]:
    """Return files of settings."""
    texts = (
        b'devices = "cpu:2"\njson = true\n\n[bfs]\nsource = [0, 1]\ndirection = "push"\n\n[generate.rmat]\nscale = 4\n',
        b"quiet = false\n[pagerank]\ndamping = 0.9\nmax-iterations = 5\n",
    )
    return [{"shoal.toml": text} for text in texts]


def results() -> list[Input]:
    """Return results of a search as files that `shoal validate` reads."""
    from shoal.tables import write_columns

    columns = {
        "vertex": np.arange(6),
        "distance": np.array([0, 1, 2, 3, 1, -1]),
        "parent": np.array([-1, 0, 1, 2, 0, -1]),
    }
    inputs = []
    with tempfile.TemporaryDirectory() as folder:
        for suffix in (".parquet", ".csv", ".npz"):
            path = Path(folder, f"hops{suffix}")
            write_columns(columns, str(path), suffix)
            inputs.append({path.name: path.read_bytes()})
    return inputs
