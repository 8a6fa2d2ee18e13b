# SPDX-License-Identifier: Apache-2.0
"""Features of frontiers: exact ones as NumPy counts them, binned ones within the bounds that the module states."""

import doctest
import math

import numpy as np
import pytest

import shoal
from checks import assert_refused
from shoal import ArgumentError
from shoal.model import FEATURES, features, frontier_features
from shoal.model.features import ENTROPY_ERROR, GINI_ERROR, unevenness

pytestmark = pytest.mark.host_only("arrays only: nothing is run")
ROUNDING = 1e-9


def exact(out_degrees, in_degrees):
    """The formulas of GUM's table I, written out."""
    ascending, size = np.sort(out_degrees).astype(float), len(out_degrees)
    total = ascending.sum()
    ranks = np.arange(1, size + 1)
    gini = 2 * (ranks * ascending).sum() / (size * total) - (size + 1) / size
    parts = ascending[ascending > 0] / total
    entropy = -(parts * np.log(parts)).sum() / math.log(size)
    return [in_degrees.mean(), out_degrees.mean(), np.ptp(in_degrees), np.ptp(out_degrees), gini, entropy]


def rows(degrees):
    return np.cumsum([0, *degrees], dtype=np.int64)


def draw(kind, generator, size):
    return {
        "power law": lambda: np.minimum(generator.zipf(1.7, size), 10**9),
        "wide": lambda: (10 ** generator.uniform(0, 9, size)).astype(np.int64),
        "near a bin's ends": lambda: 2 ** generator.integers(4, 30, size) * 9 // 8 - generator.integers(0, 2, size),
        "road": lambda: generator.integers(0, 5, size),
    }[kind]()


@pytest.mark.parametrize("kind", ["power law", "wide", "near a bin's ends", "road"])
@pytest.mark.parametrize("size", [2, 7, 300])
def test_features_against_numpy(kind, size):
    for seed in range(20):
        generator = np.random.default_rng([seed, size])
        out, into = draw(kind, generator, size), draw("road", generator, size)
        out[0] += out.sum() == 0  # without any edge there is nothing to compare
        queue = generator.permutation(size)[: generator.integers(2, size + 1)]
        if not out[queue].sum():
            continue
        found = frontier_features(rows(out), queue, rows(into))
        asked = exact(out[queue], into[queue])
        assert found[:4].tolist() == pytest.approx(asked[:4], rel=1e-12)
        assert -ROUNDING <= asked[4] - found[4] <= GINI_ERROR + ROUNDING
        assert -ROUNDING <= found[5] - asked[5] <= ENTROPY_ERROR / math.log(len(queue)) + ROUNDING
        if kind == "road":  # small degrees have a bin each
            assert found[4:].tolist() == pytest.approx(asked[4:], abs=1e-9)


def test_bounds_are_nearly_reached():
    # Half of the edges at each end of the widest bin: what a bin can hide at most.
    low, high = 2**20, 2**20 * 9 // 8 - 1
    degrees = np.array([low] * 52 + [high] * 48)
    found, asked = frontier_features(rows(degrees), np.arange(100)), exact(degrees, degrees)
    assert asked[4] - found[4] > 0.9 * GINI_ERROR
    assert (found[5] - asked[5]) * math.log(100) > 0.4 * ENTROPY_ERROR


def test_every_degree_has_a_bin():
    degrees = np.array([0, 1, 15, 16, 17, 2**31, 2**40, 2**61])
    indptr = np.zeros(16, np.int64)
    indptr[1::2] = degrees  # vertex 2k has degrees[k]
    found = frontier_features(indptr, np.arange(0, 15, 2), indptr)
    assert found[3] == 2**61
    assert found[1] == pytest.approx(degrees.mean())


def test_unevenness_with_a_bin_for_every_value_is_exact():
    values, counts = np.array([1, 4, 9]), np.array([3, 1, 2])
    degrees = np.repeat(values, counts)
    assert unevenness(counts, counts * values) == pytest.approx(exact(degrees, degrees)[4:])


@pytest.mark.parametrize("degrees", [[3], [0, 0, 0], [5, 5, 5]])
def test_even_frontiers(degrees):
    found = frontier_features(rows(degrees), range(len(degrees)))
    assert found[2:].tolist() == pytest.approx([0, 0, 0, 1])


def test_empty_frontier_is_all_zeros():
    assert frontier_features([0, 3], np.zeros(0, np.int32)).tolist() == [0] * len(FEATURES)


def test_directed_graph_has_both_degrees():
    graph = shoal.Graph.from_edges([0, 1, 2, 2], [3, 3, 3, 0], directed=True)
    found = frontier_features(graph.indptr, [2, 3], graph.reverse().indptr)
    assert found[:4].tolist() == [1.5, 1.0, 3.0, 2.0]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: frontier_features([0, 1], [1]), ("queue", "1 to 1", "0 to 0")),
        (lambda: frontier_features([0, 1], [-1]), ("queue", "-1")),
        (lambda: frontier_features([0, 1], [0.5]), ("queue", "float64", "integers")),
        (lambda: frontier_features([0, 1], [0], [0, 1, 2]), ("in_indptr", "3 entries", "2")),
    ],
)
def test_bad_frontiers_are_refused(call, words):
    assert_refused(call, *words, error=ArgumentError)


def test_examples():
    assert doctest.testmod(features).failed == 0
