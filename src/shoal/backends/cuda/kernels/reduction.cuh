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

// Sums are rounded by themselves, never together with the product before them: that would depend on the way it came.
struct Add {
    template <class T>
    static INLINE T combine(T left, T right) { return left + right; }
    static INLINE float combine(float left, float right) { return __fadd_rn(left, right); }
    static INLINE double combine(double left, double right) { return __dadd_rn(left, right); }
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

// Work of a gather is dealt by edges: neighbouring vertices make a tile of about as many edges as any other, and a
// vertex with more than ROW edges is cut into pieces of so many.  Which edges a sum adds up in which order is the same
// in every run and for every number of warps.
constexpr Index ROW = 1024;
// Edges that a lane has under way at a time: of a list that the whole warp takes, of its own vertex if that has few, of
// several vertices' lists laid end to end, and of its own vertex where lists stand side by side.
constexpr int LONG_AHEAD = 8, FEW = 4, AHEAD = 4, SIDE_AHEAD = 4;

template <class Vertex>
struct Rows {
    Index count;             // of vertices with many edges
    const Vertex* vertices;
    const Index* firsts;     // where the pieces of each begin; one more than there are vertices
    const Vertex* owners;    // of each piece: the place of its vertex in `vertices`,
    const Vertex* numbers;   // and which of the vertex's pieces it is
    void* values;            // of each piece, those of a vertex side by side
    Index num_tiles;
    const Vertex* tiles;     // where each begins; one more than there are
    Index side_by_side;      // from this vertex on, lists stand so: see `gather_beside`
};

template <class Op>
INLINE typename Op::Value sum_lanes(typename Op::Value value) {
    for (int step = WARP / 2; step > 0; step /= 2) value = Op::add(value, __shfl_down_sync(ALL_LANES, value, step));
    return __shfl_sync(ALL_LANES, value, 0);
}

// Return the value of the edges from `start` on, up to `stop`, of one vertex: the whole warp takes them.  A gather's
// rule only reads, so the last edge may be looked at again.  The list itself is read once, so it does not stay in a cache.
template <class Op, class Vertex>
INLINE typename Op::Value gather_list(const Op& op, Index dst, Index start, Index stop, const Vertex* indices) {
    typename Op::Value value = Op::zero();
    for (Index first = start + lane(); first - lane() < stop; first += LONG_AHEAD * WARP) {
        Vertex src[LONG_AHEAD];
        typename Op::Value values[LONG_AHEAD];
#pragma unroll
        for (int i = 0; i < LONG_AHEAD; i++) src[i] = __ldcs(indices + smaller(first + i * WARP, stop - 1));
#pragma unroll
        for (int i = 0; i < LONG_AHEAD; i++) {
            Index from = src[i];
            __builtin_assume(from >= 0);
            values[i] = op.visit(from, dst, smaller(first + i * WARP, stop - 1));
        }
#pragma unroll
        for (int i = 0; i < LONG_AHEAD; i++) {
            if (first + i * WARP < stop) value = Op::add(value, values[i]);
        }
    }
    return sum_lanes<Op>(value);
}

// Return the value of up to FEW edges of a lane's own vertex.
template <class Op, class Vertex>
INLINE typename Op::Value gather_few(const Op& op, Index dst, Index start, int degree, const Vertex* indices) {
    typename Op::Value value = Op::zero();
    if (degree == 0) return value;
    Vertex src[FEW];
    typename Op::Value values[FEW];
#pragma unroll
    for (int i = 0; i < FEW; i++) src[i] = indices[start + (i < degree ? i : degree - 1)];
#pragma unroll
    for (int i = 0; i < FEW; i++) {
        Index from = src[i];
        __builtin_assume(from >= 0);
        values[i] = op.visit(from, dst, start + (i < degree ? i : degree - 1));
    }
#pragma unroll
    for (int i = 0; i < FEW; i++) {
        if (i < degree) value = Op::add(value, values[i]);
    }
    return value;
}

// Room of a warp, one for all gathers of a phase: all blocks meet between any two.  Shared memory is none of the cache's,
// so there is as little as will do.
INLINE Word64* staged_room() {
    __shared__ Word64 rooms[BLOCK_WARPS * WARP];
    return rooms + threadIdx.x / WARP * WARP;
}

// Return the value of a lane's own vertex: the edges of all lanes are laid end to end and dealt to them, and what they
// find goes through shared memory.
template <class Op, class Vertex>
INLINE typename Op::Value gather_short(const Op& op, Index dst, Index start, int degree, const Vertex* indices) {
    using Value = typename Op::Value;
    static_assert(sizeof(Value) == sizeof(Word64), "a value is a word");
    Value* const room = reinterpret_cast<Value*>(staged_room());
    Value value = Op::zero();
    const int behind = scan_warp(degree), begin = behind - degree;
    const int total = __shfl_sync(ALL_LANES, behind, WARP - 1);
    for (int first = 0; first < total; first += AHEAD * WARP) {
        Vertex src[AHEAD];
        Index edge[AHEAD], to[AHEAD];
        Value found[AHEAD];
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            const int wanted = first + i * WARP + lane(), item = wanted < total ? wanted : total - 1;
            const int owner = owner_of(behind, item);
            edge[i] = __shfl_sync(ALL_LANES, start - begin, owner) + item;
            to[i] = Op::FROM_QUEUE ? __shfl_sync(ALL_LANES, dst, owner) : dst - lane() + owner;
            src[i] = __ldcs(indices + edge[i]);
        }
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            Index from = src[i];
            __builtin_assume(from >= 0 && to[i] >= 0);
            found[i] = op.visit(from, to[i], edge[i]);
        }
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            room[lane()] = found[i];
            __syncwarp();
            const int low = first + i * WARP, high = low + WARP;
            const int from = begin > low ? begin : low, stop = behind < high ? behind : high;
            for (int item = from; item < stop; item++) value = Op::add(value, room[item - low]);
            __syncwarp();
        }
    }
    return value;
}

