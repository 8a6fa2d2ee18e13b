# SPDX-License-Identifier: Apache-2.0
"""The benchmark: libraries agree, everything measured is in the JSON, and bad requests are refused before measuring."""

import dataclasses
import io
import json
import os
import subprocess
import sys
import time

import numpy as np
import pytest

from checks import assert_refused
from shoal.bench import answers, goals, measure, run_benchmark
from shoal.bench.environment import Cores, seconds_of_others
from shoal.bench.graphs import GRAPHS, BenchmarkGraph, load_graph
from shoal.bench.kernels import KERNELS, choose_sources
from shoal.bench.measure import Plan, measure_graph
from shoal.bench.peers import LIBRARIES
from shoal.bench.report import Cell, write_whole
from shoal.bench.table import format_ms, print_report
from shoal.cli import main
from shoal.errors import ArgumentError
from shoal.graph import Graph
from shoal.interop.edges import single_edges

pytestmark = pytest.mark.host_only("the benchmark compares libraries of the CPU")

INSTALLED = [name for name, library in LIBRARIES.items() if library.is_installed]


def rendered(report):
    file = io.StringIO()
    print_report(report, file)
    return " ".join(file.getvalue().split())  # lines under the table are broken to its width


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("bench")


@pytest.fixture(scope="module")
def report(folder):
    return run_benchmark(
        ["kron10", "grid50"],
        libraries=["shoal", "scipy", "igraph"],
        repetitions=2,
        json_path=folder / "report.json",
    )


@pytest.fixture(scope="module")
def kron10():
    return load_graph("kron10")


def test_libraries_agree(report):
    assert report.disagreements == []
    assert report.failures == []
    for cell in report.cells:
        assert cell.agrees is (True if cell.seconds else None), cell


def test_every_cell_is_sampled_or_says_why_not(report):
    assert len(report.cells) == 2 * len(KERNELS) * 3
    blank = {(cell.kernel, cell.library) for cell in report.cells if not cell.seconds}
    assert blank == {("pagerank", "igraph"), ("bc", "scipy")}
    assert all(len(cell.seconds) == 2 for cell in report.cells if cell.seconds)
    assert all(cell.note for cell in report.cells if not cell.seconds)


def test_json_holds_samples_and_circumstances(report, folder):
    written = json.loads((folder / "report.json").read_text())
    assert written == json.loads(json.dumps(report.to_dict()))
    assert set(written["environment"]["versions"]) == {"shoal", "scipy", "igraph"}
    assert {"cpu", "cores_available", "python", "threads_bound"} <= set(written["environment"])
    assert written["settings"]["repetitions"] == 2
    assert written["settings"]["num_threads"] == len(os.sched_getaffinity(0))
    assert [graph["name"] for graph in written["graphs"]] == ["kron10", "grid50"]
    assert len(written["graphs"][0]["sources"]) == 16
    bfs = next(r for r in written["results"] if (r["kernel"], r["library"]) == ("bfs", "scipy"))
    assert bfs["median_ms"] == pytest.approx(np.median(bfs["seconds"]) * 1e3)
    assert bfs["ratio"] == pytest.approx(bfs["median_ms"] / report.median_ms("kron10", "bfs", "shoal"))
    assert sorted(folder.iterdir()) == [folder / "report.json"]


def test_table_shows_medians_and_ratios(report):
    text = rendered(report)
    for word in ("kron10", "grid50", "shoal", "scipy", "igraph", *(kernel.title for kernel in KERNELS.values())):
        assert word in text
    ratio = report.ratio("kron10", "bfs", "scipy")
    assert f"{format_ms(report.median_ms('kron10', 'bfs', 'scipy'))} ({ratio:.2f}x)" in text
    assert "wrong" not in text
    assert "failed" not in text


def test_plot_is_one_page(report, tmp_path):
    report.write_plot(tmp_path / "plot.html")
    page = (tmp_path / "plot.html").read_text()
    assert "igraph" in page
    assert page.rstrip().endswith("</html>")


