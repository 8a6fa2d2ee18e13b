# SPDX-License-Identifier: Apache-2.0
"""Partitioning piece by piece: the parts are those of the graph as a whole, whatever fits in memory at once."""

import os
import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_array

import graphs
import shoal
from command_line import assert_refused, run
from processes import SOURCES, run_script
from shoal import generate
from shoal.cli import main
from shoal.commands import flow
from shoal.errors import ArgumentError, FileFormatError, OutOfMemoryError
from shoal.io.shards import read_shards, write_shards
from shoal.sharding import external_sort, key_files, part_files, stages
from shoal.sharding.budget import Budget
from shoal.sharding.partition_files import partition_pieces
from shoal.sharding.request import STREAMED
from shoal.strategies.duplication import DUPLICATIONS, build_subgraphs
from shoal.strategies.partition import partition_graph
from test_io_shards import assert_same

pytestmark = pytest.mark.host_only("about files, of parts for several devices of the CPU")
FORMATS = ("txt", "csv", "parquet", "arrow", "shoal")


@pytest.fixture
def small_pieces(monkeypatch):
    """So few edges in memory that every graph takes several ranges and blocks."""
    monkeypatch.setattr(Budget, "edges", lambda budget, per_edge, beside=0: 64)


def assert_parts_of(folder, graph, num_devices, partition, duplication, *, has_in_edges=True, seed=0):
    """The shards in a folder are the parts that `build_subgraphs` makes in memory."""
    manifest, parts = read_shards(folder, mmap=False)
    assert (manifest.num_vertices, manifest.num_edges) == (graph.num_vertices, graph.num_edges)
    assert (manifest.is_directed, manifest.has_in_edges) == (graph.is_directed, has_in_edges)
    owner = partition_graph(graph, num_devices, partition, seed)
    wanted = build_subgraphs(graph, owner, num_devices, duplication, with_in_edges=has_in_edges)
    for part, other in zip(parts, wanted, strict=True):
        assert_same(part, other)


def in_order(graph):
    """The same graph with ascending rows, as parts have them; those of a .shoal file may stand in any order."""
    src = np.repeat(np.arange(graph.num_vertices, dtype=graph.vertex_dtype), graph.degree)
    ordered = shoal.Graph.from_edges(src, graph.indices, graph.weights, num_vertices=graph.num_vertices, directed=True)
    return shoal.Graph.from_csr(ordered.indptr, ordered.indices, ordered.weights, directed=graph.is_directed)


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("duplication", sorted(DUPLICATIONS))
@pytest.mark.usefixtures("small_pieces")
@settings(max_examples=20)
@given(graph=graphs.graphs(min_vertices=1, weights="any"), num_devices=st.integers(1, 4), data=st.data())
def test_the_parts_are_those_of_the_graph(tmp_path_factory, suffix, duplication, graph, num_devices, data):
    folder = tmp_path_factory.mktemp("streamed")
    with warnings.catch_warnings(action="ignore"):  # of vertices that a .csv has no place for
        shoal.write(graph, folder / f"graph.{suffix}")
    options = {name: data.draw(st.booleans(), name) for name in ("deduplicate", "drop_self_loops")}
    options["directed"] = data.draw(st.sampled_from([None, True, False]), "directed")
    partition = data.draw(st.sampled_from(STREAMED), "partition")
    whole = in_order(shoal.read(folder / f"graph.{suffix}", num_vertices=graph.num_vertices, **options))
    found = shoal.partition_files(
        folder / f"graph.{suffix}", folder / "parts", num_devices, partition=partition, duplication=duplication,
        partition_seed=3, in_edges=True, num_vertices=graph.num_vertices, **options,
    )  # fmt: skip
    assert found["stored_edges"] == sum(found["device_edges"]) == whole.num_edges
    assert_parts_of(folder / "parts", whole, num_devices, partition, duplication, seed=3)
    assert sorted(os.listdir(folder)) == [f"graph.{suffix}", "parts"]
    kinds = {"manifest.json", "vertices.shard", *(f"device-{k}.shard" for k in range(num_devices))}
    assert set(os.listdir(folder / "parts")) == kinds


