# SPDX-License-Identifier: Apache-2.0
"""The stages of a partition of files: survey, sort, and divide."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from shoal.errors import FileFormatError
from shoal.io.edge_stream import EdgeStream
from shoal.io.outline import facts_of_weights, make_outline
from shoal.io.shards import ShardManifest, new_token, types_of, write_manifest, write_vertices
from shoal.sharding.budget import Budget
from shoal.sharding.edge_survey import Survey, Surveyor
from shoal.sharding.external_sort import Numbering, SortedEdges, sort_edges
from shoal.sharding.key_files import SortOptions
from shoal.sharding.part_files import write_part_files
from shoal.sharding.request import Request
from shoal.sharding.team import Team
from shoal.strategies.memory import fingerprint_of
from shoal.strategies.ownership import Ownership
from shoal.strategies.partition import partition_graph

#: Arrays over vertices while parts are written, at most, for each byte of an id: lists of who owns what, local ids, the
#: numbering of the part at hand; and the bytes of devices, marks and offsets.
_PER_ID_BYTE, _PER_VERTEX = 8, 24


def partition_streams(
    streams: Sequence[EdgeStream], request: Request, folder: str, budget: Budget, team: Team
) -> dict[str, Any]:
    """Survey, sort and divide the edges in a folder of shards to be.

    Each rank of a team surveys its share of the edges, sorts those of its share of the vertices, and writes the parts
    of its devices from the rows of all; the first one writes what is known of all.
    """
    is_directed = _common_direction(streams)
    has_in_edges = request.in_edges and is_directed
    surveyor = Surveyor(streams, _common_vertices(streams), folder, budget, team)
    keeps_loops = not request.reading.drop_self_loops
    wanted = {"is_mirrored": not is_directed, "keeps_loops": keeps_loops, "has_reverse": has_in_edges}
    survey = team.do(lambda: surveyor.survey(**wanted))
    survey.of_all(team)
    sorter = _Sorter(surveyor, survey, folder, request, budget, is_mirrored=not is_directed)
    edges = sorter.sort(is_reversed=False)
    backward = sorter.sort(is_reversed=True) if has_in_edges else None
    surveyor.close()
    labels, budget.taken = sorter.labels, 0
    del sorter  # with the new ids
    manifest = _write(folder, edges, backward, labels, request, is_directed, budget, team)
    if team.rank == 0:
        write_manifest(folder, manifest)
    arrays = [entry["arrays"] for entry in manifest.files]
    return {
        "vertices": manifest.num_vertices,
        "stored_edges": manifest.num_edges,
        "edges_read": survey.num_rows,
        "device_vertices": [table["owned"][2] for table in arrays],
        "device_edges": [table["out_indices"][2] for table in arrays],
    }


def _common_direction(streams: Sequence[EdgeStream]) -> bool:
    """Return whether the graph is directed; all files must say the same."""
    other = next((stream for stream in streams if stream.is_directed != streams[0].is_directed), None)
    if other is not None:
        kinds = {True: "directed", False: "undirected"}
        raise FileFormatError(f"{streams[0].path} is {kinds[streams[0].is_directed]} and {other.path} is "
                              f"{kinds[other.is_directed]}; say which with directed=")  # fmt: skip
    return streams[0].is_directed


def _common_vertices(streams: Sequence[EdgeStream]) -> int | None:
    """Return the number of vertices that all files declare; None where one does not."""
    declared = [stream.num_vertices for stream in streams]
    return None if None in declared else max(number for number in declared if number is not None)


class _Sorter:
    """Sorts the edges of a survey, by their sources or their destinations; ids with gaps are numbered anew."""

    def __init__(
        self, surveyor: Surveyor, survey: Survey, folder: str, request: Request, budget: Budget, *, is_mirrored: bool
    ) -> None:
        self.surveyor, self.survey, self.folder, self.request = surveyor, survey, folder, request
        self.budget, self.is_mirrored = budget, is_mirrored
        self.labels: np.ndarray | None = None
        self.numbering = Numbering(survey.num_ids, survey.num_ids, None)
        present = survey.is_present
        if present is not None and not present.all():
            count = int(np.count_nonzero(present))
            dtype = np.dtype(np.int32 if count < 2**31 else np.int64)
            budget.take(8 * count + dtype.itemsize * present.size, f"numbering {count} vertices by {present.size} ids")
            self.labels = np.flatnonzero(present)
            new_ids = np.cumsum(present, dtype=dtype)
            new_ids -= 1
            self.numbering = Numbering(survey.num_ids, count, new_ids)
        survey.is_present = None

    def sort(self, *, is_reversed: bool) -> SortedEdges:
        """Sort the edges."""
        survey, reading = self.survey, self.request.reading
        groups = survey.into if is_reversed else survey.out
        assert groups is not None
        options = SortOptions(self.is_mirrored, not reading.drop_self_loops, reading.deduplicate, is_reversed)
        return sort_edges(self.surveyor.batches(), self.numbering, groups, survey.weight_dtype, survey.num_rows,
                          self.folder, options, self.budget, self.surveyor.team)  # fmt: skip


def _write(
    folder: str, edges: SortedEdges, backward: SortedEdges | None, labels: np.ndarray | None,
    request: Request, is_directed: bool, budget: Budget, team: Team,
) -> ShardManifest:  # fmt: skip
    """Write the files of a folder of shards, from rows that are there no more then."""
    vertex_dtype, weight_dtype = edges.dtypes["indices"], edges.dtypes.get("weights")
    num_vertices, token = edges.indptr.size - 1, team.gather_text(new_token())[0]
    degree = np.diff(edges.indptr)
    facts = _facts(edges, degree, is_directed)
    types = types_of(vertex_dtype, edges.indptr.dtype, weight_dtype)
    # Segments are cut by the offsets.
    outline = make_outline("the files", types, edges.num_edges, is_directed, degree, None, facts, edges.indptr)
    owner = partition_graph(outline, request.num_devices, request.partition, request.seed)
    vertices = write_vertices(folder, token, degree, owner, labels) if team.rank == 0 else {}
    del degree, outline, labels
    ownership = Ownership.of(
        owner, request.num_devices, vertex_dtype, with_address=request.duplication == "one-hop"
    )  # fmt: skip
    taken = (_PER_ID_BYTE * vertex_dtype.itemsize + _PER_VERTEX) * num_vertices
    max_edges = budget.edges(4 * vertex_dtype.itemsize, beside=taken)
    files = write_part_files(folder, token, edges, backward, ownership, request.duplication, max_edges, team)
    name = request.partition if isinstance(request.partition, str) else "array"
    return ShardManifest(
        token, name, request.duplication, request.num_devices, num_vertices, edges.num_edges, is_directed,
        not is_directed or backward is not None, types, facts, files, vertices,
    )  # fmt: skip


def _facts(edges: SortedEdges, degree: np.ndarray, is_directed: bool) -> dict[str, Any]:
    facts: dict[str, Any] = {"max_degree": int(degree.max(initial=0)),
                             "fingerprint": fingerprint_of(edges.indptr, is_directed)}  # fmt: skip
    known = edges.weights
    if known["min_weight"] is not None:
        facts |= facts_of_weights(known["min_weight"], known["max_weight"], known["sum_of_weights"],
                                  known["num_zero_weights"], edges.num_edges)  # fmt: skip
    return facts
