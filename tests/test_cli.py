# SPDX-License-Identifier: Apache-2.0
"""The command line: results in every format and by the file's own ids, one JSON object, one line for what is wrong."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest

import shoal
from command_line import run
from shoal.cli import main
from shoal.commands import flow

ROOT = Path(__file__).resolve().parents[1]
ALGORITHMS = {
    "bfs": "--source 7",
    "sssp": "--source 7",
    "cc": "",
    "bc": "",
    "pagerank": "",
    "triangles": "",
    "clustering": "",
    "transitivity": "",
    "lpa": "",
    "louvain": "",
    "eigenvector": "",
    "katz": "",
    "hits": "",
    "scc": "",
    "core": "",
    "kcore": "--k 2",
}
COLUMNS = {
    "bfs": ["distance", "parent"],
    "sssp": ["distance", "parent"],
    "cc": ["label"],
    "bc": ["centrality"],
    "pagerank": ["rank"],
    "triangles": ["triangles"],
    "clustering": ["clustering"],
    "transitivity": ["triangles", "triads"],
    "lpa": ["label"],
    "louvain": ["label"],
    "eigenvector": ["centrality"],
    "katz": ["centrality"],
    "hits": ["hub", "authority"],
    "scc": ["label"],
    "core": ["core"],
    "kcore": ["in_core"],
}
SUFFIXES = ["parquet", "csv", "npz"]
# Edges with weights of both graphs, so that every algorithm is compiled once.
NUMBERED = "7 10 1\n10 12 4\n12 7 9\n100 101 2\n12 13 1\n"
NAMED = "7 alice 1\nalice bob 4\nbob 7 9\n1000000000 carol 2\nbob dora 1\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with graph files and files that are none; the tests run in it."""
    monkeypatch.chdir(tmp_path)
    Path("numbered.txt").write_text(NUMBERED)
    Path("named.txt").write_text(NAMED)
    Path("malformed.txt").write_text("1 2 3\n1 2 x y z\n")
    Path("negative.txt").write_text("1 2 3\n2 3 -1\n")
    Path("nan.txt").write_text("1 2 3.5\n2 3 nan\n")
    Path("empty.txt").write_text("")
    Path("no_parquet.parquet").write_text("this is text")
    Path("some_folder").mkdir()
    return tmp_path


def read_columns(path):
    """Read a result as lists, without shoal."""
    if path.endswith(".npz"):
        with np.load(path) as archive:
            return {name: archive[name].tolist() for name in archive.files}
    read = pyarrow.parquet.read_table if path.endswith(".parquet") else pyarrow.csv.read_csv
    return read(path).to_pydict()


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("graph", ["numbered.txt", "named.txt"])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_result_is_written_with_the_file_s_ids_and_is_valid(folder, capsys, algorithm, graph, suffix):
    options = ALGORITHMS[algorithm]
    out = run(f"{algorithm} {graph} {options} --output result.{suffix} --validate --quiet", capsys)
    assert out == ""
    assert not list(folder.glob(".*"))
    columns = read_columns(f"result.{suffix}")
    assert list(columns) == ["vertex", *COLUMNS[algorithm]]
    loaded = shoal.read(graph)
    assert list(map(str, columns["vertex"])) == [str(loaded.label_of(v)) for v in range(loaded.num_vertices)]
    assert "valid result" in run(f"validate {graph} result.{suffix} --algorithm {algorithm} {options}", capsys)


def test_parents_and_labels_are_the_file_s_ids(folder, capsys):
    run("bfs numbered.txt --source 7 --output hops.csv", capsys)
    rows = read_columns("hops.csv")
    assert dict(zip(rows["vertex"], rows["parent"], strict=True)) == {7: 7, 10: 7, 12: 7, 13: 12, 100: -1, 101: -1}
    run("sssp named.txt --source 7 --output paths.parquet", capsys)
    rows = read_columns("paths.parquet")
    parents = dict(zip(rows["vertex"], rows["parent"], strict=True))
    assert parents == {"7": "7", "alice": "7", "bob": "alice", "dora": "bob", "carol": None, "1000000000": None}
    run("cc numbered.txt --output components.npz", capsys)
    assert read_columns("components.npz")["label"] == [7, 7, 7, 7, 100, 100]