@pytest.mark.parametrize("is_directed", [False, True])
@pytest.mark.usefixtures("small_pieces")
def test_rows_are_what_scipy_makes_of_the_same_edges(tmp_path, is_directed):
    random = np.random.default_rng(7)
    src, dst = random.integers(0, 300, (2, 4000))
    weights = random.integers(1, 100, 4000)
    for number, piece in enumerate(np.array_split(np.arange(4000), 3)):
        table = pa.table({"src": src[piece], "dst": dst[piece], "weight": weights[piece]})
        pq.write_table(table, tmp_path / f"{number}.parquet", row_group_size=500)
    paths = [tmp_path / f"{number}.parquet" for number in range(3)]
    options = {"directed": is_directed, "num_vertices": 300, "in_edges": True, "duplication": "one-hop"}
    shoal.partition_files(paths, tmp_path / "parts", 3, **options)
    matrix = coo_array((weights, (src, dst)), shape=(300, 300)).tocsr()  # sums the weights of parallel edges
    if not is_directed:
        loops = coo_array((np.where(src == dst, weights, 0), (src, dst)), shape=(300, 300)).tocsr()
        matrix = matrix + matrix.T - loops
    _, parts = read_shards(tmp_path / "parts")
    for part in parts:
        for edges, wanted in ((part.out_edges, matrix), (part.in_edges, matrix.T.tocsr())):
            rows = np.repeat(part.global_ids, np.diff(edges.indptr))
            there = coo_array((edges.weights, (rows, part.global_ids[edges.indices])), shape=(300, 300)).toarray()
            np.testing.assert_array_equal(there[part.owned_ids], wanted.toarray()[part.owned_ids])
            assert np.count_nonzero(np.delete(there, part.owned_ids, axis=0)) == 0


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("suffix", ["txt", "parquet"])
def test_ids_with_gaps_are_numbered_as_read_numbers_them(tmp_path, suffix):
    random = np.random.default_rng(5)
    ids = np.sort(random.choice(100_000, 150, replace=False))
    ends = ids[random.integers(0, 150, (2, 700))]
    if suffix == "txt":
        np.savetxt(tmp_path / "edges.txt", ends.T, "%d")
    else:
        pq.write_table(pa.table({"src": ends[0], "dst": ends[1]}), tmp_path / "edges.parquet")
    options = {"directed": True, "in_edges": True, "duplication": "one-hop"}
    shoal.partition_files(tmp_path / f"edges.{suffix}", tmp_path / "parts", 2, **options)
    whole = shoal.read(tmp_path / f"edges.{suffix}", directed=True)
    assert whole.labels is not None
    assert_parts_of(tmp_path / "parts", whole, 2, "segment", "one-hop")


def test_an_array_says_who_owns_what(tmp_path):
    graph = graphs.random_graph(60, 300, seed=1)
    shoal.write(graph, tmp_path / "graph.shoal")
    owner = np.arange(60) % 3
    shoal.partition_files(tmp_path / "graph.shoal", tmp_path / "parts", 3, partition=owner, duplication="all")
    assert_parts_of(tmp_path / "parts", graph, 3, owner, "all")