// Return the value of a lane's own vertex where the lists of a warp's vertices stand side by side from `base` on: first
// the first edges of all, then the second ones of those that have two, and so on.  (A sliced ELLPACK without padding.)
// In hub order the vertices have about as many edges, and edges of the same number lead to sources near one another.
template <class Op, class Vertex>
INLINE typename Op::Value gather_beside(const Op& op, Index dst, Index base, int degree, const Vertex* indices) {
    using Value = typename Op::Value;
    Value value = Op::zero();
    const Vertex* const lists = indices + base;
    for (int number = 0, at = 0; __any_sync(ALL_LANES, number < degree); number += SIDE_AHEAD) {
        Vertex src[SIDE_AHEAD];
        int place[SIDE_AHEAD];
        Value found[SIDE_AHEAD];
#pragma unroll
        for (int i = 0; i < SIDE_AHEAD; i++) {
            const bool is_there = number + i < degree;
            const Word32 having = __ballot_sync(ALL_LANES, is_there);
            place[i] = is_there ? at + __popc(having & ((1u << lane()) - 1u)) : 0;  // or the first of all: it is there
            at += __popc(having);
            src[i] = __ldcs(lists + place[i]);
        }
#pragma unroll
        for (int i = 0; i < SIDE_AHEAD; i++) {
            Index from = src[i];
            __builtin_assume(from >= 0 && dst >= 0);
            found[i] = op.visit(from, dst, base + place[i]);
        }
#pragma unroll
        for (int i = 0; i < SIDE_AHEAD; i++) {
            if (number + i < degree) value = Op::add(value, found[i]);
        }
    }
    return value;
}

