// SPDX-License-Identifier: Apache-2.0
// Reductions: reduce over vertices, and gather over their incoming edges.
//
// Every thread combines the values of its vertices, every block those of its threads, and the last block to arrive
// those of all.  Whole numbers, minima and maxima have no order, and a sum of floats carries what rounding took from it:
// so a result does not depend on who was faster, nor on the number of blocks.  The sum of one vertex's edges has a fixed
// order.
#pragma once

#include "vertices.cuh"

namespace shoal {

struct Add {
    template <class T>
    static INLINE T combine(T left, T right) { return left + right; }
};
struct Minimum {
    template <class T>
    static INLINE T combine(T left, T right) { return right < left ? right : left; }
};
struct Maximum {
    template <class T>
    static INLINE T combine(T left, T right) { return right > left ? right : left; }
};

// A value that is combined; `identity` changes nothing.
template <class Combiner, class T>
struct Total {
    T sum;
    INLINE void add(T value) { sum = Combiner::combine(sum, value); }
    INLINE void merge(const Total& other) { add(other.sum); }
    INLINE T value() const { return sum; }
};

// A sum of floats with what rounding took from it (Knuth's exact sum of two): its order shows only far behind the last
// digit that is kept.
struct ExactSum {
    double sum, rest;
    INLINE void add(double value) {
        double rounded = __dadd_rn(sum, value);
        double added = __dsub_rn(rounded, sum);
        rest += __dadd_rn(__dsub_rn(sum, __dsub_rn(rounded, added)), __dsub_rn(value, added));
        sum = rounded;
    }
    INLINE void merge(const ExactSum& other) {
        add(other.sum);
        add(other.rest);
    }
    // Of what is no number, or too large for one, there is no rest.
    INLINE double value() const { return isfinite(sum) ? sum + rest : sum; }
};

template <class T>
INLINE T shuffle_down(T value, int step) {
    static_assert(sizeof(T) % 8 == 0, "in words of 8 bytes");
    Word64 words[sizeof(T) / 8];
    memcpy(words, &value, sizeof(T));
    for (int i = 0; i < int(sizeof(T) / 8); i++) words[i] = __shfl_down_sync(ALL_LANES, words[i], step);
    memcpy(&value, words, sizeof(T));
    return value;
}

template <class T>
INLINE T merge_warp(T mine) {
    for (int step = WARP / 2; step > 0; step /= 2) {
        T other = shuffle_down(mine, step);
        mine.merge(other);
    }
    return mine;  // of all lanes, in the first
}

// Merge every thread's totals; the first thread has the result.  All threads of the block call it.
template <class Totals>
INLINE Totals merge_block(Totals mine) {
    __shared__ Word64 room[WARP * sizeof(Totals) / 8];
    Totals* of_warps = reinterpret_cast<Totals*>(room);
    mine = merge_warp(mine);
    __syncthreads();
    if (lane() == 0) of_warps[threadIdx.x / WARP] = mine;
    __syncthreads();
    Totals total = Totals::identity();
    if (threadIdx.x < blockDim.x / WARP) total = of_warps[threadIdx.x];
    return threadIdx.x < WARP ? merge_warp(total) : total;
}

// Keep a block's totals where the last one finds them; all threads of the block call it.
template <class Totals>
INLINE void keep_totals(const Totals& mine, Totals* partials) {
    Totals total = merge_block(mine);
    if (threadIdx.x == 0) partials[blockIdx.x] = total;
}

template <class Op, class Vertex, class Totals>
INLINE void reduce(const Op& op, const Vertex* sources, Index begin, Index end, Totals* partials) {
    Totals mine = Totals::identity();
    for (Index position = begin + thread_in_grid(); position < end; position += threads_in_grid()) {
        op.visit(vertex_at<Op>(sources, position), mine);
    }
    keep_totals(mine, partials);
}

// Merge the blocks' values, by one block of threads; the first thread has the result.
template <class Totals>
INLINE Totals settle(const Totals* partials) {
    Totals mine = Totals::identity();
    for (Index block = threadIdx.x; block < gridDim.x; block += blockDim.x) mine.merge(partials[block]);
    return merge_block(mine);
}

// Vertices with more than ROW edges are cut into pieces of so many, the same in every run, so that no warp has more.
constexpr Index ROW = 4096;
constexpr int AHEAD = 4;  // edges of a short list that are loaded at once

template <class Vertex>
struct Rows {
    Index count;             // of vertices with many edges, ascending
    const Vertex* vertices;
    const Index* firsts;     // where the pieces of each begin; one more than there are vertices
    const Vertex* owners;    // of each piece: the place of its vertex in `vertices`
    void* values;            // of each piece
};

template <class Op, class Vertex>
INLINE typename Op::Value gather_edges(const Op& op, Index dst, Index start, Index stop,
                                       const Vertex* indices) {
    typename Op::Value value = Op::zero();
    Index edge = start + lane();
    for (; edge + (AHEAD - 1) * WARP < stop; edge += AHEAD * WARP) {
        Vertex src[AHEAD];
#pragma unroll
        for (int i = 0; i < AHEAD; i++) src[i] = indices[edge + i * WARP];
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            Index from = src[i];
            __builtin_assume(from >= 0);
            value = Op::add(value, op.visit(from, dst, edge + i * WARP));
        }
    }
    for (; edge < stop; edge += WARP) {
        Index src = indices[edge];
        __builtin_assume(src >= 0);
        value = Op::add(value, op.visit(src, dst, edge));
    }
    for (int step = WARP / 2; step > 0; step /= 2) value = Op::add(value, __shfl_down_sync(ALL_LANES, value, step));
    return __shfl_sync(ALL_LANES, value, 0);
}

