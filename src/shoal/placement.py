# SPDX-License-Identifier: Apache-2.0
"""Put a graph on devices once, to run many algorithms on it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from shoal.config import DEFAULT, RESOLVED, RunConfig, parse_devices
from shoal.errors import ArgumentError, check_integer
from shoal.graph import Graph
from shoal.machine import launched_as


@dataclass(frozen=True)
class Placed:
    """A graph on its devices; every algorithm takes it in place of a graph."""

    graph: Graph
    devices: str
    num_devices: int = 1
    partition: Any = "auto"
    duplication: str = "auto"
    owner: Any = field(default=None, repr=False)  # device of each vertex, where there are several
    _shards: dict[Any, tuple[Any, ...]] = field(default_factory=dict, repr=False)
    _lock: Any = field(default_factory=threading.Lock, repr=False)
    _others: dict[str, Placed] = field(default_factory=dict, repr=False)

    @property
    def kind(self) -> str:
        """What its devices are."""
        return parse_devices(self.devices).kind

    @property
    def shards(self) -> tuple[Any, ...]:
        """The shard of the one device that there is."""
        return self.shards_for(None, with_in_edges=False)

    @property
    def has_whole_graph(self) -> bool:
        """Whether all edges are here, and not only parts of them."""
        from shoal.io.outline import place_of

        return place_of(self.graph) is None

    @cached_property
    def alone(self) -> Placed:
        """The same graph on one device, of one thread."""
        return Placed(self.graph, f"{self.kind}:1x1")

    def shards_for(self, duplication: str | None, *, with_in_edges: bool) -> tuple[Any, ...]:
        """Return a shard for each device, made now or by an earlier run."""
        key = (duplication, with_in_edges and duplication is not None)
        found = self._shards.get(key)
        if found is None:
            with self._lock:
                found = self._shards.get(key)
                if found is None:
                    found = self._shards[key] = self._make_shards(duplication, with_in_edges)
        return found

    def with_edges(self, name: str, make: Callable[[], Graph]) -> Placed:
        """Return another graph of the same vertices on the same devices, made once by its name.

        Vertices stay where they are, but for segments, which have as many edges each: there the other graph's count.
        """
        if name not in self._others:
            other = make()
            if isinstance(self.partition, str) and self.partition in ("auto", RESOLVED["partition"]):
                placed = place(other, self.devices, partition=self.partition, duplication=self.duplication)
            else:
                placed = replace(self, graph=other, _shards={}, _lock=threading.Lock(), _others={})
            with self._lock:
                self._others.setdefault(name, placed)
        return self._others[name]

    def keep_parts(self, duplication: str, parts: list[Any], *, with_in_edges: bool) -> None:
        """Use parts that are made already; those with incoming edges serve programs without, too."""
        shards = self._as_shards(parts)
        for has_in_edges in {False, with_in_edges}:
            self._shards[duplication, has_in_edges] = shards

    def _make_shards(self, duplication: str | None, with_in_edges: bool) -> tuple[Any, ...]:
        if duplication is None:
            return self._as_shards([None])
        self._check_parts_can_be_made(duplication, with_in_edges)
        from shoal.strategies.duplication import build_parts

        devices = self.make_devices()
        here = [device.is_here for device in devices]
        parts = build_parts(self.graph, self.owner, duplication, here, with_in_edges=with_in_edges)
        return tuple(device.place(self.graph, part) for device, part in zip(devices, parts, strict=True))

    def _check_parts_can_be_made(self, duplication: str, with_in_edges: bool) -> None:
        """Refuse parts that a folder of shards does not have, where there is no graph to make them of."""
        from shoal.io.outline import place_of

        if self.has_whole_graph:
            return
        place = place_of(self.graph)
        if duplication != self.duplication:
            raise ArgumentError(f"duplication={duplication!r} does not fit: the parts in {place} are of "
                                f"{self.duplication!r}; shoal partition --duplication writes others")  # fmt: skip
        assert with_in_edges
        raise ArgumentError(f"{place} has parts without incoming edges, which this run looks at; shoal partition "
                            "--in-edges writes them, too")  # fmt: skip

    def _as_shards(self, parts: list[Any]) -> tuple[Any, ...]:
        return tuple(device.place(self.graph, part) for device, part in zip(self.make_devices(), parts, strict=True))

    def make_devices(self) -> Sequence[Any]:
        """Return the devices, of all processes; these must ask together."""
        from shoal.backends import find_backend

        spec = parse_devices(self.devices)
        return find_backend(spec.kind).make_devices(spec)


def place(
    graph: Graph,
    devices: str = DEFAULT.devices,
    *,
    partition: Any = DEFAULT.partition,
    duplication: str = DEFAULT.duplication,
    partition_seed: int = DEFAULT.partition_seed,
    shards: str | os.PathLike[str] | None = None,
) -> Placed:
    """Put ``graph`` on ``devices`` and return it as it lies there.

    Parameters
    ----------
    partition, duplication, partition_seed : where there are several devices: see `RunConfig`
    shards : a folder that ``shoal partition --output`` wrote for this graph: its parts are mapped, not made

    Examples
    --------
    >>> import shoal
    >>> placed = shoal.place(shoal.Graph.from_edges([0, 1], [1, 2]), devices="cpu:2", partition="segment")
    >>> shoal.bfs(placed, 0).distance.tolist()
    [0, 1, 2]
    """
    if not isinstance(graph, Graph):
        raise ArgumentError(f"graph is a {type(graph).__name__}; it must be a shoal.Graph")
    config = RunConfig(devices=devices, partition=partition, duplication=duplication, partition_seed=partition_seed)
    if shards is not None:
        return _place_shards(graph, config, os.fspath(shards))
    num_devices = parse_devices(devices).num_devices
    if num_devices == 1:
        return Placed(graph, devices, 1, partition, duplication)
    from shoal.strategies.partition import partition_graph

    name = config.resolved()["partition"] if isinstance(partition, str) else partition
    owner = partition_graph(graph, num_devices, name, partition_seed)
    return Placed(graph, devices, num_devices, partition, duplication, owner)


def _place_shards(graph: Graph, config: RunConfig, path: str) -> Placed:
    """Return a graph placed as the parts in a folder are."""
    from shoal.io.shard_checks import check_edges, name_of
    from shoal.io.shards import read_shards

    manifest, parts = read_shards(path)
    written = (manifest.num_vertices, manifest.num_edges, manifest.is_directed)
    if written != (graph.num_vertices, graph.num_edges, graph.is_directed):
        raise ArgumentError(f"shards={path!r} are parts of another graph: of {manifest.num_vertices} vertices and "
                            f"{manifest.num_edges} stored edges; this one has {graph.num_vertices} and "
                            f"{graph.num_edges}")  # fmt: skip
    devices = f"cpu:{manifest.num_devices}" if config.devices == "auto" else config.devices
    for name, value, fitting in (("devices", parse_devices(devices).num_devices, manifest.num_devices),
                                 ("partition", config.partition, manifest.partition),
                                 ("duplication", config.duplication, manifest.duplication)):  # fmt: skip
        if value not in ("auto", fitting):
            raise ArgumentError(f"{name}={value!r} does not fit: the parts in shards={path!r} are of {fitting!r}")
    owner = np.zeros(graph.num_vertices, np.uint16)
    for part in parts:
        check_edges(os.path.join(path, name_of(part.device)), part)  # a run is to read all of them anyway
        owner[part.owned_ids] = part.device
    placed = Placed(graph, devices, manifest.num_devices, manifest.partition, manifest.duplication, owner)
    if manifest.num_devices > 1:
        placed.keep_parts(manifest.duplication, parts, with_in_edges=manifest.has_in_edges)
    return placed


def open_shards(path: str | os.PathLike[str], devices: str = DEFAULT.devices) -> Placed:
    """Put the parts of a graph in a folder on devices, without the graph: each process maps the parts of its devices.

    Every algorithm that leaves the edges to the devices takes what is returned in place of a graph.

    Parameters
    ----------
    path : what ``shoal partition --output`` or `shoal.partition_files` wrote
    devices : as many as the folder has parts: ``"mpi"`` for the ranks of an MPI job; ``"auto"`` for these in a job,
        and ``"cpu:N"`` elsewhere

    Examples
    --------
    >>> import shoal, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> shoal.write(shoal.Graph.from_edges([0, 1], [1, 2]), folder / "edges.parquet")
    >>> _ = shoal.partition_files(folder / "edges.parquet", folder / "graph.shards", devices=2)
    >>> shoal.bfs(shoal.open_shards(folder / "graph.shards"), 0).distance.tolist()
    [0, 1, 2]
    """
    from shoal.io.opening import open_outline, open_parts

    folder = os.fspath(path)
    manifest, graph, owner = open_outline(folder)
    count = manifest.num_devices
    if devices == "auto":
        devices = _devices_for(count)
    asked = parse_devices(devices).num_devices
    if asked != count:
        raise ArgumentError(f"devices={devices!r} are {asked}, and {folder} has the parts of {count}; there must be as "
                            "many: start as many ranks, or partition again")  # fmt: skip
    placed = Placed(graph, devices, count, manifest.partition, manifest.duplication, owner)
    if count > 1:
        here = [device.is_here for device in placed.make_devices()]
        parts = open_parts(folder, manifest, owner, here)
        placed.keep_parts(manifest.duplication, parts, with_in_edges=manifest.has_in_edges)
    return placed


def _devices_for(count: int) -> str:
    """Return the devices of this machine, or of the MPI job that this process was launched in, for so many parts."""
    num_ranks = launched_as()[1]
    if num_ranks == 1:
        return "cpu" if count == 1 else f"cpu:{count}"
    return f"mpi:cpu:{count // num_ranks}" if count % num_ranks == 0 and count > num_ranks else "mpi"


def placed_for(graph: Graph | Placed, config: RunConfig) -> Placed:
    """Return ``graph`` placed as a configuration asks: as it is, or from the graph's own memory of earlier calls."""
    placed = _placed_for(graph, config)
    check_integer("fanout", config.fanout, 1, placed.num_devices)
    config.check_devices(placed.devices)
    return placed


