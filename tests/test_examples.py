# SPDX-License-Identifier: Apache-2.0
"""What a newcomer is shown works: the examples, and the code and the commands of the README."""

import importlib.util
import re
import runpy
import shlex
import sys
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

import shoal
from graphs import from_pairs, random_graph
from shoal.algorithms.verify_bfs import verify_bfs
from shoal.cli import main

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = sorted(path for path in (ROOT / "examples").glob("*.py") if path.name != "demo.py")
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def load(name):
    """Import an example without running what it does as a script."""
    specification = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def graph():
    return random_graph(400, 3000, seed=5).deduplicated().without_self_loops()


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(path, capsys):
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out


@pytest.mark.parametrize("number", range(len(blocks("python"))))
def test_code_of_the_readme_runs(number, tmp_path, capsys):
    script = tmp_path / "block.py"  # a file, since rules are compiled from their source
    script.write_text(blocks("python")[number], encoding="utf-8")
    runpy.run_path(str(script), run_name="__main__")
    assert capsys.readouterr().out


def test_quick_start_is_short():
    assert len([line for line in blocks("python")[0].splitlines() if line.strip()]) <= 10


def test_commands_of_the_readme_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    commands = [line.removeprefix("$ shoal ") for line in blocks("console")[0].splitlines()]
    for command in commands:
        assert main(shlex.split(command)) == 0, command
    assert capsys.readouterr().err == ""
    assert {path.name for path in tmp_path.iterdir()} == {"graph.shoal", "hops.parquet", "graph.mtx.gz"}


def test_the_two_commands_come_first():
    first = re.search(r"^```\n(.*?)^```", README, re.MULTILINE | re.DOTALL).group(1)
    assert [line.split("#")[0].strip() for line in first.splitlines()] == ["make demo", "make test"]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "\ndemo:" in makefile
    assert "\ntest:" in makefile


@pytest.fixture(params=["example", "README"])
def k_core(request, tmp_path):
    if request.param == "example":
        return load("k_core").KCore()
    script = tmp_path / "block.py"
    script.write_text(next(code for code in blocks("python") if "class KCore" in code), encoding="utf-8")
    return runpy.run_path(str(script))["KCore"]()


@pytest.mark.parametrize("devices", ["auto", "cpu:3"])
@pytest.mark.parametrize("k", [0, 1, 3, 5, 8, 100])
def test_k_core_is_networkx_s(graph, k_core, k, devices):
    result = shoal.run(k_core, graph, k=k, degree=graph.degree, devices=devices)
    expected = nx.k_core(as_networkx(graph), k).nodes
    assert set(np.flatnonzero(result.in_core)) == set(expected)


@pytest.mark.parametrize("devices", ["auto", "cpu:3"])
def test_core_numbers_are_networkx_s(graph, devices):
    result = shoal.run(load("core_numbers").CoreNumbers(), graph, degree=graph.degree, devices=devices)
    expected = nx.core_number(as_networkx(graph))
    assert result.core.tolist() == [expected[v] for v in range(graph.num_vertices)]


@pytest.mark.parametrize("devices", ["auto", "cpu:3"])
def test_hops_are_those_of_bfs(graph, devices):
    level = shoal.run(load("hops").Hops(), graph, source=3, devices=devices).level
    distance = shoal.bfs(graph, 3).distance
    assert np.where(distance < 0, 2**31 - 1, distance).tolist() == level.tolist()


@pytest.mark.parametrize("devices", ["auto", "cpu:3"])
def test_a_search_is_bfs(graph, devices):
    found = shoal.run(load("search").Search(), graph, source=3, devices=devices)
    assert found.distance.tolist() == shoal.bfs(graph, 3).distance.tolist()
    verify_bfs(graph, 3, found.distance, found.parent)


@pytest.mark.parametrize("devices", ["auto", "cpu:3"])
def test_ranks_are_those_of_pagerank(graph, devices):
    found = shoal.run(load("ranks").Ranks(), graph, degree=graph.degree, devices=devices)
    assert (graph.degree == 0).any()
    np.testing.assert_allclose(found.rank, shoal.pagerank(graph, iterations=20).rank, rtol=1e-4)


@pytest.mark.parametrize("devices", ["auto", "cpu:3"])
def test_labels_are_the_solution_of_the_linear_system(devices):
    graph = from_pairs([(0, 1), (1, 2), (2, 3), (3, 4), (1, 3), (5, 6)])
    program = load("label_propagation").LabelPropagation()
    arguments = {"known": {0: 1.0, 4: 0.0}, "degree": graph.degree, "tolerance": 1e-12}
    score = shoal.run(program, graph, devices=devices, **arguments).score
    free = [1, 2, 3]
    laplacian = np.diag(graph.degree) - graph.to_scipy().toarray()
    expected = np.linalg.solve(laplacian[np.ix_(free, free)], -laplacian[np.ix_(free, [0])][:, 0])
    assert score[free] == pytest.approx(expected, abs=1e-9)
    assert score[[0, 4, 5]].tolist() == [1.0, 0.0, 0.5]


def as_networkx(graph):
    result = nx.Graph()
    result.add_nodes_from(range(graph.num_vertices))
    src = np.repeat(np.arange(graph.num_vertices), graph.degree)
    result.add_edges_from(zip(src.tolist(), graph.indices.tolist(), strict=True))
    return result


def test_demo_is_what_make_demo_runs(tmp_path, monkeypatch, capsys):
    demo = load("demo")
    monkeypatch.setattr(demo, "ROOT", tmp_path)
    monkeypatch.setattr(demo, "GENERATE", ["generate", "rmat", "demo/graph.shoal", "--scale", "8", "--weights", "1:9"])
    monkeypatch.setattr(demo, "RUNS", {"bfs": ["--source", "3"], "cc": []})
    monkeypatch.setenv("PYTHONPATH", f"{ROOT / 'src'}:{':'.join(sys.path)}")
    demo.main()
    assert capsys.readouterr().out.count("valid") >= 2
    assert (tmp_path / "demo" / "cc.parquet").exists()
