// SPDX-License-Identifier: Apache-2.0
// Edges to CSR, a range of rows at a time, so that little more memory is needed than the CSR takes.
//
// Edges are not kept: they are functions of their number (read from arrays here, drawn in generate.cuh), asked for once
// to be counted and once for each range of rows.  A range's edges u -> v become keys (u - first row) << vertex_bits | v,
// are sorted by the host, and are written with copies left out, which also gives the length of every row.
//
// SHOAL_VERTEX and SHOAL_OFFSET are the types of vertex ids and edge offsets.  Numbers of edges, places and keys are
// always of 64 bits.  Blocks have whole warps, and all threads of a block reach every barrier.
#pragma once

#include "rows.cuh"

namespace building {

template <typename Signed> struct Unsigned;
template <> struct Unsigned<int> { using type = unsigned int; };
template <> struct Unsigned<long long> { using type = unsigned long long; };

using Degree = Unsigned<Offset>::type;

constexpr unsigned int MAX_WARPS = 32;
// Keys that each thread of a block looks at in a tile: eight make the number of tiles small beside that of keys.
constexpr unsigned int ROUNDS = 8;

struct Edge {
    Word src, dst;
};

// The row that holds a stored edge; the threads of a warp must ask for consecutive edges.
// All of them first search for the warp's first and last edge (the same loads, so each costs one for the warp), and
// then between these two rows only.
__device__ __forceinline__ Word row_of(Word edge, const Offset* indptr, Word num_rows, Word num_edges) {
    Word first = edge - threadIdx.x % WARP;
    Word last = first + (WARP - 1) < num_edges ? first + (WARP - 1) : num_edges - 1;
    Word low = search_row(first, indptr, 0, num_rows);
    Word high = search_row(last, indptr, low, num_rows) + 1;
    return search_row(edge, indptr, low, high);
}

// Edges in two arrays, whose ids may be wider than those of the graph.  Negative ids become larger than any vertex.
template <typename Id>
struct GivenEdges {
    const Id* src;
    const Id* dst;

    __device__ GivenEdges(const Id* src, const Id* dst) : src(src), dst(dst) {}

    __device__ __forceinline__ Edge operator()(Word number) const {
        return {Word((long long)src[number]), Word((long long)dst[number])};
    }
};

// The edges of a CSR, as they are or turned round.  Where there are ranks, the second end is the rank of the vertex,
// by which its row will be ordered.
template <bool IS_REVERSED>
struct StoredEdges {
    const Offset* indptr;
    const Vertex* indices;
    Word num_rows, num_edges;
    const Vertex* rank;

    __device__ StoredEdges(
        const Offset* indptr, const Vertex* indices, Word num_rows, Word num_edges, const Vertex* rank
    ) : indptr(indptr), indices(indices), num_rows(num_rows), num_edges(num_edges), rank(rank) {}

    __device__ __forceinline__ Word ranked(Word vertex) const {
        return rank && vertex < num_rows ? Word(rank[vertex]) : vertex;  // a wrong id stays what it is
    }

