# SPDX-License-Identifier: Apache-2.0
"""partition_files(): from files of edges to a folder of shards, in as much memory as the caller gives."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

from shoal.config import parse_bytes
from shoal.errors import ArgumentError, check_choice, check_integer
from shoal.generate import Pieces
from shoal.interop.vertex_ids import EdgeRows
from shoal.io.edge_stream import EdgeStream, open_stream
from shoal.io.files import check_new_folder
from shoal.io.options import ReadOptions
from shoal.sharding.budget import Budget
from shoal.sharding.request import Request
from shoal.sharding.team import Alone, Team, find_team
from shoal.strategies.duplication import DUPLICATIONS
from shoal.strategies.partition import MAX_DEVICES

DEFAULT_MEMORY = "2GiB"
DEFAULT_DUPLICATION = "all"


def partition_files(
    paths: Any,
    output: str | os.PathLike[str],
    devices: int,
    *,
    memory: int | str = DEFAULT_MEMORY,
    partition: Any = "segment",
    partition_seed: int = 0,
    duplication: str = DEFAULT_DUPLICATION,
    in_edges: bool = False,
    format: str | None = None,
    **reading: Any,
) -> dict[str, Any]:
    """Divide the edges of files of any size among devices, and write the devices' parts into a new folder.

    The parts are those of the graph that `shoal.read` makes of one such file; what is in memory at once is not.

    Parameters
    ----------
    paths : a file of edges, or several: edge lists, Parquet, Arrow and .shoal
    output : a folder that is not there yet, or empty; it appears when it is complete
    memory : what the process may take, in all: bytes, or a number with a unit as ``"2GiB"``
    partition : ``"segment"``, ``"random"``, or an array with the device of each vertex
    duplication : which vertices are copied into a part: ``"all"``, which every algorithm can do with, or ``"one-hop"``,
        those its edges mention, which takes less memory where rules look at neighbours only
    in_edges : write the incoming edges, too; of an undirected graph they are there anyway
    **reading : ``directed``, ``weighted``, ``num_vertices``, ``deduplicate``, ``drop_self_loops`` and the columns, as
        `shoal.read` has them

    Returns
    -------
    dict
        the numbers of vertices, stored edges and edges read, and for each device its vertices and edges

    Examples
    --------
    >>> import shoal, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> shoal.write(shoal.generate.rmat(8), folder / "edges.parquet")
    >>> shoal.partition_files(folder / "edges.parquet", folder / "graph.shards", devices=2)["vertices"]
    256
    """
    names = [os.fspath(paths)] if isinstance(paths, (str, os.PathLike)) else [os.fspath(path) for path in paths]
    if not names:
        raise ArgumentError("paths is empty; there must be at least one file of edges")
    options = {"partition": partition, "partition_seed": partition_seed, "duplication": duplication,
               "in_edges": in_edges}  # fmt: skip
    request = make_request(devices, ReadOptions(**reading), **options)
    return _write_folder(
        lambda: [open_stream(name, request.reading, format) for name in names], request, output, memory, Alone()
    )


def partition_pieces(
    pieces: Pieces,
    output: str | os.PathLike[str],
    devices: int,
    *,
    memory: int | str = DEFAULT_MEMORY,
    partition: Any = "segment",
    partition_seed: int = 0,
    duplication: str = DEFAULT_DUPLICATION,
    in_edges: bool = False,
) -> dict[str, Any]:
    """Divide a random graph among devices while it is drawn: the parts are those of the graph in memory.

    In an MPI job all ranks call it: each writes the parts of as many devices, and has no others' edges.  Each draws all
    edges, since only so is known which are its own, and counts its share of them.

    Parameters
    ----------
    pieces : what `shoal.generate.rmat_pieces` or `shoal.generate.uniform_pieces` returned; all others as of
        `partition_files`

    Examples
    --------
    >>> import shoal, tempfile, pathlib
    >>> from shoal.sharding.partition_files import partition_pieces
    >>> folder = pathlib.Path(tempfile.mkdtemp()) / "graph.shards"
    >>> partition_pieces(shoal.generate.rmat_pieces(10), folder, devices=2)["stored_edges"]
    21084
    """
    drawing = pieces.options
    reading = ReadOptions(deduplicate=drawing.deduplicate, drop_self_loops=drawing.drop_self_loops)
    options = {"partition": partition, "partition_seed": partition_seed, "duplication": duplication,
               "in_edges": in_edges}  # fmt: skip

    def share(rank: int, size: int) -> Iterator[EdgeRows]:
        for src, dst, weights in pieces.share(rank, size):
            yield EdgeRows(src, dst, weights, drawing.num_vertices - 1, num_rows=len(src))

    stream = EdgeStream("the drawn edges", drawing.is_directed, drawing.num_vertices, True, lambda: share(0, 1), share)
    return _write_folder(lambda: [stream], make_request(devices, reading, **options), output, memory, find_team())


def make_request(
    devices: Any, reading: ReadOptions, *, partition: Any, partition_seed: Any, duplication: Any, in_edges: Any
) -> Request:
    """Return what a caller asked for, checked."""
    return Request(
        check_integer("devices", devices, 1, MAX_DEVICES),
        partition, check_integer("partition_seed", partition_seed, 0),
        check_choice("duplication", duplication, DUPLICATIONS), bool(in_edges), reading,
    )  # fmt: skip


def _write_folder(
    open_streams: Callable[[], list[EdgeStream]],
    request: Request,
    output: str | os.PathLike[str],
    memory: int | str,
    team: Team,
) -> dict[str, Any]:
    """Partition streams of edges into a new folder."""
    total = parse_bytes("memory", memory)
    if total is None:
        raise ArgumentError("memory=None is not allowed; it must be a number of bytes, as 500000000, 500MB or 2GiB")
    if team.size == 1:  # where there are others, they must be told
        check_new_folder("output", os.fspath(output))
    from shoal.sharding.stages import partition_streams

    streams = open_streams()
    with team.making_folder(os.fspath(output)) as folder:
        return partition_streams(streams, request, folder, Budget.of(total), team)
