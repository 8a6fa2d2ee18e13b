# SPDX-License-Identifier: Apache-2.0
"""Kernels that join trees of vertices: a device's only thread hooks edges, and the trees of another device.

``label[vertex]`` is a vertex of the same tree with a smaller id, or at the root the vertex itself; so a root has the
smallest id of its tree.
"""

from __future__ import annotations

from shoal.backends.cpu.compiler import compiled, inner
from shoal.backends.cpu.intrinsics import nonnegative


@inner
def _root_of(label, vertex):
    """Return the root of a vertex's tree; whoever is on the way gets nearer to it."""
    above = nonnegative(label[vertex])
    while above != vertex:
        over = nonnegative(label[above])
        label[vertex] = over
        vertex = over
        above = nonnegative(label[vertex])
    return vertex


@inner
def _join(label, one, other):
    """Make one tree of those of two vertices."""
    one = _root_of(label, one)
    other = _root_of(label, other)
    if one < other:
        label[other] = one
    elif other < one:
        label[one] = other


@compiled()
def hook_rows(indptr, indices, begin, end, skips_upper, label):
    """Join both ends of the edges of some rows; of edges that are stored twice one may be skipped."""
    for src in range(nonnegative(begin), end):
        for edge in range(nonnegative(indptr[src]), indptr[src + 1]):
            dst = nonnegative(indices[edge])
            if dst < src or not skips_upper:
                _join(label, nonnegative(src), dst)


@compiled()
def hook_labels(begin, labels, label):
    """Join the vertices from ``begin`` on with what another device has found them to be in one tree with."""
    for i in range(labels.shape[0]):
        _join(label, nonnegative(begin + i), nonnegative(labels[i]))


@compiled()
def compress(label):
    """Label every vertex with its root; return how many roots there are."""
    count = 0
    for vertex in range(label.shape[0]):  # labels are smaller ids: that above is right already
        label[vertex] = label[nonnegative(label[vertex])]
        count += label[vertex] == vertex
    return count
