# SPDX-License-Identifier: Apache-2.0
"""Graphs of NetworkX of every kind, and its functions called with shoal and without: the same answers and errors."""

import random
from collections.abc import Iterator

import networkx as nx
import pytest

CLASSES = (nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph)
#: Few weights: of several shortest paths the right one must be taken, also where edges add nothing.
WEIGHTS = {"none": None, "int": [0, 1, 1, 2, 3], "float": [0.0, 0.1, 0.2, 0.3, 1.5]}


def make_graph(kind, weights, seed, num_nodes=14, num_edges=24):
    """A graph whose nodes, and whose rows, are in no order; some nodes are isolated, some edges loops or parallel."""
    draw = random.Random(seed)
    nodes = [f"n{i}" if seed % 2 else i for i in range(num_nodes)]
    draw.shuffle(nodes)
    graph = kind(name=f"graph {seed}")
    graph.add_nodes_from((node, {"color": draw.choice("rgb")}) for node in nodes)
    for _ in range(num_edges):
        u, v = draw.choice(nodes[1:]), draw.choice(nodes[1:])
        data = {} if WEIGHTS[weights] is None else {"weight": draw.choice(WEIGHTS[weights])}
        graph.add_edge(u, v, **data)
    return graph


GRAPHS = {
    f"{kind.__name__}-{weights}-{seed}": make_graph(kind, weights, seed)
    for kind in CLASSES
    for weights in WEIGHTS
    for seed in (1, 2)
}


def materialize(found):
    """What a result says, with the order of everything that has one."""
    if isinstance(found, nx.Graph):
        return type(found), found.graph, found._node, found._adj
    if isinstance(found, dict):
        return [(key, materialize(value)) for key, value in found.items()]
    if isinstance(found, Iterator):
        return [materialize(item) for item in found]
    if isinstance(found, (list, tuple)):
        return type(found), [materialize(item) for item in found]
    return type(found), found


def function_of(name):
    return getattr(nx if hasattr(nx, name) else nx.community, name)


def outcome(name, graph, arguments, **options):
    try:
        return "returned", materialize(function_of(name)(graph, **arguments, **options))
    except NotImplementedError:
        raise
    except Exception as error:
        return "raised", type(error), str(error)


def assert_same(name, graph, **arguments):
    expected = outcome(name, graph, arguments, backend="networkx")
    assert outcome(name, graph, arguments, backend="shoal") == expected


def close(found, expected):
    return list(found) == list(expected) and all(
        type(found[key]) is type(value) and (found[key] == pytest.approx(value, rel=1e-9, abs=1e-15, nan_ok=True))
        for key, value in expected.items()
    )


def assert_near(name, graph, **arguments):
    expected = outcome(name, graph, arguments, backend="networkx")
    if expected[0] == "raised":
        assert outcome(name, graph, arguments, backend="shoal") == expected
    else:
        found, expected = (getattr(nx, name)(graph, **arguments, backend=by) for by in ("shoal", "networkx"))
        assert close(found, expected), (name, arguments)


def ends_of(graph):
    nodes = list(graph)
    return nodes[3], nodes[8]
