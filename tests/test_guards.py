# SPDX-License-Identifier: Apache-2.0
"""Guards: which rules have one, what it asks, and that asking first changes no result."""

import ast

import numpy as np
import pytest

import shoal
from graphs import random_graph
from shoal import Constant, Program, Vertex, advance, atomic, minimum, rule
from shoal.algorithms.bfs import AsynchronousBFS
from shoal.algorithms.sssp import SSSP, PackedSSSP
from shoal.guards import find_guard


@rule
def shared(value):
    return value > 3


@rule
def relax(src, dst, weight, distance, cutoff):
    proposal = distance[src] + weight
    if proposal >= distance[dst] or proposal > cutoff:
        return False
    return atomic.min(distance, dst, proposal)


@rule
def looks_up(src, dst, table, distance):
    if dst >= len(table) or table[dst] < 0:
        return False
    return atomic.min(distance, dst, distance[src] + table[dst])


@rule
def at_once(src, dst, distance):
    return atomic.min(distance, dst, distance[src] + 1)


@rule
def changes_first(src, dst, distance, seen):
    seen[src] = 1
    if distance[src] >= distance[dst]:
        return False
    return atomic.min(distance, dst, distance[src])


@rule
def counts_first(src, dst, distance, seen):
    before = atomic.add(seen, dst, 1)
    if before > 3:
        return False
    return atomic.min(distance, dst, distance[src])


@rule
def asks_another(src, dst, distance):
    if shared(distance[dst]):
        return False
    return atomic.min(distance, dst, distance[src])


@rule
def has_an_else(src, dst, distance):
    if distance[src] >= distance[dst]:
        return False
    else:  # noqa: RET505
        return atomic.min(distance, dst, distance[src])


@rule
def lets_go_of_true(src, dst, distance):
    if distance[src] >= distance[dst]:
        return True
    return atomic.min(distance, dst, distance[src])


def asked(found):
    return ast.unparse(found.tree.body[-1].value)


def test_a_guard_is_the_rule_up_to_its_first_test():
    guard = find_guard(relax)
    assert guard.parameters == relax.parameters
    assert len(guard.tree.body) == 2
    assert asked(guard) == "not (proposal >= distance[dst]) | (proposal > cutoff)"
    assert len(relax.tree.body) == 3  # the rule is as it was


def test_a_part_that_another_part_allows_is_asked_behind_it():
    assert asked(find_guard(looks_up)) == "not (dst >= len(table) or table[dst] < 0)"


@pytest.mark.parametrize("without", [at_once, changes_first, counts_first, asks_another, has_an_else, lets_go_of_true])
def test_rules_without_a_guard(without):
    assert find_guard(without) is None


def test_searches_have_one():
    rules = [AsynchronousBFS().relax, AsynchronousBFS(True).relax, PackedSSSP(False, True).relax]
    assert all(find_guard(found) is not None for found in [*rules, SSSP(np.dtype(np.int64)).relax])


class Looking(Program):
    """Hops over vertices that a table allows; the table ends before the vertices do."""

    distance = Vertex("int64", fill=2**40, combine=minimum)
    table = Constant("int64", is_array=True)

    def start(self, table):
        self.distance[0] = 0
        self.table = table
        return [0]

    looks_up = looks_up

    def step(self, frontier):
        return advance(frontier, self.looks_up)


@pytest.mark.parametrize("devices", ["cpu:1x1", "cpu:3x1"])
def test_asking_first_changes_no_result(devices):
    graph = random_graph(300, 1500, seed=4)
    table = np.random.default_rng(4).integers(-1, 5, 200)
    expected = shoal.run(Looking(), graph, table=table)
    found = shoal.run(Looking(), graph, table=table, execution="async", devices=devices)
    assert 10 < np.count_nonzero(expected.distance < 2**40) <= 200
    np.testing.assert_array_equal(found.distance, expected.distance)


def test_rows_longer_than_what_is_found_together():
    """A hub's row fills the list of edges that passed several times."""
    count = 5000
    graph = shoal.Graph.from_edges(np.zeros(count, int), np.arange(1, count + 1))
    result = shoal.bfs(graph, 0, execution="async", devices="cpu:2x1", validate=True)
    assert np.count_nonzero(result.distance == 1) == count
