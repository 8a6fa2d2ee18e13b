# SPDX-License-Identifier: Apache-2.0
"""The libraries that are compared: one small class each, behind one Protocol.

A class has a method for each kernel that its library offers, named as the kernel; a kernel without a method is left
blank.  A method does the timed work and returns a function that reads the answer, which is called after the clock has
stopped: what a library spends on making Python lists of its result is not counted against it.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from shoal.bench.answers import Answer
from shoal.errors import ArgumentError, check_choice
from shoal.graph import Graph

Reader = Callable[[], Answer]


class Peer(Protocol):
    """A library ready to run; kernels are further methods ``kernel(native, *arguments) -> Reader``."""

    #: Whether it runs on OpenMP threads, which the calling thread is one of.
    uses_openmp: ClassVar[bool]
    #: What a reader must know about how a kernel is run, by the kernel's name.
    notes: ClassVar[dict[str, str]]

    def __init__(self, num_threads: int) -> None: ...

    def prepare(self, graph: Graph, kernels: list[str]) -> Any:
        """Return the library's own form of the graph; the time it takes is not measured."""
        ...


@dataclass(frozen=True)
class Library:
    """Where a library is found."""

    name: str
    class_name: str
    module: str
    distribution: str
    #: Graphs of more stored edges are not given to it.
    max_edges: float = math.inf

    @property
    def is_installed(self) -> bool:
        """Whether it can be imported."""
        return importlib.util.find_spec(self.module) is not None

    @property
    def version(self) -> str:
        """The installed version."""
        if self.name == "shoal":
            import shoal

            return shoal.__version__
        return importlib.metadata.version(self.distribution)

    def load(self, num_threads: int) -> Peer:
        """Import the library and return its peer."""
        module = importlib.import_module(f"shoal.bench.peers.{self.name}")
        return getattr(module, self.class_name)(num_threads)


LIBRARIES = {
    library.name: library
    for library in (
        Library("shoal", "ShoalPeer", "shoal", "shoal"),
        Library("graphblas", "GraphblasPeer", "graphblas", "python-graphblas"),
        Library("networkit", "NetworkitPeer", "networkit", "networkit"),
        Library("igraph", "IgraphPeer", "igraph", "igraph"),
        Library("scipy", "ScipyPeer", "scipy", "scipy"),
        # Its edges are Python objects of 100 bytes each; kron20 takes it 5 to 20 s a kernel, kron22 would take minutes.
        Library("rustworkx", "RustworkxPeer", "rustworkx", "rustworkx", max_edges=50_000_000),
    )
}


def check_library(name: str) -> str:
    """Return ``name`` if it is a library that can be compared and is installed."""
    library = LIBRARIES[check_choice("library", name, LIBRARIES)]
    if not library.is_installed:
        raise ArgumentError(f"library={name!r} is not installed; install it with: pip install {library.distribution}")
    return name