def test_the_command_line_partitions_several_files(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("0 1\n1 2\n")
    (tmp_path / "b.txt").write_text("2 3\n3 0\n")
    out = run("partition a.txt b.txt --devices 2 --output parts", capsys)
    for words in ("a.txt, b.txt on 2 devices", "stored edges", "edges read a second", "parts"):
        assert words in out
    manifest, parts = read_shards("parts")
    assert (manifest.num_vertices, manifest.num_edges, manifest.partition) == (4, 8, "segment")
    assert [part.num_owned for part in parts] == [2, 2]
    out = run(
        "partition a.txt --devices 2 --memory 1GiB --num-vertices 7 --directed --in-edges --output p --json", capsys
    )
    assert '"vertices": 7' in out
    assert read_shards("p")[0].has_in_edges


BAD = [
    ("partition a.txt b.txt --devices 2", "--output"),
    ("partition a.txt --devices 2 --memory 2GiB", "memory='2GiB' --output"),
    ("partition a.txt --devices 2 --memory much --output p", "memory='much' 2GiB"),
    ("partition a.txt --devices 2 --memory 1MB --output p", "1 MB not enough"),
    ("partition a.txt --devices 2 --memory 2GiB --partition metis --output p", "partition='metis' segment, random"),
    ("partition a.txt c.mtx --devices 2 --output p", "c.mtx matrix-market edge-list, parquet, shoal"),
    ("partition a.txt b.txt --devices 2 --output a.txt", "output='a.txt' empty folder"),
    ("partition a.txt missing.txt --devices 2 --output p", "missing.txt"),
    ("partition a.txt bad.txt --devices 2 --output p", "bad.txt, line 2"),
    ("partition a.txt weighted.txt --devices 2 --output p", "weights others none"),
    ("partition a.txt directed.txt --devices 2 --output p", "directed.txt undirected directed="),
    ("partition a.txt --devices 2 --memory 2GiB --num-vertices 2 --output p", "a.txt, line 2"),
    ("partition a.txt --devices 2 --num-vertices 2", "a.txt, line 2"),
    ("partition ids.parquet --devices 2 --memory 2GiB --num-vertices 2 --output p", "ids.parquet id 9 2 vertices"),
    ("partition names.parquet --devices 2 --memory 2GiB --output p", "names.parquet 'src' integers"),
]


@pytest.mark.parametrize(("command", "words"), BAD, ids=[command for command, _ in BAD])
def test_bad_input_is_one_line_and_leaves_nothing(tmp_path, monkeypatch, capsys, command, words):
    monkeypatch.chdir(tmp_path)
    files = {"a.txt": "0 1\n1 2\n", "b.txt": "2 3\n", "bad.txt": "0 1\n1 x\n", "weighted.txt": "0 1 5\n",
             "directed.txt": "# Directed graph\n0 1\n",
             "c.mtx": "%%MatrixMarket matrix coordinate pattern general\n1 1 1\n1 1\n"}  # fmt: skip
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    pq.write_table(pa.table({"src": [0, 9], "dst": [1, 1]}), "ids.parquet")
    pq.write_table(pa.table({"src": ["a"], "dst": ["b"]}), "names.parquet")
    before = sorted(tmp_path.rglob("*"))
    assert_refused(command, words, capsys)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("max_ranges", "words"), [(1, r"sorting \d+ edges takes"), (512, r"sorting \d+ edges, \d+ of them of few vertices")]
)
def test_more_edges_than_can_be_sorted_at_once_are_refused(tmp_path, monkeypatch, max_ranges, words):
    monkeypatch.setattr(external_sort, "_MAX_RANGES", max_ranges)
    monkeypatch.setattr(Budget, "edges", lambda budget, per_edge, beside=0: 64)
    monkeypatch.setattr(Budget, "left", 1000)
    star = shoal.Graph.from_edges(np.zeros(300, int), np.arange(300), num_vertices=300)
    shoal.write(star, tmp_path / "graph.shoal")
    with pytest.raises(OutOfMemoryError, match=words):
        shoal.partition_files(tmp_path / "graph.shoal", tmp_path / "parts", 2)
    assert os.listdir(tmp_path) == ["graph.shoal"]


@pytest.mark.parametrize("stage", ["survey", "sort", "parts"])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()], ids=["full", "Ctrl-C"])
def test_nothing_is_left_of_a_folder_that_could_not_be_completed(tmp_path, monkeypatch, stage, error):
    def fail(*args, **options):
        raise error

    where = {"survey": (stages.Surveyor, "close"), "sort": (key_files, "sort_keys"),
             "parts": (part_files.ShardFile, "entry")}  # fmt: skip
    monkeypatch.setattr(*where[stage], fail)
    (tmp_path / "edges.txt").write_text("0 1\n1 2\n")
    with pytest.raises(ArgumentError if isinstance(error, OSError) else KeyboardInterrupt):
        shoal.partition_files(tmp_path / "edges.txt", tmp_path / "parts", 2)
    assert os.listdir(tmp_path) == ["edges.txt"]


def test_an_interrupted_command_leaves_nothing(tmp_path):
    with open(tmp_path / "edges.txt", "w") as file:
        np.savetxt(file, np.random.default_rng(1).integers(0, 50_000, (500_000, 2)), "%d")
    command = [sys.executable, "-m", "shoal.cli", "partition", "edges.txt", "--devices", "4", "--memory", "1GiB",
               "--output", "parts"]  # fmt: skip
    process = subprocess.Popen(command, cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(SOURCES)},
                               stderr=subprocess.PIPE, text=True)  # fmt: skip
    try:
        deadline = time.monotonic() + 60
        while not list(tmp_path.glob(".parts.*/*")) and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.005)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert "Traceback" not in errors
    assert process.returncode in (0, 130), errors  # 0: it was done before it heard
    assert sorted(os.listdir(tmp_path)) == ["edges.txt"] + ["parts"] * (process.returncode == 0)