// Gather for the vertices at the positions from `begin` on, up to `end`; the whole warp calls it.
template <bool HAS_ROWS, class Op, class Vertex, class Edge, class Totals>
INLINE void gather_tile(const Op& op, const Vertex* sources, Index begin, Index end, const Edge* indptr,
                        const Vertex* indices, Index side_by_side, Index& visited, Totals& mine) {
    for (Index first = begin; first < end; first += WARP) {
        const Index position = first + lane();
        Index dst = first + lane(), start = 0, degree = 0;
        bool is_mine = position < end;
        if (is_mine) {
            dst = vertex_at<Op>(sources, position);
            is_mine = op.is_owned(dst);
            start = indptr[dst];
            degree = Index(indptr[dst + 1]) - start;
            op.fetch(dst);
        }
        if (HAS_ROWS && degree > ROW) {
            is_mine = false;
            degree = 0;
        }
        visited += degree;
        if (HAS_ROWS && first >= side_by_side) {
            const Index base = __shfl_sync(ALL_LANES, start, 0);
            const auto value = gather_beside(op, dst, base, static_cast<int>(degree), indices);
            if (is_mine) op.finish(dst, value, mine);
            continue;
        }
        const int few = degree < WARP ? static_cast<int>(degree) : 0;
        typename Op::Value value = __all_sync(ALL_LANES, few <= FEW)
                                       ? gather_few(op, dst, start, few, indices)
                                       : gather_short(op, dst, start, few, indices);
        for (Word32 rest = __ballot_sync(ALL_LANES, degree >= WARP); rest != 0; rest &= rest - 1) {
            const int owner = __ffs(rest) - 1;
            const Index target = __shfl_sync(ALL_LANES, dst, owner), from = __shfl_sync(ALL_LANES, start, owner);
            const Index stop = from + __shfl_sync(ALL_LANES, degree, owner);
            __builtin_assume(target >= 0);
            const typename Op::Value total = gather_list(op, target, from, stop, indices);
            if (lane() == owner) value = total;
        }
        if (is_mine) op.finish(dst, value, mine);
    }
}

template <class Op, class Vertex, class Edge, class Totals>
INLINE void gather(const Op& op, Index* control, Index& generation, const Vertex* sources,
                   Index begin, Index end, const Edge* indptr, const Vertex* indices,
                   const Rows<Vertex>& rows, Totals* partials) {
    using Value = typename Op::Value;
    Value* const values = static_cast<Value*>(rows.values);
    Index visited = 0;
    Totals mine = Totals::identity();
    if constexpr (Op::FROM_QUEUE) {
        for (Index first = begin + warp_in_grid() * WARP; first < end; first += warps_in_grid() * WARP) {
            gather_tile<false>(op, sources, first, smaller(first + WARP, end), indptr, indices, NEVER, visited, mine);
        }
    } else {
        const Index num_pieces = rows.count > 0 ? rows.firsts[rows.count] : 0;
        for (Index item = warp_in_grid(); item < num_pieces + rows.num_tiles; item += warps_in_grid()) {
            if (item < num_pieces) {
                const Index row = rows.owners[item], dst = rows.vertices[row];
                __builtin_assume(dst >= 0);
                const Index number = rows.numbers[item];
                const Index start = Index(indptr[dst]) + number * ROW;
                const Index stop = smaller(start + ROW, Index(indptr[dst + 1]));
                const Value value = gather_list(op, dst, start, stop, indices);
                if (lane() == 0) values[rows.firsts[row] + number] = value;
                visited += lane() == 0 ? stop - start : 0;
            } else {
                const Vertex* tile = rows.tiles + (item - num_pieces);
                gather_tile<true>(op, sources, Index(tile[0]), Index(tile[1]), indptr, indices, rows.side_by_side, visited,
                                  mine);
            }
        }
        if (rows.count > 0) {
            await_fetched();
            meet(control, generation);
            for (Index row = warp_in_grid(); row < rows.count; row += warps_in_grid()) {
                Value value = Op::zero();
                for (Index piece = rows.firsts[row] + lane(); piece < rows.firsts[row + 1]; piece += WARP) {
                    value = Op::add(value, values[piece]);
                }
                value = sum_lanes<Op>(value);
                const Index dst = rows.vertices[row];
                __builtin_assume(dst >= 0);
                if (lane() == 0) op.finish(dst, value, mine);
            }
        }
    }
    await_fetched();
    if (Op::HAS_TOTALS) keep_totals(mine, partials);
    add_up(control, EDGES, visited);
}

}  // namespace shoal
