# SPDX-License-Identifier: Apache-2.0
"""What NetworkX's dispatcher asks of a backend: functions by name, whether they can and should run, conversions."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Any

import networkx as nx

from shoal_networkx.conversion import convert_from_nx, convert_to_nx
from shoal_networkx.graph import ConvertedGraph
from shoal_networkx.info import FUNCTIONS


class Backend:
    """The object that NetworkX finds by the entry point; its attributes are the functions of the table."""

    convert_from_nx = staticmethod(convert_from_nx)
    convert_to_nx = staticmethod(convert_to_nx)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in FUNCTIONS:
            raise AttributeError(f"shoal serves no function {name!r} of NetworkX")
        return find_function(name)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *FUNCTIONS]

    def can_run(self, name: str, args: Any, kwargs: dict[str, Any]) -> bool | str:
        """Return True, or why these arguments are left to NetworkX."""
        if name not in FUNCTIONS:
            return f"shoal serves no function {name!r}"
        try:
            given = signature_of(name).bind(*args, **kwargs)
        except TypeError as error:
            return f"the arguments are not those of {name}: {error}"
        given.apply_defaults()
        refusals = (_refuse_graph, *getattr(find_function(name), "refusals", ()))
        return next((reason for refuse in refusals if (reason := refuse(given.arguments))), True)

    def should_run(self, name: str, args: Any, kwargs: dict[str, Any]) -> bool | str:
        """Return True, or why NetworkX is quicker."""
        graph = args[0] if args else kwargs.get("G")
        converting, converted = FUNCTIONS[name][1]
        if asks_for_some_nodes(name, args, kwargs):
            converting = None
        least = converted if is_converted(graph) else converting
        if least is None:
            return f"{name} takes NetworkX less than a conversion" if converted else f"{name} mostly looks at few edges"
        if has_size(graph, least):
            return True
        return f"NetworkX is quicker on graphs of less than {least} nodes and edges"


@functools.cache
def find_function(name: str) -> Callable[..., Any]:
    """Return shoal's function of that name."""
    return getattr(import_module(f"shoal_networkx.{FUNCTIONS[name][0]}"), name)


@functools.cache
def signature_of(name: str) -> inspect.Signature:
    """Return the arguments of a function, which are those that NetworkX's has."""
    return inspect.signature(find_function(name))


def asks_for_some_nodes(name: str, args: Any, kwargs: dict[str, Any]) -> bool:
    """Whether a call asks for the values of nodes that it names, for which NetworkX looks at their neighbours only."""
    return signature_of(name).bind_partial(*args, **kwargs).arguments.get("nodes") is not None


def is_converted(graph: Any) -> bool:
    """Whether a graph is shoal's already, or one for shoal is kept with it."""
    if isinstance(graph, ConvertedGraph):
        return True
    kept = (getattr(graph, "__networkx_cache__", None) or {}).get("backends", {}).get("shoal", {})
    return any(isinstance(made, ConvertedGraph) for made in list(kept.values()))


def has_size(graph: Any, least: int) -> bool:
    """Whether a graph has so many nodes and edges; parallel edges count once, loops of undirected graphs a half."""
    if len(graph) >= least:
        return True
    neighbours = graph.num_neighbours if isinstance(graph, ConvertedGraph) else sum(map(len, graph._adj.values()))
    return len(graph) + neighbours / (1 if graph.is_directed() else 2) >= least


def _refuse_graph(given: dict[str, Any]) -> str | None:
    graph = given["G"]
    if isinstance(graph, ConvertedGraph):
        return None
    if not isinstance(graph, nx.Graph):
        return f"G is a {type(graph).__name__}; it must be a graph of NetworkX"
    if type(graph).__getitem__ is not nx.Graph.__getitem__:
        return f"G is a {type(graph).__name__}, which finds neighbours in a way of its own"
    return None


backend = Backend()
