# SPDX-License-Identifier: Apache-2.0
"""Open a folder of shards without the graph that they are parts of: its outline, and the parts of some devices."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from shoal.graph import Graph
from shoal.io.native import labels_of
from shoal.io.outline import make_outline
from shoal.io.shard_checks import VERTICES, check_edges, name_of
from shoal.io.shards import ShardManifest, read_manifest, read_part, read_vertices
from shoal.strategies.subgraph import FarPart, Subgraph


def open_outline(folder: str) -> tuple[ShardManifest, Graph, np.ndarray]:
    """Return the manifest, the outline and each vertex's device; the only part there is, is the graph itself."""
    manifest = read_manifest(folder)
    arrays = read_vertices(folder, manifest)
    labels = labels_of(os.path.join(folder, VERTICES), arrays, manifest.num_vertices)
    if manifest.num_devices == 1:
        return manifest, _whole_graph(_near_part(folder, manifest, 0), manifest, labels), arrays["owner"]
    graph = make_outline(folder, manifest.types, manifest.num_edges, manifest.is_directed, arrays["degree"], labels,
                         manifest.facts)  # fmt: skip
    return manifest, graph, arrays["owner"]


def _whole_graph(part: Subgraph, manifest: ShardManifest, labels: Any) -> Graph:
    graph = Graph._make(part.out_edges, manifest.is_directed, labels)
    if manifest.is_directed and part.in_edges is not None:
        graph._cache["reverse"] = Graph._make(part.in_edges, manifest.is_directed, labels)
    return graph


def open_parts(
    folder: str, manifest: ShardManifest, owner: np.ndarray, here: Sequence[bool]
) -> list[Subgraph | FarPart]:
    """Return the parts of the devices that are ``here``; of others, whose files stay closed, what all must know."""
    return [
        _near_part(folder, manifest, device) if is_here else _far_part(manifest, owner, device)
        for device, is_here in enumerate(here)
    ]


def _near_part(folder: str, manifest: ShardManifest, device: int) -> Subgraph:
    """Return a part whose edges were looked at once, as compiled code relies on them; pages stay the file's."""
    part = read_part(folder, manifest, device)
    check_edges(os.path.join(folder, name_of(device)), part)
    return part


def _far_part(manifest: ShardManifest, owner: np.ndarray, device: int) -> FarPart:
    owned = np.flatnonzero(owner == device).astype(manifest.types[0], copy=False)
    is_renumbered = manifest.duplication == "one-hop"
    return FarPart(device, manifest.files[device]["num_local"], owned, owned[:0] if is_renumbered else None)