def test_rows_and_ids_that_no_file_may_have(tmp_path):
    pq.write_table(pa.table({"src": [0, -4], "dst": [1, 1]}), tmp_path / "negative.parquet")
    with pytest.raises(FileFormatError, match="'src', row 1: -4 is not a vertex id"):
        shoal.partition_files(tmp_path / "negative.parquet", tmp_path / "parts", 2)
    pq.write_table(pa.table({"src": [0, 10**15], "dst": [1, 1]}), tmp_path / "far.parquet")
    with pytest.raises(OutOfMemoryError, match="a flag for each of 1000000000000001 ids"):
        shoal.partition_files(tmp_path / "far.parquet", tmp_path / "parts", 2)
    with pytest.raises(ArgumentError, match="paths is empty"):
        shoal.partition_files([], tmp_path / "parts", 2)
    with pytest.raises(ArgumentError, match="partition is a function"):
        shoal.partition_files(tmp_path / "far.parquet", tmp_path / "parts", 2, partition=lambda graph, count: None)
    assert sorted(os.listdir(tmp_path)) == ["far.parquet", "negative.parquet"]


# Drawn graphs


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("is_directed", [False, True])
@pytest.mark.parametrize("weights", [None, (1, 9), "float32"])
def test_the_parts_of_a_drawn_graph_are_those_of_the_graph(tmp_path, monkeypatch, is_directed, weights):
    monkeypatch.setattr(generate, "PIECE_EDGES", 1000)
    drawings = ((generate.rmat, generate.rmat_pieces, {"scale": 8}),
                (generate.uniform, generate.uniform_pieces, {"num_vertices": 100, "num_edges": 2500}))  # fmt: skip
    for make, pieces, options in drawings:
        options = options | {"directed": is_directed, "weights": weights, "seed": 7}
        folder = tmp_path / make.__name__
        partition_pieces(pieces(**options), folder, 3, in_edges=True)
        assert_parts_of(folder, make(**options), 3, "segment", "all")


