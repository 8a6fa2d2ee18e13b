# SPDX-License-Identifier: Apache-2.0
"""tests/gpu/sanitize.py finds the sanitizer, asks it as it should, and believes nothing but a clean summary."""

import argparse
import importlib.util
import itertools
import sys
from pathlib import Path

import pytest

from cuda_fake import FakeGPU
from shoal.backends.cuda.device import find_device
from shoal.backends.cuda.phase_run import PhaseRun

pytestmark = pytest.mark.host_only("for machines without a GPU")

PATH = Path(__file__).parent / "gpu" / "sanitize.py"
SAYS_NOTHING = {
    "memcheck": "========= ERROR SUMMARY: 0 errors",
    "racecheck": "========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)",
}
SCRIPT = """#!{python}
import sys
tool = sys.argv[sys.argv.index("--tool") + 1]
print(*sys.argv[1:])
print({said!r}.get(tool, ""))
sys.exit({status})
"""


@pytest.fixture
def sanitize():
    spec = importlib.util.spec_from_file_location("sanitize", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Put a script in the sanitizer's place."""

    def install(said=SAYS_NOTHING, status=0):
        path = tmp_path / "bin" / "compute-sanitizer"
        path.parent.mkdir()
        path.write_text(SCRIPT.format(python=sys.executable, said=said, status=status))
        path.chmod(0o755)
        monkeypatch.setenv("CUDA_HOME", str(tmp_path))

    return install


def test_clean_runs_end_well(sanitize, install, capfd):
    install()
    assert sanitize.main(["--runs", "bfs,cc", "--graphs", "hub"]) == 0
    out = capfd.readouterr().out
    assert f"--tool memcheck --error-exitcode 99 --report-api-errors no {sys.executable} {PATH} --inside" in out
    excluded = "--kernel-name-exclude kernel_substring=cupy_"
    assert f"--tool racecheck --error-exitcode 99 {excluded} {sys.executable} {PATH} --inside" in out
    assert "--inside --runs bfs,cc --graphs hub" in out
    assert out.endswith("sanitize: nothing was found\n")


def test_jobs_share_out_all_runs_on_all_graphs(sanitize, install, capfd):
    install()
    given = argparse.Namespace(
        tools="memcheck,racecheck", runs=",".join(sanitize.RUNS), graphs="hub,64-bit ids", jobs=3
    )
    asked = [
        (tool, graph, run)
        for tool, (*_, runs, _, graph) in sanitize.jobs_of(given)
        for run in runs.split(",")
    ]  # fmt: skip
    assert sorted(asked) == sorted(itertools.product(sanitize.CLEAN, ("hub", "64-bit ids"), sanitize.RUNS))
    assert sanitize.main(["--jobs", "3", "--runs", "bfs,cc"]) == 0
    assert capfd.readouterr().out.count("--inside") == len(sanitize.CLEAN) * len(sanitize.GRAPHS)


@pytest.mark.parametrize(
    ("said", "status"),
    [
        (SAYS_NOTHING, 99),
        ({**SAYS_NOTHING, "memcheck": "========= ERROR SUMMARY: 3 errors"}, 0),
        ({**SAYS_NOTHING, "racecheck": "========= RACECHECK SUMMARY: 1 hazard displayed (0 errors, 1 warning)"}, 0),
        ({}, 0),
    ],
)
def test_whatever_is_found_is_no_success(sanitize, install, said, status, capfd):
    install(said, status)
    assert sanitize.main(["--runs", "bfs"]) == 1
    assert "found something" in capfd.readouterr().out


def test_the_toolkit_comes_before_the_path(sanitize, install, tmp_path, monkeypatch, capfd):
    install({"memcheck": SAYS_NOTHING["memcheck"]})
    monkeypatch.setenv("PATH", "/nowhere")
    assert sanitize.find_sanitizer() == str(tmp_path / "bin" / "compute-sanitizer")
    assert sanitize.main(["--tools", "memcheck"]) == 0
    monkeypatch.delenv("CUDA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert sanitize.find_sanitizer() == str(tmp_path / "bin" / "compute-sanitizer")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "compute-sanitizer is not found; set CUDA_HOME"),
        (["--tools", "synccheck"], "tools='synccheck' is not known; allowed: memcheck, racecheck"),
        (["--runs", "bfs,dfs"], "runs='dfs' is not known; allowed: bfs, "),
        (["--graphs", "large"], "graphs='large' is not known; allowed: undirected, "),
    ],
)
def test_what_is_wrong_is_said_in_one_line(sanitize, arguments, words, monkeypatch, capsys):
    monkeypatch.delenv("CUDA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    assert sanitize.main(arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(f"sanitize: error: {words}")
    assert printed.err.count("\n") == 1


def test_every_algorithm_is_run_on_graphs_that_matter(sanitize):
    graphs = {name: make() for name, make in sanitize.GRAPHS.items()}
    assert graphs["hub"].max_degree > 4096
    assert graphs["directed"].is_directed
    assert graphs["directed"].weights is not None
    assert graphs["64-bit ids"].vertex_dtype == "int64"
    assert {name.split("_")[0] for name in sanitize.RUNS} == {"bfs", "sssp", "cc", "bc", "pagerank", "drawing"}


def test_what_is_watched_runs(sanitize, monkeypatch, capsys):
    gpu = FakeGPU()
    gpu.install(monkeypatch)
    monkeypatch.setattr(sys.modules["cupy"].cuda, "set_allocator", lambda allocator: None, raising=False)
    monkeypatch.setattr(PhaseRun, "least_dealt", PhaseRun.least_dealt)  # or it would stay as the script sets it
    needing_kernels = {"drawing", "async", "stealing"}
    runs = [name for name in sanitize.RUNS if not needing_kernels & set(name.split("_"))]
    assert sanitize.run_all(runs, list(sanitize.GRAPHS)) == 0
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == len(runs) * len(sanitize.GRAPHS)
    assert "sanitize: bfs_pull on hub" in printed
    assert find_device(0).num_processors == sanitize.NUM_PROCESSORS
    find_device.cache_clear()
