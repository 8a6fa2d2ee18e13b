# SPDX-License-Identifier: Apache-2.0
"""Partition: which device owns each vertex, and with it the edges that leave it.

A partitioner returns one number for each vertex, so edges are cut and vertices never.  What it costs a run is less the
edges it cuts than the border: the distinct vertices of other devices that a device's edges mention.  The same seed
gives the same partition, whatever the number of threads.  Pan, Wang, Wu, Yang, Owens, *Multi-GPU graph analytics*
(2017), section V-C.
"""

from __future__ import annotations

import pkgutil
from typing import Any, Protocol

import numpy as np

from shoal.errors import ArgumentError, check_choice, check_integer
from shoal.graph import Graph

#: Device ids take 16 bits.
MAX_DEVICES = 2**16
#: A biased partition may give a device so much more than its share: neighbours are drawn together, balance is kept.
_SLACK = 0.05

#: Partitioners by name; each is loaded when it is asked for.
PARTITIONERS = {
    "random": "shoal.strategies.partition:RandomPartitioner",
    "biased-random": "shoal.strategies.partition:BiasedRandomPartitioner",
    "segment": "shoal.strategies.partition:SegmentPartitioner",
    "metis": "shoal.strategies.partition:MetisPartitioner",
}


class Partitioner(Protocol):
    """Divides the vertices of a graph among devices."""

    def partition(self, graph: Graph, num_devices: int, seed: int) -> np.ndarray:
        """Return the device of each vertex; only random choices may depend on ``seed``."""
        ...


def partition_graph(graph: Graph, num_devices: int, partition: Any, seed: int = 0) -> np.ndarray:
    """Return the device of each vertex as a new array of uint16.

    Parameters
    ----------
    partition
        A name from `PARTITIONERS`, an array of whole numbers, or a function of the graph and ``num_devices`` that
        returns one.

    Examples
    --------
    >>> path = Graph.from_edges([0, 1, 2], [1, 2, 3])
    >>> partition_graph(path, 2, "segment").tolist()
    [0, 0, 1, 1]
    >>> partition_graph(path, 2, lambda graph, num_devices: np.arange(graph.num_vertices) % num_devices).tolist()
    [0, 1, 0, 1]
    """
    num_devices = check_integer("num_devices", num_devices, 1, MAX_DEVICES)
    seed = check_integer("seed", seed, 0, 2**64 - 1)
    if isinstance(partition, str):
        check_choice("partition", partition, PARTITIONERS)
        partitioner: Partitioner = pkgutil.resolve_name(PARTITIONERS[partition])()
        return partitioner.partition(graph, num_devices, seed).astype(np.uint16, copy=False)
    if callable(partition):
        return _check_devices(partition(graph, num_devices), graph.num_vertices, num_devices)
    return _check_devices(partition, graph.num_vertices, num_devices)


def _check_devices(devices: Any, num_vertices: int, num_devices: int) -> np.ndarray:
    """Return a copy of the devices that a user gave, if there is one of those allowed for each vertex."""
    array = np.asarray(devices)
    if array.ndim != 1 or (array.dtype.kind not in "iu" and array.size):
        raise ArgumentError(
            f"partition is {_describe(devices, array)}; allowed: {', '.join(PARTITIONERS)}, or an array of whole "
            "numbers, or a function that returns one"
        )
    if array.size != num_vertices:
        raise ArgumentError(f"partition has {array.size} values for {num_vertices} vertices; it must have one for each")
    wrong = (array < 0) | (array >= num_devices)
    if wrong.any():
        position = int(np.argmax(wrong))
        raise ArgumentError(
            f"partition[{position}]={array[position]} is not a device; devices are from 0 to {num_devices - 1}"
        )
    return array.astype(np.uint16)


def _describe(value: Any, array: np.ndarray) -> str:
    if array.ndim == 0:
        return f"{value!r}"
    return f"an array of {array.dtype} with {array.ndim} dimension{'s' if array.ndim > 1 else ''}"


class RandomPartitioner:
    """Draw a device for each vertex, each as likely as the others: no locality, but balance."""

    def partition(self, graph: Graph, num_devices: int, seed: int) -> np.ndarray:
        """Return the device of each vertex."""
        return _generator(seed).integers(num_devices, size=graph.num_vertices, dtype=np.uint16)


def _generator(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(seed))