def test_batch_has_columns_for_every_source(folder, capsys):
    for algorithm in ("bfs", "sssp"):
        run(f"{algorithm} numbered.txt --source 7 --source 100 --output batch.parquet", capsys)
        names = ["vertex", "distance_0", "distance_1", "parent_0", "parent_1"]
        assert sorted(read_columns("batch.parquet")) == sorted(names)
        run(f"validate numbered.txt batch.parquet --algorithm {algorithm} --source 7 --source 100", capsys)


def test_result_may_be_in_any_order(folder, capsys):
    run("bfs numbered.txt --source 7 --output hops.csv", capsys)
    header, *rows = Path("hops.csv").read_text().splitlines()
    Path("hops.csv").write_text("\n".join([header, *reversed(rows)]) + "\n")
    run("validate numbered.txt hops.csv --algorithm bfs --source 7", capsys)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_json_is_one_object_and_nothing_else(folder, capsys, algorithm):
    printed = json.loads(run(f"{algorithm} numbered.txt {ALGORITHMS[algorithm]} --json", capsys))
    assert set(printed) == {"result", "stats", "load_seconds"}
    assert printed["stats"]["num_supersteps"] == len(printed["stats"]["supersteps"])
    assert printed["load_seconds"] > 0
    assert printed["result"]


def test_json_summaries(folder, capsys):
    assert json.loads(run("bfs numbered.txt --source 7 --json", capsys))["result"] == {"reached": 4, "max_distance": 2}
    assert json.loads(run("cc named.txt --json", capsys))["result"] == {"components": 2, "largest": 4}
    assert json.loads(run("bc named.txt --json", capsys))["result"]["top_vertex"] == "bob"
    assert json.loads(run("pagerank numbered.txt --json", capsys))["result"]["top_vertex"] == 12
    stats = json.loads(run("cc named.txt --json --stats totals", capsys))["stats"]
    assert "supersteps" not in stats


def test_infinity_is_null_in_json(folder, capsys):
    assert json.loads(run("pagerank numbered.txt --iterations 0 --json", capsys))["result"]["error"] is None


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_tables_for_a_person(folder, capsys, algorithm):
    out = run(f"{algorithm} named.txt {ALGORITHMS[algorithm]} --validate", capsys)
    for word in ("seconds", "supersteps", "edges visited", "TEPS", "peak memory", "validated", "named.txt"):
        assert word in out
    assert "1000000000" in out or algorithm in ("bfs", "sssp", "kcore")


def test_options_reach_the_algorithm(folder, capsys):
    assert json.loads(run("bfs numbered.txt --source 7 --cutoff 1 --json", capsys))["result"]["reached"] == 3
    assert json.loads(run("sssp numbered.txt --source 7 --cutoff 1.5 --json", capsys))["result"]["reached"] == 2
    run("sssp numbered.txt --source 7 --target 10 --delta 2 --validate --quiet", capsys)
    run("bfs numbered.txt --source 7 --target 10 --no-parents --output t.csv --quiet", capsys)
    assert list(read_columns("t.csv")) == ["vertex", "distance"]
    run("validate numbered.txt t.csv --algorithm bfs --source 7 --target 10", capsys)
    run("bc numbered.txt --source 7 --source 10 --no-normalized --endpoints --output b.csv --quiet", capsys)
    run("validate numbered.txt b.csv --algorithm bc --source 7 --source 10 --no-normalized --endpoints", capsys)
    run("bc numbered.txt --samples 3 --seed 5 --validate --quiet", capsys)
    run("pagerank numbered.txt --iterations 3 --damping 0.5 --weighted --output r.npz --quiet", capsys)
    run("validate numbered.txt r.npz --algorithm pagerank --iterations 3 --damping 0.5 --weighted", capsys)
    stats = json.loads(run("bfs numbered.txt --source 7 --devices cpu:1x1 --direction push --json", capsys))["stats"]
    assert stats["config"]["direction"] == "push"
    assert stats["config"]["devices"] == "cpu:1x1"


def test_reading_options(folder, capsys):
    facts = json.loads(run("info numbered.txt --directed --json", capsys))
    assert facts["directed"] is True
    assert facts["stored_edges"] == 5
    Path("twice.txt").write_text("1 1 5\n1 2 3\n1 2 4\n")
    assert json.loads(run("info twice.txt --json", capsys))["self_loops"] == 1
    options = "--deduplicate --drop-self-loops --format edge-list"
    assert json.loads(run(f"info twice.txt {options} --json", capsys))["stored_edges"] == 2