def _placed_for(graph: Graph | Placed, config: RunConfig) -> Placed:
    if isinstance(graph, Placed):
        _check_placed(graph, config)
        return graph
    if not isinstance(graph, Graph):
        raise ArgumentError(f"graph is a {type(graph).__name__}; it must be a shoal.Graph or what shoal.place returned")
    if not isinstance(config.partition, str):
        return place(graph, config.devices, partition=config.partition)
    key = ("placed", config.devices, config.partition, config.partition_seed)
    placed = graph._cache.get(key)
    if placed is None:
        placed = place(graph, config.devices, partition=config.partition, partition_seed=config.partition_seed)
        graph._cache[key] = placed
    return placed


def _check_placed(placed: Placed, config: RunConfig) -> None:
    """Refuse what a graph is not placed for."""
    if config.devices not in ("auto", placed.devices):
        raise ArgumentError(f"devices={config.devices!r} does not fit: the graph is placed on {placed.devices!r}")
    for name, wanted, given in (("partition", config.partition, placed.partition),
                                ("duplication", config.duplication, placed.duplication)):  # fmt: skip
        if isinstance(given, str) and given == "auto":
            given = RESOLVED.get(name, given)
        is_free = isinstance(wanted, str) and (wanted == "auto" or (name == "duplication" and given == "auto"))
        is_same = wanted is given or (isinstance(wanted, str) and isinstance(given, str) and wanted == given)
        if not is_free and not is_same:
            raise ArgumentError(f"{name}={wanted!r} does not fit: the graph is placed by {name}={given!r}")