@pytest.mark.parametrize("library", INSTALLED)
@pytest.mark.parametrize("graph", ["kron10", "urand12", "grid50"])
def test_every_library_agrees_with_scipy_and_igraph(library, graph):
    libraries = list(dict.fromkeys(["scipy", "igraph", library]))
    found = run_benchmark([graph], libraries=libraries, repetitions=1)
    assert found.failures == []
    assert found.disagreements == []
    assert any(cell.library == library and cell.seconds for cell in found.cells)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: run_benchmark(["kron11"]), ("graph='kron11'", "kron10", "grid2000", "path of a graph file")),
        (lambda: run_benchmark(["missing.mtx"]), ("missing.mtx", "path of a graph file")),
        (lambda: run_benchmark(["kron10"], ["dfs"]), ("kernel='dfs'", "bfs", "pagerank", "bc")),
        (lambda: run_benchmark(["kron10"], libraries=["networkx"]), ("library='networkx'", "networkit", "scipy")),
        (lambda: run_benchmark([]), ("graphs=[]", "at least one")),
        (lambda: run_benchmark("kron10"), ("graphs='kron10'", "list")),
        (lambda: run_benchmark(["kron10"], ["bfs", "bfs"]), ("kernels", "'bfs'", "twice")),
        (lambda: run_benchmark(["kron10"], repetitions=0), ("repetitions=0", "at least 1")),
        (lambda: run_benchmark(["kron10"], num_sources=0), ("num_sources=0", "at least 1")),
        (lambda: run_benchmark(["kron10"], num_threads=4096), ("num_threads=4096", "from 1 to")),
        (lambda: run_benchmark(["kron10"], json_path="no/folder/x.json"), ("json_path='no/folder/x.json'", "folder")),
    ],
)
def test_bad_requests_are_refused(call, words):
    assert_refused(call, *words, error=ArgumentError)


def test_plot_without_plotly_is_refused_at_once(monkeypatch):
    monkeypatch.setattr("shoal.bench.plot.importlib.util.find_spec", lambda name: None if name == "plotly" else name)
    assert_refused(lambda: run_benchmark(["kron10"], plot_path="plot.html"), "plot.html", "plotly", "pip install")


def test_library_that_is_not_installed_is_refused(monkeypatch):
    monkeypatch.setattr("shoal.bench.peers.importlib.util.find_spec", lambda name: None)
    assert_refused(
        lambda: run_benchmark(["kron10"], libraries=["graphblas"]), "'graphblas'", "pip install python-graphblas"
    )


def test_command_prints_a_table(capsys):
    command = "bench --graphs kron10 --kernels bfs,cc --libraries scipy --repetitions 1"
    assert main(command.split()) == 0
    printed = capsys.readouterr()
    assert "connected components" in printed.out
    assert "measuring BFS" in printed.err


