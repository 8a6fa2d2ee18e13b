# SPDX-License-Identifier: Apache-2.0
"""From NetworkX's dict of dicts to arrays and back.

All loops over nodes and edges on the way here are inside Python's own `map` and `chain`.  NetworkX keeps what comes out
with the graph (``G.__networkx_cache__``), so that a second call costs no second conversion.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from itertools import chain, repeat
from operator import methodcaller
from typing import Any

import networkx as nx
import numpy as np

from shoal_networkx.graph import ConvertedGraph, Rows
from shoal_networkx.values import EdgeValues, read_values


def convert_from_nx(
    graph: nx.Graph,
    *,
    edge_attrs: dict[Any, Any] | None = None,
    node_attrs: dict[Any, Any] | None = None,
    preserve_edge_attrs: bool = False,
    preserve_node_attrs: bool = False,
    preserve_graph_attrs: bool = False,
    name: str | None = None,
    graph_name: str | None = None,
) -> ConvertedGraph:
    """Return a graph of NetworkX as shoal's, with the attributes of its edges that are asked for."""
    names = list(graph)
    index = dict(zip(names, range(len(names)), strict=True))
    neighbours = _rows_of(graph._adj, names)
    converted = ConvertedGraph(names, index, graph.is_directed(), _read_rows(neighbours, index))
    if graph.is_directed():
        converted.predecessors = _read_rows(_rows_of(graph._pred, names), index)
    if graph.is_multigraph():
        counts = map(len, _row_data(neighbours))
        converted.parallels = np.fromiter(counts, np.int64, converted.num_neighbours)
    if preserve_graph_attrs:
        converted.attributes = dict(graph.graph)
    if preserve_edge_attrs or preserve_node_attrs or node_attrs:
        converted.whole = _copy_whole(graph, converted)
        converted.read_values = functools.partial(_read_attribute, converted.whole, default=1)
    for attribute, default in (edge_attrs or {}).items():
        converted.values[attribute] = _read_attribute(graph, attribute, default)
    return converted


def _rows_of(adjacency: Any, names: Iterable[Any]) -> list[Any]:
    """Return the row of each node as a dict; those of a view are not, and may claim to be longer than they are."""
    rows = list(map(adjacency.__getitem__, names))
    return rows if set(map(type, rows)) <= {dict} else list(map(dict, rows))


def _read_rows(neighbours: list[Any], index: dict[Any, int]) -> Rows:
    indptr = np.zeros(len(neighbours) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, neighbours), np.int64, len(neighbours)), out=indptr[1:])
    dtype = np.int32 if max(len(neighbours), int(indptr[-1])) < 2**31 else np.int64
    found = map(index.__getitem__, chain.from_iterable(neighbours))
    return Rows(indptr.astype(dtype), np.fromiter(found, dtype, indptr[-1]))


def _row_data(neighbours: Iterable[Any]) -> Iterable[Any]:
    """Return what rows have for each neighbour: attributes, or in a multigraph attributes by key."""
    return chain.from_iterable(map(methodcaller("values"), neighbours))


def _read_attribute(graph: nx.Graph, attribute: Any, default: Any) -> EdgeValues:
    data = _row_data(_rows_of(graph._adj, graph))
    if graph.is_multigraph():
        data = _row_data(data)
    return read_values(map(methodcaller("get", attribute, default), data), attribute)


def convert_to_nx(found: Any, *, name: str | None = None) -> Any:
    """Return a converted graph as NetworkX's, and anything else as it is."""
    if not isinstance(found, ConvertedGraph):
        return found
    if found.whole is not None:
        return _copy_whole(found.whole, found)
    graph = _empty(found)
    graph.add_nodes_from(found.names)
    _fill_rows(graph, found, _edge_data(found))
    return graph


def whole_of(found: ConvertedGraph) -> nx.Graph:
    """Return the graph with its attributes: the copy that was kept, or one made of what was."""
    return convert_to_nx(found) if found.whole is None else found.whole


def _empty(found: ConvertedGraph) -> nx.Graph:
    kinds = {
        (False, False): nx.Graph,
        (True, False): nx.DiGraph,
        (False, True): nx.MultiGraph,
        (True, True): nx.MultiDiGraph,
    }
    graph = kinds[found.is_directed(), found.is_multigraph()]()
    graph.graph.update(found.attributes)
    return graph


def _copy_whole(graph: nx.Graph, found: ConvertedGraph) -> nx.Graph:
    """Return a copy with all attributes and with the order of the rows, which ``graph.copy()`` may change."""
    copied = _empty(found)
    copied.add_nodes_from((node, dict(attributes)) for node, attributes in graph.nodes.items())
    data = _row_data(_rows_of(graph._adj, found.names))
    if graph.is_multigraph():
        _fill_rows(copied, found, ({key: dict(edge) for key, edge in edges.items()} for edges in data))
    else:
        _fill_rows(copied, found, map(dict, data))
    return copied


def _fill_rows(graph: nx.Graph, found: ConvertedGraph, data: Iterable[Any]) -> None:
    """Put edges into a graph that has its nodes, in the order of the rows; both ends of an edge share its data."""
    remaining = iter(data)
    for node, row in _named_rows(found, found.successors):
        mine = graph._adj[node]
        for neighbour in row:
            made = next(remaining)
            seen = None if found.is_directed() else graph._adj[neighbour].get(node)
            mine[neighbour] = made if seen is None else seen
    if found.predecessors is not None:
        for node, row in _named_rows(found, found.predecessors):
            graph._pred[node].update((neighbour, graph._succ[neighbour][node]) for neighbour in row)


def _named_rows(found: ConvertedGraph, rows: Rows) -> Iterable[tuple[Any, list[Any]]]:
    neighbours = found.names_of(rows.indices)
    ends = rows.indptr.tolist()
    return ((node, neighbours[ends[i] : ends[i + 1]]) for i, node in enumerate(found.names))


def _edge_data(found: ConvertedGraph) -> Any:
    """Yield what a row has for each neighbour; keys of parallel edges were not kept and are numbers from 0 on."""
    names = list(found.values)
    columns = [_python_values(values) for values in found.values.values()]
    rows = zip(*columns, strict=True) if names else repeat(())
    edges = (dict(zip(names, row, strict=True)) for row in rows)
    if found.parallels is None:
        return edges
    return ({key: next(edges) for key in range(count)} for count in found.parallels.tolist())


def _python_values(values: EdgeValues) -> list[Any]:
    if values.values is not None:
        return values.values
    assert values.numbers is not None
    numbers = values.numbers.tolist()
    return list(map(int, numbers)) if values.is_whole else numbers