    __device__ __forceinline__ Edge operator()(Word number) const {
        Word row = row_of(number, indptr, num_rows, num_edges), index = Word((long long)indices[number]);
        if (IS_REVERSED) return {index, ranked(row)};
        return {row, ranked(index)};
    }
};

// How many threads of the block before this one have `is_counted`; `total` becomes how many have it in all.
__device__ __forceinline__ unsigned int block_rank(bool is_counted, unsigned int& total) {
    __shared__ unsigned int warp_counts[MAX_WARPS];
    unsigned int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    unsigned int votes = __ballot_sync(0xFFFFFFFFu, is_counted);
    if (lane == 0) warp_counts[warp] = __popc(votes);
    __syncthreads();
    unsigned int rank = __popc(votes & ((1u << lane) - 1));
    total = 0;
    for (unsigned int other = 0; other < blockDim.x / WARP; ++other) {
        if (other < warp) rank += warp_counts[other];
        total += warp_counts[other];
    }
    __syncthreads();  // the next call writes the counts again
    return rank;
}

// Count the edges to store in each bucket of 2**bucket_bits rows; a mirrored edge counts at both ends, a loop once.
// A thread for an edge.  Buckets are many threads' (atomic), and so is the smallest number of an edge that has an end
// out of range.
template <typename Edges>
__device__ void count_edges(
    const Edges& edges, Word num_edges, Word num_vertices, bool is_mirrored, bool keeps_loops, int bucket_bits,
    Word* counts, Word* first_wrong
) {
    for (Word number = thread_number(); number < num_edges; number += num_threads()) {
        Edge edge = edges(number);
        if (edge.src >= num_vertices || edge.dst >= num_vertices) {
            atomicMin(first_wrong, number);
            continue;
        }
        bool is_loop = edge.src == edge.dst;
        if (!is_loop || keeps_loops) atomicAdd(&counts[edge.src >> bucket_bits], Word(1));
        if (!is_loop && is_mirrored) atomicAdd(&counts[edge.dst >> bucket_bits], Word(1));
    }
}

// Copy a weight of 4 or 8 bytes, whatever its type; 0 bytes: there are no weights.
__device__ __forceinline__ void copy_weight(const void* from, Word source, void* to, Word target, int weight_bytes) {
    if (weight_bytes == 4) ((unsigned int*)to)[target] = ((const unsigned int*)from)[source];
    if (weight_bytes == 8) ((Word*)to)[target] = ((const Word*)from)[source];
}

// What is collected of a range of rows, and where it goes.
struct Collected {
    Word first_row, num_rows;
    int vertex_bits;
    Word* cursor;
    Word* keys;
    const void* weights;
    int weight_bytes;
    void* key_weights;

    __device__ __forceinline__ bool has(Word row) const {
        return row - first_row < num_rows;  // below first_row the difference is huge
    }

    __device__ __forceinline__ void put(Word place, Word row, Word index, Word number) const {
        keys[place] = (row - first_row) << vertex_bits | index;
        copy_weight(weights, number, key_weights, place, weight_bytes);
    }
};

// Put the keys of a range of rows into an array, in no order.
// A thread for an edge; a block takes its places from the cursor at once (atomic), since one addition for each edge to
// the same place would take longer than all the rest.
template <typename Edges>
__device__ void collect_edges(
    const Edges& edges, Word num_edges, bool is_mirrored, bool keeps_loops, const Collected& collected
) {
    __shared__ Word first_place;
    for (Word first = Word(blockIdx.x) * blockDim.x; first < num_edges; first += num_threads()) {
        Word number = first + threadIdx.x;
        Edge edge = {0, 0};
        bool is_forward = false, is_backward = false;
        if (number < num_edges) {
            edge = edges(number);
            bool is_loop = edge.src == edge.dst;
            is_forward = (!is_loop || keeps_loops) && collected.has(edge.src);
            is_backward = !is_loop && is_mirrored && collected.has(edge.dst);
        }
        unsigned int num_forward, num_backward;
        unsigned int forward_rank = block_rank(is_forward, num_forward);
        unsigned int backward_rank = block_rank(is_backward, num_backward);
        if (threadIdx.x == 0) first_place = atomicAdd(collected.cursor, Word(num_forward + num_backward));
        __syncthreads();
        if (is_forward) collected.put(first_place + forward_rank, edge.src, edge.dst, number);
        if (is_backward) collected.put(first_place + num_forward + backward_rank, edge.dst, edge.src, number);
        // The barriers of the next block_rank come between these reads and the next write of first_place.
    }
}

__device__ __forceinline__ bool is_kept(const Word* keys, Word size, Word place, bool deduplicate) {
    return place < size && (!deduplicate || place == 0 || keys[place - 1] != keys[place]);
}

}  // namespace building

// Kernels count_NAME and collect_NAME for edges made by the expression EDGES from the parameters that follow it.
#define SHOAL_BUILDING_KERNELS(NAME, EDGES, ...)                                                                       \
    extern "C" __global__ void count_##NAME(                                                                           \
        building::Word num_edges, building::Word num_vertices, bool is_mirrored, bool keeps_loops, int bucket_bits,    \
        building::Word* counts, building::Word* first_wrong, __VA_ARGS__                                               \
    ) {                                                                                                                \
        building::count_edges(                                                                                         \
            EDGES, num_edges, num_vertices, is_mirrored, keeps_loops, bucket_bits, counts, first_wrong                 \
        );                                                                                                             \
    }                                                                                                                  \
    extern "C" __global__ void collect_##NAME(                                                                         \
        building::Word num_edges, bool is_mirrored, bool keeps_loops, building::Word first_row,                        \
        building::Word num_rows, int vertex_bits, building::Word* cursor, building::Word* keys, const void* weights,   \
        int weight_bytes, void* key_weights, __VA_ARGS__                                                               \
    ) {                                                                                                                \
        building::Collected collected = {                                                                              \
            first_row, num_rows, vertex_bits, cursor, keys, weights, weight_bytes, key_weights                         \
        };                                                                                                             \
        building::collect_edges(EDGES, num_edges, is_mirrored, keeps_loops, collected);                                \
    }