def test_command_refuses_with_one_line_and_status_two(capsys, tmp_path):
    path = tmp_path / "out.json"
    assert main(["bench", "--graphs", "kron10", "--kernels", "bsf", "--output", str(path)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert "did you mean 'bfs'" in printed.err
    assert not path.exists()


def test_file_is_made_undirected_and_simple(tmp_path):
    path = tmp_path / "small.txt"
    path.write_text("0 1\n1 0\n1 2\n2 2\n")
    found = run_benchmark([str(path)], ["bfs", "sssp"], ["scipy"], repetitions=1)
    assert found.graphs[0]["num_edges"] == 4
    assert found.graphs[0]["note"] == "made undirected and simple"
    assert found.cell(str(path), "bfs", "scipy").seconds
    assert found.cell(str(path), "sssp", "scipy").note == "the graph has no weights"
    assert "the graph has no weights" in rendered(found)


def test_cores_and_environment_are_given_back():
    affinity, environment = os.sched_getaffinity(0), dict(os.environ)
    with Cores(1).reserved():
        assert len(os.sched_getaffinity(0)) == 1
        assert os.environ["OMP_NUM_THREADS"] == "1"
    assert os.sched_getaffinity(0) == affinity
    assert dict(os.environ) == environment


def test_time_of_other_processes_leaves_out_our_own():
    start, own, others = time.perf_counter(), time.process_time(), seconds_of_others()
    while time.process_time() - own < 0.3:
        sum(range(10_000))
    elapsed = time.perf_counter() - start
    assert -0.1 <= seconds_of_others() - others <= elapsed * os.cpu_count() - 0.3 + 0.1


def test_import_shoal_leaves_the_benchmark_alone():
    code = "import shoal, sys; print([name for name in sys.modules if name.startswith('shoal.bench')])"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert printed.stdout.strip() == "[]"


class FakePeer:
    """A library with the one kernel ``cc`` whose time, answer and failure a test chooses."""

    uses_openmp = False

    def __init__(self, seconds=0.0, components=1, error=None):
        self.notes = {}
        self.calls = 0
        self.seconds, self.components, self.error = seconds, components, error

    def prepare(self, graph, kernels):
        return graph.num_vertices

    def cc(self, native):
        is_warm_up = native == 2**8
        if not is_warm_up:
            self.calls += 1
            time.sleep(self.seconds)
            if self.error is not None:
                raise self.error
        return lambda: {"components": self.components}


def measure_fakes(subject, peers, repetitions):
    plan = Plan((subject.name,), ("cc",), tuple(peers), repetitions, 16)
    cells = measure_graph(subject, peers, plan, [0], Cores(None), lambda message: None)
    return {cell.library: cell for cell in cells}


def test_slow_library_is_repeated_less(kron10, monkeypatch):
    monkeypatch.setattr(measure, "SECONDS_PER_CELL", 0.25)
    cells = measure_fakes(kron10, {"quick": FakePeer(), "slow": FakePeer(seconds=0.1)}, repetitions=6)
    assert len(cells["quick"].seconds) == 6
    assert len(cells["slow"].seconds) == measure.LEAST_REPETITIONS


def test_very_slow_library_is_run_once(kron10, monkeypatch):
    monkeypatch.setattr(measure, "SECONDS_PER_SAMPLE", 0.01)
    cells = measure_fakes(kron10, {"slow": FakePeer(seconds=0.02)}, repetitions=6)
    assert len(cells["slow"].seconds) == 1


def test_graph_that_takes_too_long_gets_one_sample_of_each(kron10, monkeypatch):
    monkeypatch.setattr(measure, "SECONDS_PER_GRAPH", 0.0)
    cells = measure_fakes(kron10, {"one": FakePeer(), "other": FakePeer()}, repetitions=6)
    assert [len(cell.seconds) for cell in cells.values()] == [1, 1]


def test_library_is_spared_graphs_it_cannot_hold(monkeypatch):
    limited = dataclasses.replace(LIBRARIES["scipy"], max_edges=100)
    monkeypatch.setitem(LIBRARIES, "scipy", limited)
    found = run_benchmark(["kron10"], ["bfs", "cc"], ["shoal", "scipy"], repetitions=1)
    assert found.rows() == [("kron10", "bfs"), ("kron10", "cc")]
    assert found.median_ms("kron10", "cc", "scipy") is None
    assert "at most 100 stored edges" in found.cell("kron10", "cc", "scipy").note
    assert found.cell("kron10", "cc", "shoal").seconds


def test_failing_library_does_not_end_the_run(kron10):
    failing = FakePeer(error=RuntimeError("out of luck\nand more"))
    cells = measure_fakes(kron10, {"failing": failing, "quick": FakePeer()}, repetitions=3)
    assert cells["failing"].failure == "RuntimeError: out of luck"
    assert failing.calls == 1
    assert len(cells["quick"].seconds) == 3


def test_wrong_answer_is_marked(kron10):
    cells = measure_fakes(kron10, {"first": FakePeer(), "second": FakePeer(components=2)}, repetitions=1)
    assert cells["first"].agrees
    assert cells["second"].agrees is False


def test_parents_and_distances_make_the_same_answer():
    # 3 - 0 - 1 - 2, 4 alone, searched from 0
    parent = np.array([-9999, 0, 1, 0, -9999])
    distance = np.array([0, 1, 2, 1, -1])
    assert answers.from_parents(parent, 0) == answers.from_distances(distance, distance >= 0)


def test_depths_of_a_long_path_are_found():
    parent = np.arange(1000) - 1
    assert answers.from_parents(parent, 0) == {"reached": 1000, "distance_sum": 499500.0, "largest_distance": 999.0}


def test_answers_do_not_depend_on_names_or_scale():
    assert answers.from_labels(np.array([5, 5, 7])) == answers.from_labels(np.array([0, 0, 1]))
    score = np.array([1.0, 3.0, 4.0])
    assert answers.agree(answers.from_scores(score), answers.from_scores(2 * score), 1e-12)
    assert not answers.agree(answers.from_scores(score), answers.from_scores(score[::-1]), 1e-6)


def test_every_edge_is_halved():
    graph = Graph.from_edges([0, 1, 2], [1, 2, 2], [4, 5, 6])
    src, dst, weights = single_edges(graph)
    assert [src.tolist(), dst.tolist(), weights.tolist()] == [[0, 1, 2], [1, 2, 2], [4, 5, 6]]


def test_sources_have_edges_and_batches_take_turns(kron10):
    sources = choose_sources(kron10.graph, 16)
    assert len(set(sources)) == 16
    assert (kron10.graph.degree[sources] > 0).all()
    assert KERNELS["bfs"].arguments(sources, 17) == (sources[1],)
    assert KERNELS["bc"].arguments(sources, 3) == (sources[12:16],)
    assert KERNELS["cc"].arguments(sources, 3) == ()


def test_large_grids_are_spared_betweenness():
    graph = Graph.from_edges([0], [600 * 600])
    assert "overflows" in BenchmarkGraph("grid2000", graph).reason_against("bc")
    assert BenchmarkGraph("grid50", Graph.from_edges([0], [2499])).reason_against("bc") == ""


def test_goals_are_carried_over_by_the_median_ratio():
    goal = goals.find_goal("kron20", "bfs", {"scipy": 280.0, "igraph": 1084.0, "graphblas": 580.0, "rustworkx": 1.0})
    assert goal.scale == 2.0
    assert goal.here_ms == 32.0
    assert goals.find_goal("kron20", "pagerank", {"scipy": 440.0}).gapbs_here_ms == 286.0
    assert goal.libraries == ("scipy", "igraph", "graphblas")
    assert goals.find_goal("kron20", "bfs", {"rustworkx": 1.0}) is None
    assert goals.find_goal("kron10", "bfs", {"scipy": 1.0}) is None


def test_goals_name_graphs_kernels_and_libraries_that_exist():
    for (graph, kernel), row in goals.MEASURED.items():
        assert graph in GRAPHS
        assert kernel in KERNELS
        assert set(row) <= {goals.GOAL, goals.GAPBS, *LIBRARIES}
        assert {goals.GOAL, goals.GAPBS} <= set(row)


def test_table_shows_goals(report):
    cells = (
        Cell("kron20", "bfs", "shoal", (0.016,), (0.0,), {"reached": 1}, True),
        Cell("kron20", "bfs", "scipy", (0.280,), (0.42,), {"reached": 1}, True),
    )
    pieces = {name: getattr(report, name) for name in ("command", "date", "environment", "settings", "graphs")}
    text = rendered(type(report)(**pieces, libraries=("shoal", "scipy"), cells=cells))
    assert "goal here" in text
    assert "17.50x" in text
    assert "0.50" in text
    assert "other processes kept 1.5 cores busy" in text


def test_no_part_of_a_file_is_left(tmp_path, monkeypatch):
    def fail(*names):
        raise OSError("disk full")

    monkeypatch.setattr("shoal.bench.report.os.replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_whole(tmp_path / "report.json", "{}")
    assert list(tmp_path.iterdir()) == []
