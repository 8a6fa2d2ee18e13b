# SPDX-License-Identifier: Apache-2.0
"""Kernels that list edges once and add to each its part of the shortest paths from a batch of sources.

An edge u -> v is on a shortest path where v is one level below u, and has sigma(u) (1 + delta(v)) / sigma(v) of the
paths (Brandes, 2008).  Undirected edges are listed from their smaller end only, where both directions are counted:
nobody looks for an edge's other copy.  Threads take blocks of rows in turn and write the edges of their rows, so
nothing is atomic.
"""

from __future__ import annotations

import numpy as np

from shoal.backends.cpu.compiler import compiled
from shoal.backends.cpu.intrinsics import nonnegative

# Rows that a thread takes at a time: where ids follow degrees the first 64 are but a few of all edges.
ROWS = 64


@compiled()
def count_once(thread, num_threads, indptr, indices, is_directed, counts):
    """Write into ``counts[u + 1]`` how many edges are listed from u."""
    for block in range(thread * ROWS, indptr.shape[0] - 1, num_threads * ROWS):
        for row in range(block, min(block + ROWS, indptr.shape[0] - 1)):
            count = 0
            for edge in range(nonnegative(np.int64(indptr[row])), np.int64(indptr[row + 1])):
                if is_directed or indices[edge] >= row:
                    count += 1
            counts[row + 1] = count


@compiled()
def list_once(thread, num_threads, indptr, indices, is_directed, starts, src, dst):
    """Write both ends of the edges listed from u, in the order of its row, at ``starts[u]`` and behind it."""
    for block in range(thread * ROWS, indptr.shape[0] - 1, num_threads * ROWS):
        for row in range(block, min(block + ROWS, indptr.shape[0] - 1)):
            place = nonnegative(np.int64(starts[row]))
            for edge in range(nonnegative(np.int64(indptr[row])), np.int64(indptr[row + 1])):
                if is_directed or indices[edge] >= row:
                    src[place] = row
                    dst[place] = indices[edge]
                    place += 1


@compiled()
def add_paths(thread, num_threads, starts, dst, is_directed, depth, paths, share, total):
    """Add to ``total`` of every listed edge its part of the paths from each source of a batch.

    ``share[v, k]`` is (1 + delta(v)) / sigma(v).  A vertex that source k does not reach has depth -1 and no paths: an
    edge from it to the source seems to lead one level down, and adds 0.
    """
    for block in range(thread * ROWS, starts.shape[0] - 1, num_threads * ROWS):
        for row in range(block, min(block + ROWS, starts.shape[0] - 1)):
            for edge in range(nonnegative(np.int64(starts[row])), np.int64(starts[row + 1])):
                other = nonnegative(np.int64(dst[edge]))
                found = 0.0
                for k in range(depth.shape[1]):
                    step = depth[other, k] - depth[row, k]
                    if step == 1:
                        found += paths[row, k] * share[other, k]
                    elif step == -1 and not is_directed:
                        found += paths[other, k] * share[row, k]
                total[edge] += found