def test_the_command_line_draws_parts(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    out = run("generate rmat graph.shards --scale 8 --devices 2 --weights 1:9", capsys)
    assert "rmat graph for 2 devices" in out
    assert_parts_of("graph.shards", generate.rmat(8, weights=(1, 9)), 2, "segment", "all")
    assert_refused("generate grid g.shards --rows 3 --columns 3 --devices 2", "devices=2 grid rmat, uniform", capsys)
    assert_refused("generate rmat g.shards --scale 8 --devices 2 --edge-dtype int64", "edge-dtype", capsys)


# Runs on shards without the graph


@pytest.fixture(scope="module", params=["undirected", "directed"])
def shards(request, tmp_path_factory):
    """A graph and the folder of its parts."""
    folder = tmp_path_factory.mktemp(request.param)
    graph = graphs.random_graph(80, 500, seed=6, directed=request.param == "directed", weights="int32", skew=2.0)
    shoal.write(graph, folder / "graph.parquet")
    shoal.partition_files(folder / "graph.parquet", folder / "parts", 3, in_edges=True)
    return graph, folder / "parts"


RUNS = {
    "bfs": lambda graph: shoal.bfs(graph, 3).distance,
    "batch": lambda graph: shoal.bfs(graph, [3, 5]).distance,
    "sssp": lambda graph: shoal.sssp(graph, 3).distance,
    "components": lambda graph: shoal.connected_components(graph).label,
    "pagerank": lambda graph: shoal.pagerank(graph).rank,
}


@pytest.mark.parametrize("name", RUNS)
def test_algorithms_run_on_shards_without_the_graph(shards, name):
    graph, folder = shards
    placed = shoal.open_shards(folder)
    assert (placed.devices, placed.graph.num_edges, placed.graph.max_degree) == (
        "cpu:3",
        graph.num_edges,
        graph.max_degree,
    )
    np.testing.assert_allclose(RUNS[name](placed), RUNS[name](graph), rtol=1e-12)


REFUSED = {
    "bfs": lambda graph: shoal.bfs(graph, 3, validate=True),
    "pagerank": lambda graph: shoal.pagerank(graph, weighted=True),
    "core_number": lambda graph: shoal.core_number(graph),
    "triangles": lambda graph: shoal.triangles(graph),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_needs_the_whole_graph_says_so(tmp_path, name):
    shoal.write(graphs.random_graph(80, 500, seed=6, weights="int32"), tmp_path / "graph.parquet")
    shoal.partition_files(tmp_path / "graph.parquet", tmp_path / "parts", 2)
    with pytest.raises(ArgumentError, match=f"^{name} needs the .* of the whole graph, and of {tmp_path}/parts"):
        REFUSED[name](shoal.open_shards(tmp_path / "parts"))


def test_what_the_parts_do_not_have_is_refused(tmp_path):
    shoal.write(graphs.random_graph(80, 500, seed=6, directed=True), tmp_path / "graph.parquet")
    shoal.partition_files(tmp_path / "graph.parquet", tmp_path / "parts", 2)
    with pytest.raises(ArgumentError, match="parts without incoming edges, which this run looks at"):
        shoal.pagerank(shoal.open_shards(tmp_path / "parts"))
    with pytest.raises(ArgumentError, match=r"devices='cpu:3' are 3, and .* has the parts of 2"):
        shoal.open_shards(tmp_path / "parts", devices="cpu:3")
    with pytest.raises(FileFormatError, match=r"manifest.json: cannot be read"):
        shoal.open_shards(tmp_path)


def test_the_parts_of_one_device_are_the_graph(tmp_path):
    graph = graphs.random_graph(80, 500, seed=6, directed=True, weights="int32")
    shoal.write(graph, tmp_path / "graph.parquet")
    shoal.partition_files(tmp_path / "graph.parquet", tmp_path / "parts", 1, in_edges=True)
    placed = shoal.open_shards(tmp_path / "parts")
    assert placed.devices == "cpu"
    assert placed.graph == graph
    assert placed.graph.reverse() == graph.reverse()
    assert shoal.triangles(placed.graph.symmetrized()).total == shoal.triangles(graph.symmetrized()).total


def test_names_of_vertices_stay(tmp_path):
    graph = shoal.Graph.from_edges([0, 1], [1, 2], labels=["a", "b", "c"])
    parts = build_subgraphs(graph, [0, 0, 1], 2, "all", with_in_edges=True)
    write_shards(tmp_path / "parts", graph, parts, "array", "all")
    placed = shoal.open_shards(tmp_path / "parts")
    assert placed.graph.vertex("c") == 2
    assert shoal.bfs(placed, 0).named_columns()["vertex"].to_pylist() == ["a", "b", "c"]


def test_edges_stay_on_disk(tmp_path):
    """A graph that is mostly edges takes a small part of them in memory; in a process of its own."""
    ends = np.random.default_rng(1).integers(0, 2000, (2, 5_000_000), np.int32)
    pq.write_table(pa.table({"src": ends[0], "dst": ends[1]}), tmp_path / "graph.parquet")
    shoal.partition_files(tmp_path / "graph.parquet", tmp_path / "parts", 1, num_vertices=2000)
    (tmp_path / "rank.py").write_text(
        "import sys, shoal\n"
        "from shoal.machine import anonymous_memory_bytes\n"
        "shoal.pagerank(shoal.generate.rmat(15), iterations=1)  # loads what is compiled\n"
        "before = anonymous_memory_bytes()\n"
        "result = shoal.pagerank(shoal.open_shards(sys.argv[1]), iterations=3)\n"
        "print(anonymous_memory_bytes() - before, result.graph.nbytes)\n"
    )
    status, output, errors = run_script(tmp_path / "rank.py", str(tmp_path / "parts"))
    assert status == 0, errors
    taken, edge_bytes = map(int, output.split())
    assert edge_bytes > 4 * 9_900_000
    assert taken < edge_bytes / 4


def test_the_command_line_says_that_edges_stay_on_disk(tmp_path, monkeypatch, capsys):
    graph = generate.rmat(9, edge_factor=200, seed=1)
    shoal.write(graph, tmp_path / "graph.shoal")
    command = ["pagerank", str(tmp_path / "graph.shoal"), "--log-level", "info", "--quiet"]
    assert main(command) == 0
    assert "stay on disk" not in capsys.readouterr().err
    monkeypatch.setattr(flow, "available_memory_bytes", lambda: graph.nbytes - 1)
    assert main(command) == 0
    assert "is more than the" in capsys.readouterr().err
