# SPDX-License-Identifier: Apache-2.0
"""Training of cost models and modelled scaling, from graphs to files, and as commands."""

import json
from functools import partial

import numpy as np
import pytest

import shoal
from checks import assert_refused
from shoal import ArgumentError
from shoal.bench import collecting, scaling, training
from shoal.bench.collecting import Samples, collect, real_graphs
from shoal.bench.scaling import part_features, run_scaling, write_scaling
from shoal.bench.scaling_plot import check_plotters
from shoal.bench.training import MODELS, compare_models, train_cost
from shoal.cli import main
from shoal.commands.benchmark import parse_counts
from shoal.model import frontier_features, load_cost, pricing

pytestmark = pytest.mark.host_only("supersteps are those of the CPU")

SMALL = {f"rmat{scale}": partial(shoal.generate.rmat, scale, seed=scale) for scale in (8, 9, 10)}
ANY_SIZE = {"least_edges": 1, "least_vertices": 1}


@pytest.fixture(scope="module")
def found():
    return collect(SMALL, "cpu:1x1", repetitions=2, **ANY_SIZE)


@pytest.fixture(scope="module")
def report():
    return run_scaling(
        "dgx1-v100", [1, 2, 4], graph="kron10", algorithms=["bfs"], exchanges=(("broadcast", 1), ("butterfly", 4))
    )


def test_supersteps_have_the_features_of_their_frontiers(found):
    graph = SMALL["rmat10"]()
    distance = shoal.bfs(graph, int(graph.degree.argmax())).distance
    first = found.select((found.graphs == "rmat10") & (found.algorithms == "bfs"))
    queue = np.flatnonzero(distance == 1)
    assert int(graph.degree[queue].sum()) in first.edges.tolist()
    row = first.edges.tolist().index(int(graph.degree[queue].sum()))
    assert first.features[row].tolist() == frontier_features(graph.indptr, queue).tolist()


def test_supersteps_are_positive_and_of_both_algorithms(found):
    assert (found.seconds_per_edge > 0).all()
    assert set(found.algorithms) == {"bfs", "pagerank"}
    assert set(found.graphs) == set(SMALL)


def test_short_supersteps_and_small_graphs_are_left_out(found):
    fewer = collect(SMALL, "cpu:1x1", repetitions=1, least_edges=2**13, least_vertices=2**10)
    assert set(fewer.graphs) == {"rmat10"}
    assert fewer.edges.min() >= 2**13


def test_real_graphs_are_those_of_a_folder(tmp_path):
    (tmp_path / "a.b.txt").write_text("0 1\n1 2\n")
    (tmp_path / "a.c.txt").write_text("0 1\n")
    (tmp_path / "notes.md").write_text("none")
    graphs = real_graphs(tmp_path)
    assert sorted(graphs) == ["a.b.txt", "a.c.txt"]
    assert graphs["a.b.txt"]().num_edges == 4
    assert_refused(lambda: real_graphs(tmp_path / "x"), "data=", "folder", error=ArgumentError)


def test_models_are_compared_on_graphs_left_out():
    # Every graph has its own cost and nothing in its features says so: no model can do better than guess.
    generator = np.random.default_rng(0)
    graphs = np.repeat([f"g{k}" for k in range(10)], 20)
    features = np.column_stack([10 ** generator.uniform(0, 3, (200, 4)), generator.uniform(0, 1, (200, 2))])
    seconds = np.repeat(np.where(np.arange(10) % 2, 1e-9, 4e-9), 20)
    made = Samples(graphs, np.full(200, "bfs"), features, np.full(200, 10**6), seconds)
    errors, _, predicted = compare_models(made)
    assert set(errors) == set(MODELS)
    assert min(errors.values()) > 0.3
    assert len(predicted) == 200


def test_training_writes_a_cost_model(tmp_path, monkeypatch):
    monkeypatch.setattr(training, "_PAIR_SCALES", (10,))
    monkeypatch.setattr(training, "_LEAST_ITEMS", 1)
    path = tmp_path / "cost.toml"
    trained = train_cost(graphs=SMALL, output=path, repetitions=1, **ANY_SIZE)
    assert load_cost(path) == trained.cost
    assert trained.cost.degree == 4
    assert set(trained.rmsre_by_graph) == set(SMALL)
    assert json.loads(json.dumps(trained.to_dict()))["num_graphs"] == 3


