# SPDX-License-Identifier: Apache-2.0
"""Cost models: a fit finds what it is made from, and keeps to what it has seen; files; what stealing takes."""

import doctest
import itertools

import numpy as np
import pytest

from checks import assert_refused
from shoal import ArgumentError
from shoal.errors import FileFormatError
from shoal.model import COSTS, cost, cost_files, find_cost, find_topology, fitting, load_cost, polynomial, save_cost
from shoal.model.fitting import PolynomialFit, choose_ridge, fit_polynomial, rmsre

pytestmark = pytest.mark.host_only("arrays only: nothing is run")


def samples(seed=0, size=400, noise=0.0):
    """Features as frontiers have them, and seconds that are a polynomial of their scaled values."""
    generator = np.random.default_rng(seed)
    features = np.column_stack([10 ** generator.uniform(0, 4, (size, 4)), generator.uniform(0, 1, (size, 2))])
    flat = polynomial.flatten(features)
    scaled = polynomial.scale(flat, flat.min(axis=0), flat.max(axis=0))
    seconds = 1e-9 * (3 + scaled[:, 0] * scaled[:, 4] + scaled[:, 1] ** 4 - 0.5 * scaled[:, 2] * scaled[:, 5] ** 2)
    seconds *= 1 + noise * generator.standard_normal(size)
    return features, seconds, np.array([f"graph {k % 8}" for k in range(size)])


def test_terms_are_all_products_up_to_the_degree():
    scaled = np.array([2.0, 3.0, 5.0, 7.0, 11.0, 13.0])
    asked = [
        np.prod([scaled[i] for i in chosen])
        for degree in range(4)
        for chosen in itertools.combinations_with_replacement(range(6), degree)
    ]
    assert sorted(polynomial.terms(scaled, 3)) == pytest.approx(sorted(asked))
    assert polynomial.num_terms(4) == 210
    assert polynomial.terms(np.zeros(6), 4).tolist() == [1.0] + [0.0] * 209


def test_fit_finds_a_polynomial():
    features, seconds, groups = samples()
    fit = fit_polynomial(features, seconds, groups)
    assert rmsre(fit.predict(features), seconds) < 1e-3


def test_fit_foretells_groups_it_has_not_seen_better_than_a_plane():
    features, seconds, groups = samples(noise=0.05)
    left = groups == "graph 3"
    errors = {}
    for degree in (1, 4):
        fit = fit_polynomial(features[~left], seconds[~left], groups[~left], degree)
        errors[degree] = rmsre(fit.predict(features[left]), seconds[left])
    assert errors[4] < 0.1 < errors[1]


def test_fit_minimises_the_relative_error():
    # Two values at one frontier: of all constants, this one has the least mean of ((c - t) / t)^2.
    features = np.ones((2, 6))
    seconds = np.array([1e-9, 4e-9])
    fit = PolynomialFit(features, seconds, ridge=1.0)
    best = (1 / seconds).sum() / (1 / seconds**2).sum()
    assert fit.predict(features)[0] == pytest.approx(best)


def test_fit_is_the_same_each_time():
    first, second = (fit_polynomial(*samples(noise=0.1)).coefficients for _ in range(2))
    assert first.tobytes() == second.tobytes()


def test_predictions_keep_to_what_was_seen():
    features, seconds, groups = samples()
    fit = fit_polynomial(features, seconds, groups)
    wild = np.random.default_rng(1).uniform(0, 1e12, (1000, 6))
    found = fit.predict(wild)
    assert seconds.min() <= found.min() <= found.max() <= seconds.max()


def test_ridge_needs_two_graphs():
    features, seconds, _ = samples(size=20)
    assert_refused(lambda: choose_ridge(features, seconds, ["one"] * 20), "1 graph", "at least 2", error=ArgumentError)


@pytest.mark.parametrize("name", COSTS)
def test_shipped_costs_are_never_absurd(name):
    model = find_cost(name)
    generator = np.random.default_rng(2)
    wild = np.vstack([np.zeros(6), 10 ** generator.uniform(-3, 12, (500, 6))])
    found = model.seconds_per_edge(wild)
    assert 1e-12 < found.min() <= found.max() < 1e-7
    assert set(model.source) >= {"coefficients", "nanoseconds_per_item"}


def test_one_vector_and_many_rows_are_priced_alike():
    model = find_cost("cpu")
    rows = np.array([[30.0, 30, 5000, 5000, 0.7, 0.9], [4, 4, 2, 2, 0.1, 1.0]])
    assert [model.seconds_per_edge(row) for row in rows] == pytest.approx(model.seconds_per_edge(rows))


@pytest.mark.parametrize("suffix", [".toml", ".json"])
def test_files_go_there_and_back(tmp_path, suffix):
    path = tmp_path / f"cost{suffix}"
    save_cost(find_cost("cpu"), path)
    assert load_cost(path) == find_cost("cpu") == find_cost(str(path))


def test_own_edges_cost_what_was_measured_and_stolen_ones_the_way():
    model, machine = find_cost("h200-assumed"), find_topology("dgx1-v100")
    slower = model.scaled_to(machine)
    assert slower == pytest.approx(1 / 0.1875)
    per_edge = np.full(8, 25e-12 * slower)
    found = model.cost_matrix(machine, per_edge, bytes_per_edge=8)
    assert found.diagonal().tolist() == pytest.approx(per_edge.tolist())
    # Two links of 25 GB/s, beside what is computed once the edge is there.
    assert found[0, 3] == pytest.approx(8 / 50e9 + per_edge[0] - 8 / 750e9)


def fields(**changes):
    return find_cost("h200-assumed").to_dict() | changes


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"coefficients": [1.0, 2.0]}, ("coefficients", "2 numbers", "210")),
        ({"low": [0.0]}, ("low", "1 numbers", "6")),
        ({"coefficients": [float("nan")]}, ("coefficients[0]", "nan")),
        ({"nanoseconds_low": 0}, ("nanoseconds_low=0", "above 0")),
        ({"nanoseconds_high": 0.001}, ("nanoseconds_high", "at least")),
        ({"compute_scale": -1}, ("compute_scale", "above 0")),
        ({"coefficients": 5}, ("coefficients", "list")),
    ],
)
def test_bad_fields_are_refused(changes, words):
    assert_refused(lambda: cost.CostModel(**fields(**changes)), *words, error=ArgumentError)


def test_bad_files_are_refused(tmp_path):
    path = tmp_path / "cost.json"
    path.write_text('{"name": "half"}')
    assert_refused(lambda: load_cost(path), "cost.json", "no device", error=FileFormatError)
    path.write_text('{"speed": 1}')
    assert_refused(lambda: load_cost(path), "cost.json", "speed", error=FileFormatError)
    assert_refused(lambda: find_cost("gpu"), "cost='gpu'", "cpu", "h200-assumed", error=ArgumentError)
    assert_refused(lambda: find_cost(3), "cost=3", "CostModel", error=ArgumentError)


@pytest.mark.parametrize("module", [cost, cost_files, fitting])
def test_examples(module):
    assert doctest.testmod(module).failed == 0
