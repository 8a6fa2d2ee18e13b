// SPDX-License-Identifier: Apache-2.0
// Trees of vertices that many threads join at once: hooking and compressing (Groute, section 4.7; Afforest's link).
//
// label[vertex] is a vertex of the same tree with a smaller id, or at the root the vertex itself; so a root has the
// smallest id of its tree.  A root is hooked to a smaller one by a compare-and-swap, so that nobody's hook is lost; what
// is no root never is one again, and its pointer may be moved up by a plain store: whatever was there before or comes
// after is above it, too.  Labels are read past the multiprocessor's own cache, or a thread might go round for ever with
// a value that others have long changed.
#pragma once

#include "rows.cuh"

namespace components {

using namespace building;

// Edges in a row that a warp takes: it searches for the rows of the first and the last, and the rest is between them.
constexpr Word WARP_EDGES = 16 * WARP;

__device__ __forceinline__ Vertex load(const Vertex* place) {
    return *(const volatile Vertex*)place;
}

__device__ __forceinline__ void store(Vertex* place, Vertex value) {
    *(volatile Vertex*)place = value;
}

// Make a root point to a smaller vertex; false if it is no root any more.
__device__ __forceinline__ bool hook(Vertex* label, Vertex root, Vertex below) {
    if (sizeof(Vertex) == sizeof(int)) {
        return atomicCAS((unsigned int*)label + root, (unsigned int)root, (unsigned int)below) == (unsigned int)root;
    }
    return atomicCAS((Word*)label + root, Word(root), Word(below)) == Word(root);
}

// Make one tree of those of two vertices, and shorten the way of the first.
__device__ __forceinline__ void join(Vertex* label, Vertex one, Vertex other) {
    Vertex own = load(label + one), left = own, right = load(label + other);
    while (left != right) {
        Vertex high = left > right ? left : right, low = left > right ? right : left;
        Vertex above = load(label + high);
        if (above == low || (above == high && hook(label, high, low))) {
            left = low;
            break;
        }
        left = load(label + above);
        if (left != above) store(label + high, left);  // one step less for whoever comes this way next
        right = load(label + low);
    }
    if (left != own && own != one) store(label + one, left);
}

}  // namespace components

// Let every vertex be a tree.  A thread for a vertex.
extern "C" __global__ void begin_labels(building::Word num_vertices, building::Vertex* label) {
    using namespace building;
    for (Word vertex = thread_number(); vertex < num_vertices; vertex += num_threads()) label[vertex] = Vertex(vertex);
}

// Join both ends of `num_edges` edges from `first_edge` on, which are those of the rows first_row .. last_row - 1.
// A warp takes WARP_EDGES neighbouring edges, its lanes neighbours of these.  Of edges that are stored twice the one
// from the smaller end may be skipped.
extern "C" __global__ void hook_rows(
    building::Word num_edges, building::Word first_edge, building::Word first_row, building::Word last_row,
    const building::Offset* indptr, const building::Vertex* indices, bool skips_upper, building::Vertex* label
) {
    using namespace components;
    Word lane = threadIdx.x % WARP;
    for (Word first = thread_number() / WARP * WARP_EDGES; first < num_edges;
         first += num_threads() / WARP * WARP_EDGES) {
        Word end = first + WARP_EDGES < num_edges ? first + WARP_EDGES : num_edges;
        Word low = search_row(first_edge + first, indptr, first_row, last_row);
        Word high = search_row(first_edge + end - 1, indptr, low, last_row) + 1;
        for (Word edge = first + lane; edge < end; edge += WARP) {
            Word row = search_row(first_edge + edge, indptr, low, high);
            Vertex src = Vertex(row), dst = indices[first_edge + edge];
            if (dst < src || !skips_upper) join(label, src, dst);
        }
    }
}

// Join vertices from `begin` on with what another device has found them to be in one tree with.  A thread for a vertex.
extern "C" __global__ void hook_labels(
    building::Word num_labels, building::Word begin, const building::Vertex* labels, building::Vertex* label
) {
    using namespace components;
    for (Word place = thread_number(); place < num_labels; place += num_threads()) {
        join(label, Vertex(begin + place), labels[place]);
    }
}

// Label every vertex with its root.  A thread for a vertex, which alone writes there; roots do not change.
extern "C" __global__ void compress(building::Word num_vertices, building::Vertex* label) {
    using namespace components;
    for (Word vertex = thread_number(); vertex < num_vertices; vertex += num_threads()) {
        Vertex root = load(label + vertex), above = load(label + root);
        while (above != root) {
            root = above;
            above = load(label + root);
        }
        store(label + vertex, root);
    }
}