def test_info(folder, capsys):
    facts = json.loads(run("info numbered.txt --json", capsys))
    assert facts["vertices"] == 6
    assert facts["stored_edges"] == 10
    assert (facts["weights"], facts["smallest_weight"], facts["largest_weight"]) == ("int32", 1, 9)
    assert facts["degree"] == {"min": 1, "mean": 10 / 6, "median": 1.5, "max": 3}
    assert facts["isolated"] == 0
    assert (facts["vertex_dtype"], facts["edge_dtype"]) == ("int32", "int32")
    assert facts["bytes"] == shoal.read("numbered.txt").nbytes
    assert facts["load_seconds"] > 0
    assert "stored edges" in run("info numbered.txt", capsys)


@pytest.mark.parametrize(
    ("kind", "options", "expected"),
    [
        ("rmat", "--scale 6 --edge-factor 4 --seed 3", lambda: shoal.generate.rmat(6, 4, seed=3)),
        ("kronecker", "--scale 6 --a 0.25 --b 0.25 --c 0.25 --no-shuffle --directed",
         lambda: shoal.generate.rmat(6, a=0.25, b=0.25, c=0.25, shuffle=False, directed=True)),
        ("uniform", "--num-vertices 30 --num-edges 90 --weights 1:9 --no-deduplicate --no-drop-self-loops",
         lambda: shoal.generate.uniform(num_vertices=30, num_edges=90, weights=(1, 9), deduplicate=False,
                                        drop_self_loops=False)),
        ("uniform", "--scale 5 --edge-factor 3 --weights float32",
         lambda: shoal.generate.uniform(5, 3, weights="float32")),
        ("grid", "--rows 4 --columns 5 --drop 0.2 --edge-dtype int64",
         lambda: shoal.generate.grid(4, 5, drop=0.2, edge_dtype="int64")),
    ],
)  # fmt: skip
def test_generate(folder, capsys, kind, options, expected):
    facts = json.loads(run(f"generate {kind} made.shoal {options} --json", capsys))
    assert shoal.read("made.shoal") == expected()
    assert facts["vertices"] == expected().num_vertices
    assert "written" in run(f"generate {kind} made.npz {options}", capsys)


@pytest.mark.parametrize("target", ["out.shoal", "out.parquet", "out.npz", "out.txt.gz"])
def test_convert_keeps_the_graph(folder, capsys, target):
    assert json.loads(run(f"convert named.txt {target} --json", capsys))["stored_edges"] == 10
    again = shoal.read(target)
    first = shoal.read("named.txt")
    assert again.vertex("alice") == first.vertex("alice")
    assert np.array_equal(again.indices, first.indices)
    assert np.array_equal(again.weights, first.weights)


def test_convert_can_symmetrize_and_name_the_format(folder, capsys):
    run("convert numbered.txt both.data --directed --symmetrize --target-format shoal", capsys)
    assert shoal.read("both.data", format="shoal").is_directed is False


def test_convert_can_optimize(folder, capsys):
    run("convert numbered.txt fast.shoal --optimize", capsys)
    assert shoal.read("fast.shoal") == shoal.read("numbered.txt").optimized()
    assert json.loads(run("info fast.shoal --json", capsys))["optimized"] is True


def test_devices(capsys):
    facts = json.loads(run("devices --json", capsys))
    cpu = facts["devices"][0]
    assert cpu["name"] == "cpu"
    assert cpu["cores"] >= cpu["threads"] >= 1
    assert cpu["memory_bytes"] >= cpu["available_memory_bytes"] > 0
    assert {"numba", "llvm", "cache_folder", "python", "shoal"} <= set(facts)
    assert "cache folder" in run("devices", capsys)


