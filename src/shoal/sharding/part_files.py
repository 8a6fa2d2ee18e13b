# SPDX-License-Identifier: Apache-2.0
"""The parts of devices as files, from the rows of a graph in files: the same as `build_subgraphs` makes in memory.

For each device its rows are read twice: to find which vertices they mention, and to write them by local ids; once where
local ids are the global ones.  Rows are removed when no device after it has any of them.  What a device has copies of
goes to the others by way of a file, since all copies of all devices may be more than memory has room for; so the places
of a device's own vertices at its peers stand last in its file.
"""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from shoal.io.shards import ShardFile
from shoal.progress import WorkReporter
from shoal.sharding.external_sort import RowBlock, SortedEdges
from shoal.sharding.team import Team, devices_of
from shoal.strategies.duplication import DUPLICATIONS, IN, OUT, Copies, Numbering, group_copies
from shoal.strategies.ownership import Ownership, Rows

#: Places of an array that are read in one go.
_PIECE = 2**20
#: Edges of a block, where memory has room for more: blocks that take turns stay in the third-level cache.
_BLOCK_EDGES = 2**21


def write_part_files(
    folder: str, token: str, edges: SortedEdges, in_edges: SortedEdges | None, ownership: Ownership,
    duplication: str, max_edges: int, team: Team,
) -> list[dict[str, Any]]:  # fmt: skip
    """Write the file of each device and return what the manifest says about them; the rows are there no more then.

    Each rank of a team writes the files of its devices, and returns what all have.

    Parameters
    ----------
    in_edges : the rows of the reverse, if parts are to have incoming edges that are not the outgoing ones
    max_edges : how many edges may be in memory at once
    """
    writer = _Writer(folder, token, edges, in_edges, ownership, duplication, max_edges, team)
    team.do(writer.write_parts)
    writer.bounds = [bounds for of_rank in team.gather(writer.bounds_here()) for bounds in of_rank]
    team.do(writer.write_all_copies)
    told = team.gather_text(json.dumps([file.entry() for file in writer.files.values()]))
    if team.rank == 0:
        writer.remove()
    return [entry for text in told for entry in json.loads(text)]