def test_training_refuses_before_it_measures(monkeypatch):
    assert_refused(lambda: collect(SMALL, "cpu:2"), "devices='cpu:2'", "one device", error=ArgumentError)
    monkeypatch.setattr("shoal.bench.training.importlib.util.find_spec", lambda name: None)
    assert_refused(train_cost, "scikit-learn", "shoal[train]", error=ArgumentError)


def test_scaling_has_all_combinations(report):
    strong = [point for point in report.points if point.kind == "strong"]
    assert len([p for p in strong if p.num_devices == 1]) == 1
    assert len([p for p in strong if p.num_devices == 2]) == 4  # there are no four devices for the fanout
    assert len([p for p in strong if p.num_devices == 4]) == 8
    assert report.left_out == ("butterfly of fanout 4 on 2 devices: there are fewer",)
    assert {p.graph for p in report.points if p.kind == "weak"} == {"kron10", "kron11", "kron12"}


def test_scaling_says_that_it_is_modelled(report):
    plain = json.loads(json.dumps(report.to_dict()))
    assert plain["timing"] == "modelled"
    assert all(point["timing"] == "modelled" for point in plain["points"])
    one = next(point for point in plain["points"] if point["num_devices"] == 1)
    assert one["speedup"] == 1
    for point in plain["points"]:
        assert sum(point[f"{part}_seconds"] for part in pricing.PARTS) == pytest.approx(point["seconds"])


def test_scaling_is_written_as_page_and_picture(report, tmp_path):
    write_scaling(report, tmp_path / "page.html", tmp_path / "picture.png")
    page = (tmp_path / "page.html").read_text()
    assert "butterfly fanout 4, stealing both" in page
    assert "modelled on" in page
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")


def test_features_are_those_of_each_part():
    graph = shoal.generate.rmat(8, seed=1)
    owner = np.arange(graph.num_vertices) % 3
    placed = shoal.place(graph, "cpu:3", partition=owner)
    found = part_features(placed)
    assert found[2].tolist() == frontier_features(graph.indptr, np.flatnonzero(owner == 2)).tolist()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: run_scaling("dgx1-v100", [9]), ("num_devices=9", "dgx1-v100")),
        (lambda: run_scaling("dgx9", [1]), ("topology='dgx9'", "dgx1-v100")),
        (lambda: run_scaling("dgx1-v100", [1], algorithms=["dfs"]), ("algorithm='dfs'", "bfs")),
        (lambda: run_scaling("dgx1-v100", [1], kinds=["odd"]), ("kind='odd'", "strong")),
        (lambda: run_scaling("dgx1-v100", [1], cost="gpu"), ("cost='gpu'", "cpu")),
        (lambda: run_scaling("dgx1-v100", [1], count_factor=0), ("count_factor=0", "above 0")),
        (lambda: check_plotters(None, "no/folder/x.png"), ("image='no/folder/x.png'", "folder")),
        (lambda: parse_counts("1-"), ("devices='1-'", "1-16")),
        (lambda: parse_counts("0-2"), ("devices='0-2'", "1-16")),
        (lambda: parse_counts("8-2"), ("devices='8-2'", "1-16")),
    ],
)
def test_bad_requests_are_refused(call, words):
    assert_refused(call, *words, error=ArgumentError)


def test_plotting_names_the_extra(monkeypatch):
    monkeypatch.setattr("shoal.bench.scaling_plot.importlib.util.find_spec", lambda name: None)
    assert_refused(lambda: check_plotters(None, "x.png"), "matplotlib", "shoal[report]", error=ArgumentError)


def test_counts_of_devices():
    assert parse_counts("1-3,8") == [1, 2, 3, 8]


def test_command_prints_a_table(capsys):
    command = "bench --scaling --topology dgx1-v100 --devices 1,2 --graphs kron10 --kernels bfs"
    assert main(command.split()) == 0
    printed = capsys.readouterr()
    assert "modelled" in printed.out
    assert "assumed" in printed.out
    assert "stealing ownership" in printed.out


def test_commands_exclude_one_another(capsys):
    assert main(["bench", "--scaling", "--train-cost"]) == 2
    assert "one of them" in capsys.readouterr().err


def test_generated_graphs_are_of_three_kinds():
    names = set(collecting.generated_graphs((6,), (4,)))
    assert names == {"rmat6x4", "uniform6x4", "grid8"}
    assert set(scaling.ALGORITHMS) == {"bfs", "sssp", "cc", "bc", "pagerank"}