template <class Op, class Vertex, class Edge, class Totals>
INLINE void gather(const Op& op, Index* control, Index& generation, const Vertex* sources,
                   Index begin, Index end, const Edge* indptr, const Vertex* indices,
                   const Rows<Vertex>& rows, Totals* partials) {
    using Value = typename Op::Value;
    const bool has_rows = !Op::FROM_QUEUE && rows.count > 0;
    if (has_rows) {
        const Index num_pieces = rows.firsts[rows.count];
        for (Index piece = warp_in_grid(); piece < num_pieces; piece += warps_in_grid()) {
            Index row = rows.owners[piece], dst = rows.vertices[row];
            Index start = Index(indptr[dst]) + (piece - rows.firsts[row]) * ROW;
            Index stop = smaller(start + ROW, Index(indptr[dst + 1]));
            Value value = gather_edges(op, dst, start, stop, indices);
            if (lane() == 0) static_cast<Value*>(rows.values)[piece] = value;
        }
        meet(control, generation);
    }
    Index visited = 0;
    Totals mine = Totals::identity();
    for (Index tile = begin + warp_in_grid() * WARP; tile < end; tile += warps_in_grid() * WARP) {
        Index position = tile + lane(), dst = 0, start = 0, stop = 0;
        if (position < end) {
            dst = vertex_at<Op>(sources, position);
            start = indptr[dst];
            stop = indptr[dst + 1];
        }
        visited += stop - start;
        Value value = Op::zero();
        if (stop - start < WARP) {
            // Several loads are under way at a time; a gather's rule only reads, so the last edge may be looked at
            // again.
            for (Index edge = start; edge < stop; edge += AHEAD) {
                Vertex src[AHEAD];
                Value values[AHEAD];
#pragma unroll
                for (int i = 0; i < AHEAD; i++) src[i] = indices[smaller(edge + i, stop - 1)];
#pragma unroll
                for (int i = 0; i < AHEAD; i++) {
                    Index from = src[i];
                    __builtin_assume(from >= 0);
                    values[i] = op.visit(from, dst, smaller(edge + i, stop - 1));
                }
#pragma unroll
                for (int i = 0; i < AHEAD; i++) {
                    if (edge + i < stop) value = Op::add(value, values[i]);
                }
            }
        }
        for (Word32 long_ones = __ballot_sync(ALL_LANES, stop - start >= WARP); long_ones != 0;
             long_ones &= long_ones - 1) {
            const int owner = __ffs(long_ones) - 1;
            const Index target = __shfl_sync(ALL_LANES, dst, owner);
            const Index from = __shfl_sync(ALL_LANES, start, owner), to = __shfl_sync(ALL_LANES, stop, owner);
            Value total = Op::zero();
            if (has_rows && to - from > ROW) {
                Index low = 0, high = rows.count;  // its place among the vertices with many edges
                while (low + 1 < high) {
                    Index middle = (low + high) / 2;
                    if (rows.vertices[middle] <= target) low = middle; else high = middle;
                }
                for (Index piece = rows.firsts[low]; piece < rows.firsts[low + 1]; piece++) {
                    total = Op::add(total, static_cast<const Value*>(rows.values)[piece]);
                }
            } else {
                total = gather_edges(op, target, from, to, indices);
            }
            if (lane() == owner) value = total;
        }
        if (position < end) op.finish(dst, value, mine);
    }
    if (Op::HAS_TOTALS) keep_totals(mine, partials);
    add_up(control, EDGES, visited);
}

}  // namespace shoal