SHOAL_BUILDING_KERNELS(given_int32, building::GivenEdges<int>(src, dst), const int* src, const int* dst)
SHOAL_BUILDING_KERNELS(
    given_int64, building::GivenEdges<long long>(src, dst), const long long* src, const long long* dst
)
SHOAL_BUILDING_KERNELS(
    reversed, building::StoredEdges<true>(indptr, indices, num_given_rows, num_edges, rank),
    const building::Offset* indptr, const building::Vertex* indices, building::Word num_given_rows,
    const building::Vertex* rank
)
SHOAL_BUILDING_KERNELS(
    ranked, building::StoredEdges<false>(indptr, indices, num_given_rows, num_edges, rank),
    const building::Offset* indptr, const building::Vertex* indices, building::Word num_given_rows,
    const building::Vertex* rank
)

// Count the keys that stay in each tile of blockDim.x * ROUNDS sorted keys: all, or the first of equal ones.
// A block for a tile; its first thread writes the tile's count.
extern "C" __global__ void count_kept(
    building::Word size, const building::Word* keys, bool deduplicate, building::Word* tile_counts
) {
    using namespace building;
    Word tile_size = Word(blockDim.x) * ROUNDS, num_tiles = (size + tile_size - 1) / tile_size;
    for (Word tile = blockIdx.x; tile < num_tiles; tile += gridDim.x) {
        Word count = 0;
        for (unsigned int round = 0; round < ROUNDS; ++round) {
            Word place = tile * tile_size + round * blockDim.x + threadIdx.x;
            unsigned int num_kept;
            block_rank(is_kept(keys, size, place, deduplicate), num_kept);
            count += num_kept;
        }
        if (threadIdx.x == 0) tile_counts[tile] = count;
    }
}

// Write destinations and weights of the keys that stay, and add every row's length to `degrees`, which are zero.
// A block for a tile, which writes from tile_starts[tile] on.  The length of a row is the number of keys kept up to its
// last one, less the number kept before its first: two additions by two threads, maybe of two blocks (atomic), whose
// overflow cancels.  `order` says where the weight of each sorted key is.  Where keys have ranks, `names` are the
// vertices by rank.
extern "C" __global__ void write_kept(
    building::Word size, const building::Word* keys, bool deduplicate, int vertex_bits, const building::Vertex* names,
    const building::Word* tile_starts, building::Vertex* indices, building::Offset* degrees, const long long* order,
    const void* key_weights, int weight_bytes, void* weights
) {
    using namespace building;
    Word tile_size = Word(blockDim.x) * ROUNDS, num_tiles = (size + tile_size - 1) / tile_size;
    Word index_mask = (Word(1) << vertex_bits) - 1;
    for (Word tile = blockIdx.x; tile < num_tiles; tile += gridDim.x) {
        Word num_before = tile_starts[tile];
        for (unsigned int round = 0; round < ROUNDS; ++round) {
            Word place = tile * tile_size + round * blockDim.x + threadIdx.x;
            bool stays = is_kept(keys, size, place, deduplicate);
            unsigned int num_kept;
            Word target = num_before + block_rank(stays, num_kept);
            num_before += num_kept;
            if (place >= size) continue;  // all barriers of the round are behind
            Word key = keys[place], row = key >> vertex_bits;
            if (stays) {
                Word index = key & index_mask;
                indices[target] = names ? names[index] : Vertex(index);
                if (weight_bytes) copy_weight(key_weights, order[place], weights, target, weight_bytes);
            }
            Degree* degree = (Degree*)degrees + row;
            if (place == 0 || keys[place - 1] >> vertex_bits != row) atomicAdd(degree, Degree(0) - Degree(target));
            if (place + 1 == size || keys[place + 1] >> vertex_bits != row) atomicAdd(degree, Degree(target + stays));
        }
    }
}