class BiasedRandomPartitioner:
    """Draw a device for each vertex, in random order, the likelier the more of its neighbours are there already.

    The weight of a device is the squared number of the vertex's neighbours on it (of a grid it cuts a tenth fewer edges
    than the number itself, of graphs with hubs as many); devices with less than a mean share have a weight of 1 among
    them besides.  A vertex and each edge that leaves it count as a load of 1.  Vertices heavier than the slack go
    first, to the device with the least; after them no device passes its share by more than the slack.  Neighbours are
    those along stored edges: of a directed graph the outgoing ones.
    """

    def partition(self, graph: Graph, num_devices: int, seed: int) -> np.ndarray:
        """Return the device of each vertex."""
        from shoal.backends.cpu.kernels import partition as kernels

        fair = (graph.num_vertices + graph.num_edges) / num_devices
        generator = _generator(seed)
        order, num_hubs = _hubs_first(graph, generator, _SLACK * fair)
        devices = np.full(graph.num_vertices, kernels.UNASSIGNED, np.int32)
        loads = np.zeros(num_devices, np.int64)
        kernels.place_hubs(order, num_hubs, graph.indptr, devices, loads)
        key = generator.integers(2**64, dtype=np.uint64)
        open_devices, counts, touched = np.zeros((3, num_devices), np.int64)
        kernels.place_by_neighbours(
            order[num_hubs:],
            graph.indptr,
            graph.indices,
            key,
            fair,
            (1 + _SLACK) * fair,
            devices,
            loads,
            open_devices,
            counts,
            touched,
        )
        return devices


def _hubs_first(graph: Graph, generator: np.random.Generator, highest: float) -> tuple[np.ndarray, int]:
    """Return the vertices, those of a load above ``highest`` first and heaviest first, the others in random order."""
    order = np.arange(graph.num_vertices, dtype=graph.vertex_dtype)
    generator.shuffle(order)
    is_hub = (1 + graph.degree > highest)[order]
    hubs = order[is_hub]
    hubs = hubs[np.argsort(-graph.degree[hubs], kind="stable")]
    return np.concatenate([hubs, order[~is_hub]]), hubs.size


class SegmentPartitioner:
    """Cut the ids into contiguous ranges of equal work: as many vertices and stored edges on each device."""

    def partition(self, graph: Graph, num_devices: int, seed: int) -> np.ndarray:
        """Return the device of each vertex."""
        work = graph.indptr + np.arange(graph.num_vertices + 1, dtype=np.int64)
        bounds = np.searchsorted(work, int(work[-1]) * np.arange(1, num_devices) // num_devices)
        sizes = np.diff(bounds, prepend=0, append=graph.num_vertices)
        return np.repeat(np.arange(num_devices, dtype=np.uint16), sizes)


class MetisPartitioner:
    """Let METIS look for a partition that cuts few edges and gives each device as many vertices and edges.

    Weights, directions, self-loops and copies of edges do not count as cut.
    """

    def partition(self, graph: Graph, num_devices: int, seed: int) -> np.ndarray:
        """Return the device of each vertex."""
        pymetis = _import_pymetis()
        if graph.num_vertices <= num_devices:
            return np.arange(graph.num_vertices)
        width = pymetis.zero_copy_dtype()
        _check_size(graph, np.iinfo(width).max)
        simple = Graph.from_csr(graph.indptr, graph.indices, directed=graph.is_directed, check=False)
        simple = simple.symmetrized().without_self_loops()
        adjacency = pymetis.CSRAdjacency(simple.indptr.astype(width), simple.indices.astype(width))
        loads = (1 + graph.degree).astype(width)
        options = pymetis.Options(seed=seed % 2**31)  # the least that METIS has room for
        return np.asarray(pymetis.part_graph(num_devices, adjacency, vweights=loads, options=options).vertex_part)


def _check_size(graph: Graph, highest: int) -> None:
    if graph.num_vertices + 2 * graph.num_edges > highest:  # a directed edge is given to METIS in both directions
        raise ArgumentError(
            f"partition='metis' is not possible for {graph.num_vertices} vertices and {graph.num_edges} edges: "
            f"this build of METIS counts up to {highest}"
        )


def _import_pymetis() -> Any:
    try:
        import pymetis
    except ImportError:
        raise ArgumentError(
            "partition='metis' needs pymetis, which is not installed; install it with: pip install 'shoal[partition]'"
        ) from None
    return pymetis