class _Writer:
    """Writes part after part, and then who has copies of what."""

    def __init__(
        self, folder: str, token: str, edges: SortedEdges, in_edges: SortedEdges | None, ownership: Ownership,
        duplication: str, max_edges: int, team: Team,
    ) -> None:  # fmt: skip
        self.folder, self.ownership, self.max_edges = folder, ownership, min(max_edges, _BLOCK_EDGES)
        self.directions = {"out": (edges, OUT)} | ({} if in_edges is None else {"in": (in_edges, IN)})
        self.strategy, self.team = DUPLICATIONS[duplication](ownership), team
        devices = devices_of(team, ownership.num_devices)
        self.files = {device: ShardFile(folder, device, token) for device in devices}
        self.bounds: list[np.ndarray] = []  # of each device's copies, by owner
        passes = 1 + self.strategy.is_renumbered
        total = passes * sum(edges.num_edges for edges, _ in self.directions.values())
        self.work, self.done = WorkReporter("divided", total, "edges"), 0

    def write_parts(self) -> None:
        """Write the files of this rank's devices."""
        for device in self.team.watched(self.files):
            self.write(device)

    def bounds_here(self) -> np.ndarray:
        """Return the bounds of the copies of this rank's devices, a row each."""
        return np.array(self.bounds, np.int64).reshape(len(self.files), self.ownership.num_devices + 1)

    def write_all_copies(self) -> None:
        """Write what peers have copies of among the vertices of this rank's devices."""
        for device in self.team.watched(self.files):
            self.write_copies(device)

    def write(self, device: int) -> None:
        """Write all of a device's file but its peers' copies, and keep which copies it has."""
        ownership, file = self.ownership, self.files[device]
        is_renumbered = self.strategy.is_renumbered
        remote, marks = self._find_remote(device) if is_renumbered else (ownership.vertices[:0], ownership.marks[:0])
        numbering = self.strategy.number(device, remote)
        for name in ("owned", "global_ids", "owner", "address"):
            array = getattr(numbering, name)
            if array is not None:
                file.add(name, array)
        for direction, (edges, bit) in self.directions.items():
            self._write_edges(device, direction, edges, numbering, None if is_renumbered else bit)
            if self.team.size == 1:  # other ranks may still read them
                edges.remove(before=self._first_row_after(device))
        if not is_renumbered:
            remote, marks = ownership.take_remote(device)
        file.add("border_sizes", ownership.count_by_owner(remote[marks & OUT != 0]))
        file.facts["num_local"] = numbering.owner.size
        self._keep_copies(device, group_copies(ownership, numbering, remote))

    def _find_remote(self, device: int) -> tuple[np.ndarray, np.ndarray]:
        """Return which vertices of others the edges of a device mention, and how."""
        for edges, bit in self.directions.values():
            for _, rows in self._rows(edges, "indices", device):
                self.ownership.mark(rows, bit)
        return self.ownership.take_remote(device)

    def _first_row_after(self, device: int) -> int:
        """Return the first vertex of the devices after one."""
        starts, vertices = self.ownership.starts[device + 1 :], self.ownership.vertices
        firsts = [int(vertices[start]) for start, end in itertools.pairwise(starts) if start < end]
        return min(firsts, default=vertices.size)

    def _write_edges(
        self, device: int, direction: str, edges: SortedEdges, numbering: Numbering, bit: np.uint8 | None
    ) -> None:
        """Write the rows of a device; with a bit, mark what they mention."""
        file, vertices = self.files[device], self.ownership.vertices_of(device)
        first_edges = edges.indptr[vertices]
        indptr = np.zeros(numbering.owner.size + 1, edges.indptr.dtype)
        indptr[1:][numbering.owned] = edges.indptr[1:][vertices] - first_edges
        np.cumsum(indptr, out=indptr)
        file.add("first_edges" if direction == "out" else "first_in_edges", first_edges)
        file.add(f"{direction}_indptr", indptr)
        for name, local_ids in (("indices", numbering.local_ids), ("weights", None)):
            if name in edges.dtypes:
                pieces = self._copied(edges, name, device, local_ids, bit if name == "indices" else None)
                file.add_pieces(f"{direction}_{name}", edges.dtypes[name], pieces)

    def _copied(
        self, edges: SortedEdges, name: str, device: int, local_ids: np.ndarray | None, bit: np.uint8 | None
    ) -> Iterator[np.ndarray]:
        """Yield the values of a device's rows, ends of edges as local ids."""
        for block, rows in self._rows(edges, name, device):
            if bit is not None:
                self.ownership.mark(rows, bit)
            if local_ids is None and rows.num_edges == block.values.size:
                yield block.values
                continue
            values = np.empty(rows.num_edges, block.values.dtype)
            self.ownership.run_over(rows, "copy_edges", block.values, None, local_ids, values, None)
            yield values

    def _rows(self, edges: SortedEdges, name: str, device: int) -> Iterator[tuple[RowBlock, Rows]]:
        """Yield the rows of a device's vertices, block after block; their places are those in the block."""
        vertices = self.ownership.vertices_of(device)
        vertices = vertices[edges.indptr[1:][vertices] > edges.indptr[vertices]]
        for block in edges.blocks(name, vertices, self.max_edges):
            here = vertices[slice(*np.searchsorted(vertices, [block.first, block.last]))]
            begins = edges.indptr[here]
            offsets = np.append(0, np.cumsum(edges.indptr[1:][here] - begins)).astype(edges.indptr.dtype)
            yield block, Rows(offsets, begins - edges.indptr.dtype.type(block.begin), block.values, None)
            self.done += int(offsets[-1]) if name == "indices" else 0
            self.work.report(self.done)

    def _copies_path(self, device: int) -> str:
        return os.path.join(self.folder, f"copies-{device}.spool")

    def _keep_copies(self, device: int, copies: Copies) -> None:
        """Write the ids of a device's copies at their owners, and behind them those here."""
        self.bounds.append(copies.bounds)
        with open(self._copies_path(device), "wb") as file:
            for ids in (copies.at_owner, copies.here):
                np.ascontiguousarray(ids).tofile(file)

    def write_copies(self, device: int) -> None:
        """Write what the peers have copies of among the vertices of a device."""
        file, dtype = self.files[device], self.ownership.vertices.dtype
        sizes = [int(bounds[device + 1] - bounds[device]) for bounds in self.bounds]
        file.add("copy_indptr", np.cumsum([0, *sizes], dtype=np.int64))
        for name, is_at_owner in (("copy_here", True), ("copy_there", False)):
            file.add_pieces(name, dtype, self._read_copies(device, dtype, is_at_owner=is_at_owner))

    def _read_copies(self, device: int, dtype: np.dtype, *, is_at_owner: bool) -> Iterator[np.ndarray]:
        for peer, bounds in enumerate(self.bounds):
            begin, end = (int(bound) for bound in bounds[device : device + 2])
            shift = 0 if is_at_owner else int(bounds[-1])
            with open(self._copies_path(peer), "rb") as file:
                file.seek((shift + begin) * dtype.itemsize)
                for start in range(begin, end, _PIECE):
                    yield np.fromfile(file, dtype, min(_PIECE, end - start))

    def remove(self) -> None:
        """Remove the rows, and what was written to be read once."""
        for device in range(len(self.bounds)):
            os.unlink(self._copies_path(device))
        for edges, _ in self.directions.values():
            edges.remove()