def test_bench(folder, capsys):
    command = "bench --graphs kron10 --kernels bfs --libraries shoal,scipy --repetitions 2 --sources 2 --output b.json"
    assert main([*shlex.split(command), "--quiet", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert [cell["library"] for cell in printed["results"]] == ["shoal", "scipy"]
    assert json.loads(Path("b.json").read_text())["libraries"] == ["shoal", "scipy"]


def test_help_and_version(capsys):
    for command in ("", "--help", "bfs --help", "generate --help", "generate rmat --help"):
        assert "Usage" in run(command, capsys)
    assert run("--version", capsys) == f"shoal {shoal.__version__}\n"


BAD = [
    # (command, words that the line must have)
    ("frobnicate", "'frobnicate' bfs, sssp"),
    ("bfs", "GRAPH"),
    ("bfs numbered.txt", "--source"),
    ("bfs numbered.txt --source", "--source argument"),
    ("bfs numbered.txt --source 7 --colour red", "--colour"),
    ("bfs numbered.txt extra --source 7", "extra"),
    ("bfs missing.txt --source 7", "missing.txt"),
    ("bfs some_folder --source 7", "some_folder directory"),
    ("bfs empty.txt --source 7", "empty.txt empty"),
    ("bfs malformed.txt --source 1", "malformed.txt line 2"),
    ("bfs nan.txt --source 1", "nan"),
    ("bfs numbered.txt --source 8", "source='8' 6 ids: 7, 10, 12"),
    ("bfs numbered.txt --source -7", "source='-7' 6 ids"),
    ("bfs numbered.txt --source alice", "source='alice' 6 ids: 7, 10, 12"),
    ("bfs numbered.txt --source 7.0", "source='7.0'"),
    ("bfs named.txt --source zoe", "source='zoe' 6 ids: 1000000000, 7, alice"),
    ("bfs grid.shoal --source 99", "source='99' whole numbers from 0 to 8"),
    ("bfs numbered.txt --source 7 --target 8", "target='8'"),
    ("bfs numbered.txt --source 7 --cutoff -1", "cutoff=-1 at least 0"),
    ("bfs numbered.txt --source 7 --cutoff 1.5", "--cutoff 1.5"),
    ("bfs numbered.txt --source 7 --source 10 --target 12", "targets one source"),
    ("bfs numbered.txt --source 7 --devices gpu", "devices='gpu' auto, cpu"),
    ("bfs numbered.txt --source 7 --devices cpu:0x0", "devices='cpu:0x0'"),
    ("bfs numbered.txt --source 7 --direction sideways", "direction='sideways' auto, push, pull"),
    ("bfs numbered.txt --source 7 --load-balance lbr", "load_balance='lbr' auto, thread, warp, block, lrb, merge-path"),
    ("bfs numbered.txt --source 7 --devices cpu --load-balance lrb", "load_balance='lrb' cpu auto"),
    ("bfs numbered.txt --source 7 --execution sometimes", "execution='sometimes' auto, bsp, async"),
    ("bfs numbered.txt --source 7 --stats none", "stats='none' full, totals"),
    ("bfs numbered.txt --source 7 --do-a -1", "do_a=-1 at least 0"),
    ("bfs numbered.txt --source 7 --format xml", "format='xml' edge-list"),
    ("bfs numbered.txt --source 7 --output out.xls", "output='out.xls' .parquet, .csv, .npz"),
    ("bfs numbered.txt --source 7 --output out", "output='out' .parquet"),
    ("bfs numbered.txt --source 7 --output nowhere/out.csv", "output='nowhere/out.csv' folder"),
    ("bfs numbered.txt --source 7 --output some_folder/folder.csv", "folder.csv directory"),
    ("generate rmat nowhere/out.shoal --scale 40", "path='nowhere/out.shoal' folder does not exist"),
    ("convert missing.txt nowhere/out.shoal", "path='nowhere/out.shoal' folder does not exist"),
    ("sssp negative.txt --source 1", "-1 negative"),
    ("sssp numbered.txt --source 7 --delta 0", "delta=0 above 0"),
    ("sssp numbered.txt --source 7 --delta nan", "delta=nan"),
    ("sssp numbered.txt --source 7 --cutoff nan", "cutoff=nan at least 0"),
    ("sssp numbered.txt --source 7 --direction pull", "direction='pull' push"),
    ("cc numbered.txt --source 7", "--source"),
    ("cc no_parquet.parquet", "no_parquet.parquet"),
    ("bc numbered.txt --samples 0", "samples=0 from 1 to 6"),
    ("bc numbered.txt --samples 7", "samples=7 from 1 to 6"),
    ("bc numbered.txt --samples 2 --source 7", "samples=2 sources"),
    ("bc numbered.txt --samples 2 --seed -1", "seed=-1"),
    ("bc numbered.txt --source 7 --source 7", "sources once"),
    ("pagerank numbered.txt --damping 1.5", "damping=1.5 at most 1"),
    ("pagerank numbered.txt --damping nan", "damping=nan"),
    ("pagerank numbered.txt --tolerance -1", "tolerance=-1 at least 0"),
    ("pagerank numbered.txt --max-iterations 2", "max_iterations=2 tolerance"),
    ("pagerank numbered.txt --iterations many", "--iterations 'many'"),
    ("pagerank numbered.txt --dtype float16", "dtype='float16' float64, float32"),
    ("pagerank numbered.txt --weighted --output out.csv --dtype int", "dtype='int'"),
    ("generate", "rmat, kronecker, uniform, grid"),
    ("generate barabasi out.shoal", "'barabasi' rmat"),
    ("generate rmat out.shoal", "--scale"),
    ("generate rmat out.shoal --scale 99", "scale=99 from 0 to 40"),
    ("generate rmat out.shoal --scale 40 --edge-factor 1000", "memory"),
    ("generate rmat out.shoal --scale 4 --a 0.9 --b 0.9", "a + b + c"),
    ("generate rmat out.shoal --scale 4 --weights 9", "weights='9' LOW:HIGH"),
    ("generate rmat out.shoal --scale 4 --weights 9:1", "weights[1]=1"),
    ("generate rmat out.xyz --scale 4", "out.xyz .mtx"),
    ("generate rmat nowhere/out.shoal --scale 4", "nowhere/out.shoal"),
    ("generate uniform out.shoal", "scale num_vertices"),
    ("generate grid out.shoal --rows 0 --columns 3", "rows=0"),
    ("generate grid out.shoal --rows 3 --columns 3 --drop 1", "drop=1"),
    ("generate grid out.shoal --rows 3 --columns 3 --scale 4", "--scale"),
    ("convert numbered.txt", "FILE"),
    ("convert numbered.txt out.xyz", "out.xyz .mtx"),
    ("convert missing.txt out.shoal", "missing.txt"),
    ("convert malformed.txt out.shoal", "malformed.txt line 2"),
    ("convert numbered.txt out.shoal.gz", "out.shoal.gz"),
    ("convert numbered.txt out.txt --target-format xml", "format='xml'"),
    ("info missing.txt", "missing.txt"),
    ("validate numbered.txt hops.csv", "--algorithm"),
    ("validate numbered.txt hops.csv --algorithm dfs", "algorithm='dfs' bfs, sssp"),
    ("validate numbered.txt hops.csv --algorithm bfs", "source"),
    ("validate numbered.txt hops.csv --algorithm bfs --source 7 --damping 0.5", "damping=0.5 source, target, cutoff"),
    ("validate numbered.txt hops.csv --algorithm bfs --source 7 --cutoff 1.5", "cutoff=1.5"),
    ("validate numbered.txt hops.csv --algorithm bfs --source 10", "distance"),
    ("validate numbered.txt hops.csv --algorithm cc", "hops.csv 'label' vertex, distance, parent"),
    ("validate numbered.txt hops.txt --algorithm cc", "hops.txt .parquet"),
    ("validate numbered.txt missing.csv --algorithm cc", "missing.csv"),
    ("validate numbered.txt no_parquet.parquet --algorithm cc", "no_parquet.parquet"),
    ("validate numbered.txt short.csv --algorithm cc", "short.csv vertex 10"),
    ("validate numbered.txt strange.csv --algorithm cc", "strange.csv row 0 99"),
    ("validate named.txt hops.csv --algorithm bfs --source 7", "hops.csv"),
    ("bench --graphs kron99", "kron99 kron10"),
    ("bench --kernels dfs", "dfs bfs"),
    ("bench --libraries boost", "boost shoal"),
    ("bench --repetitions 0", "repetitions=0"),
    ("bench --graphs kron10 --output nowhere/b.json", "nowhere/b.json"),
    ("devices --verbose", "--verbose"),
]


@pytest.mark.parametrize(("command", "words"), BAD, ids=[command for command, _ in BAD])
def test_bad_input_gives_one_line_and_no_file(folder, capfd, command, words):
    prepare(folder)
    before = sorted(folder.rglob("*"))
    extra = [] if "--output" in command or command.split(" ")[0] not in ALGORITHMS else ["--output", "result.csv"]
    is_complete = len(command.split()) > 3
    status = main([*shlex.split(command), *(extra if is_complete else [])])
    printed = capfd.readouterr()
    assert status == 2
    assert printed.out == ""
    assert printed.err.startswith("shoal: error: ")
    assert printed.err.count("\n") == 1
    for word in words.split():
        assert word in printed.err, f"{word!r} is not in {printed.err!r}"
    assert sorted(folder.rglob("*")) == before


def prepare(folder):
    """Files that some of the bad commands need."""
    shoal.write(shoal.generate.grid(3, 3, weights=(1, 9)), folder / "grid.shoal")
    (folder / "hops.csv").write_text(
        '"vertex","distance","parent"\n7,0,7\n10,1,7\n12,1,7\n13,2,12\n100,-1,-1\n101,-1,-1\n'
    )
    (folder / "short.csv").write_text("vertex,label\n7,7\n")
    (folder / "strange.csv").write_text("vertex,label\n99,7\n")
    (folder / "some_folder" / "folder.csv").mkdir()


def test_wrong_result_is_found(folder, capsys):
    prepare(folder)
    run("validate numbered.txt hops.csv --algorithm bfs --source 7", capsys)
    text = Path("hops.csv").read_text()
    Path("hops.csv").write_text(text.replace("13,2,12", "13,3,12"))
    assert main(shlex.split("validate numbered.txt hops.csv --algorithm bfs --source 7")) == 2
    assert capsys.readouterr().err.startswith("shoal: error: ")


def test_failing_validation_leaves_no_file(folder, capsys, monkeypatch):
    def wrong(graph, **options):
        raise shoal.ValidationError("the levels of a parent and its child must differ by one")

    monkeypatch.setitem(flow.ALGORITHMS, "bfs", wrong)
    assert main(shlex.split("bfs numbered.txt --source 7 --validate --output hops.csv")) == 2
    assert "differ by one" in capsys.readouterr().err
    assert not list(folder.glob("hops*"))


def test_failing_write_leaves_the_old_file(folder, capsys, monkeypatch):
    Path("hops.csv").write_text("old")

    def break_off(columns, path):
        Path(path).write_text("half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("shoal.tables._write_csv", break_off)
    assert main(shlex.split("bfs numbered.txt --source 7 --output hops.csv")) == 2
    assert "No space left on device" in capsys.readouterr().err
    assert Path("hops.csv").read_text() == "old"
    assert not list(folder.glob(".*"))


def test_too_little_memory(folder, capsys, monkeypatch):
    monkeypatch.setattr(flow, "available_memory_bytes", lambda: 100)
    assert main(shlex.split("bfs numbered.txt --source 7 --output hops.csv")) == 2
    error = capsys.readouterr().err
    assert "100 B is available" in error
    assert not Path("hops.csv").exists()


def test_interrupt(folder, capsys, monkeypatch):
    def interrupt(graph, **options):
        raise KeyboardInterrupt

    monkeypatch.setitem(flow.ALGORITHMS, "cc", interrupt)
    assert main(["cc", "numbered.txt", "--output", "labels.csv"]) == 130
    assert capsys.readouterr().err == "shoal: interrupted\n"
    assert not list(folder.glob("labels*"))


def start(*arguments, **options):
    environment = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}:{os.environ.get('PYTHONPATH', '')}"}
    return subprocess.Popen([sys.executable, "-m", "shoal.cli", *arguments], env=environment, **options)


def test_process_exits_with_the_status(folder):
    process = start("cc", "missing.txt", stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    out, error = process.communicate()
    assert (process.returncode, out) == (2, "")
    assert error.startswith("shoal: error: path='missing.txt'")


@pytest.mark.host_only("about a pipe")
def test_reader_that_stops_early_is_no_error(folder):
    process = start("cc", "numbered.txt", "--json", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() in (0, 1)


@pytest.mark.host_only("observers see runs on the CPU only")
@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a terminal to watch")
def test_terminal_shows_progress_and_ctrl_c_ends_it(folder):
    shoal.write(shoal.generate.rmat(13, weights=(1, 9)), "large.shoal")
    terminal, end = os.openpty()
    process = start("bc", "large.shoal", "--output", "bc.csv", stdout=subprocess.PIPE, stderr=end)
    os.close(end)
    seen = b""
    while b"superstep" not in seen:
        seen += os.read(terminal, 4096)
    assert b"reading large.shoal" in seen
    assert re.search(rb"running bc +superstep [0-9,]+, frontier [0-9,]+ vertices", seen + os.read(terminal, 4096))
    process.send_signal(signal.SIGINT)
    while b"interrupted" not in seen:
        seen += os.read(terminal, 4096)
    assert process.wait() == 130
    os.close(terminal)
    assert process.stdout.read() == b""
    process.stdout.close()
    assert b"Traceback" not in seen
    assert not list(folder.glob("bc*"))
