// SPDX-License-Identifier: Apache-2.0
// Push advance: visit the edges of a frontier's vertices.
//
// A warp takes up to 32 vertices, fewer where there are more warps than that needs, but as many as have an edge for each
// lane if all have few: then fewer warps append what they find.  Vertices with at least 32 edges have the whole warp in
// turn; the edges of the others are laid end to end and dealt to the lanes (Gunrock's warp-level balance).  A vertex with
// more than PIECE edges is cut into pieces that any warp takes after a barrier (logarithmic radix binning's idea,
// ButterFly BFS, with two bins): so no warp has more than PIECE edges of one vertex.  The fewer vertices there are, the
// smaller the pieces, as far as there is room for them.  Where no vertex has more than a few edges, as on road networks,
// there is nothing to balance: see `push_few`.
#pragma once

#include "loop.cuh"

namespace shoal {

constexpr Index PIECE = 1024, SMALLEST_PIECE = 64;

// Pieces of vertices with many edges: the vertex, and which of its pieces.
template <class Vertex>
struct Pieces {
    Vertex* sources;
    Word32* numbers;
    Index capacity;  // 0 where no vertex has so many edges
    Index max_degree;
};

// Return the edges of a piece, if so many vertices have the frontier.
template <class Vertex>
INLINE Index piece_of(const Pieces<Vertex>& pieces, Index num_vertices) {
    Index piece = PIECE;
    while (piece > SMALLEST_PIECE && num_vertices * piece < warps_in_grid() * PIECE &&
           num_vertices * (pieces.max_degree / (piece / 2) + 1) <= pieces.capacity) {
        piece /= 2;
    }
    return piece;
}

// Edges that a lane has under way at a time: their destinations are loaded, and asked whether they want a visit, before
// the first is visited.  With 4 of them a push was slower by a tenth.
constexpr int BATCH = 2;
// So many edges of every vertex a lane takes by itself: with more, those whose vertices have fewer would wait too long.
constexpr Index MOST_FIRST = 4;

// No vertex of a grid has more edges, and hardly one of a road network.
constexpr Index FEW_EDGES = 8;

// Where edges are and which of them there are: one for each lane, COUNT times.
template <class Vertex, int COUNT = BATCH>
struct Edges {
    bool is_there[COUNT];
    Vertex src[COUNT];
    Index edge[COUNT];
};

// What becomes of an edge: its destination joins the output, if the rule says so.
template <class Op, class Vertex>
struct Discover {
    const Op& op;
    const Vertex* indices;
    Outbox<Vertex> outbox;
    Word32* marks;

    // All lanes of the warp call it.  Of an edge that is not there, the number is that of another.
    template <int COUNT>
    INLINE void operator()(const Edges<Vertex, COUNT>& edges) {
        Vertex dst[COUNT];
        bool wants[COUNT];
#pragma unroll
        for (int i = 0; i < COUNT; i++) dst[i] = indices[edges.edge[i]];
#pragma unroll
        for (int i = 0; i < COUNT; i++) wants[i] = (!Op::HAS_WHERE || op.where(Index(dst[i]))) && edges.is_there[i];
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            bool joins = false;
            if (wants[i]) {
                Index src = edges.src[i], to = dst[i];
                __builtin_assume(src >= 0 && to >= 0);
                joins = op.visit(src, to, edges.edge[i]);
                if (Op::HAS_OUTPUT && !Op::UNIQUE && joins) joins = add_bit(marks, to);
            }
            if (Op::HAS_OUTPUT) outbox.add(joins, dst[i]);
        }
    }

    INLINE void flush() {
        if (Op::HAS_OUTPUT) outbox.flush();
    }
};

// The edges from `edge` on, up to `stop`, of one vertex: the whole warp takes them.
template <class Visit, class Vertex>
INLINE void visit_list(Visit& visit, Vertex src, Index edge, Index stop) {
    for (; edge < stop; edge += BATCH * WARP) {
        Edges<Vertex> edges;
#pragma unroll
        for (int i = 0; i < BATCH; i++) {
            Index mine = edge + i * WARP + lane();
            edges.is_there[i] = mine < stop;
            edges.src[i] = src;
            edges.edge[i] = smaller(mine, stop - 1);
        }
        visit(edges);
    }
}

template <class Op, class Edge>
INLINE void bounds_of(const Edge* indptr, Index src, Index& start, Index& degree) {
    start = Index(indptr[src]) + Op::SKIP_EDGES;
    degree = larger(Index(indptr[src + 1]) - start, 0);
    if (Op::FIRST_EDGES >= 0) degree = smaller(degree, Op::FIRST_EDGES);
}

// The few first edges of every vertex: each warp goes through a range of neighbouring ids, and a lane takes its vertex's
// edges one after the other.  So edges that end at a vertex's neighbours are visited by few warps at a time: connected
// components of a grid take 2/3 of the time that pieces of the range which all warps go through together take.
template <class Op, class Visit, class Vertex, class Edge>
INLINE Index push_first(Visit& visit, Index begin, Index end, const Edge* indptr) {
    const Index rounds = (end - begin + warps_in_grid() * WARP - 1) / (warps_in_grid() * WARP);
    const Index from = begin + warp_in_grid() * rounds * WARP, to = smaller(end, from + rounds * WARP);
    Index visited = 0;
    for (Index first = from; first < to; first += WARP) {
        const Index src = smaller(first + lane(), to - 1);
        Index start, degree;
        bounds_of<Op>(indptr, src, start, degree);
        if (first + lane() >= to) degree = 0;
        visited += degree;
        for (int number = 0; number < Op::FIRST_EDGES; number += BATCH) {
            const Word32 having = __ballot_sync(ALL_LANES, number < degree);
            if (having == 0) break;
            const Index another = __shfl_sync(ALL_LANES, start + number, __ffs(having) - 1);
            Edges<Vertex> edges;
#pragma unroll
            for (int i = 0; i < BATCH; i++) {
                edges.is_there[i] = number + i < degree;
                edges.src[i] = static_cast<Vertex>(src);
                edges.edge[i] = edges.is_there[i] ? start + number + i : another;
            }
            visit(edges);
        }
    }
    return visited;
}

// The edges of listed vertices none of which has many: one for a lane, and as many lanes for a vertex as any may need.
// So nobody finds out first whose edges are whose, and no lane visits a second: in short supersteps, what is done one
// after the other is what takes time.  Breadth-first search of a grid takes 6/7 of it.
template <class Op, class Visit, class Vertex, class Edge>
INLINE Index push_few(Visit& visit, const Vertex* sources, Index begin, Index end, Word32* marks_in, const Edge* indptr,
                      Index max_degree) {
    int shift = 0;
    while ((1 << shift) < max_degree) shift++;
    const Index share = WARP >> shift, number = lane() & ((1 << shift) - 1);
    Index visited = 0;
    for (Index first = begin + warp_in_grid() * share; first < end; first += warps_in_grid() * share) {
        const Index position = first + (lane() >> shift);
        Index src = 0, start = 0, degree = 0;
        if (position < end) {
            src = sources[position];
            __builtin_assume(src >= 0);
            if (Op::CLEARS_MARKS) marks_in[src >> 5] = 0;
            bounds_of<Op>(indptr, src, start, degree);
        }
        if (!__any_sync(ALL_LANES, degree > 0)) continue;
        const bool is_there = number < degree;
        const Index edge = degree > 0 ? start + smaller(number, degree - 1) : 0;
        visited += is_there;
        visit(Edges<Vertex, 1>{{is_there}, {static_cast<Vertex>(src)}, {edge}});
    }
    return visited;
}

// Hand every edge of `sources[begin:end]` to `visit`; `marks_in` is cleared a word at a time, if all of it is to become
// zero.
template <class Op, class Visit, class Vertex, class Edge>
INLINE void push(Visit& visit, Index* control, Index& generation, const Vertex* sources,
                 Index begin, Index end, Word32* marks_in, const Edge* indptr,
                 const Pieces<Vertex>& pieces) {
    constexpr bool IS_EVERYTHING = !Op::FROM_QUEUE && !Op::CLEARS_MARKS;
    if constexpr (IS_EVERYTHING && Op::FIRST_EDGES >= 0 && Op::FIRST_EDGES <= MOST_FIRST) {
        const Index visited = push_first<Op, Visit, Vertex>(visit, begin, end, indptr);
        visit.flush();
        add_up(control, EDGES, visited);
        return;
    }
    if constexpr (Op::FROM_QUEUE && Op::FIRST_EDGES < 0) {
        if (pieces.max_degree <= FEW_EDGES) {
            const Index visited = push_few<Op>(visit, sources, begin, end, marks_in, indptr, pieces.max_degree);
            visit.flush();
            add_up(control, EDGES, visited);
            return;
        }
    }
    Index visited = 0;
    const Index enough = smaller(larger((end - begin + warps_in_grid() - 1) / warps_in_grid(), 1), WARP);
    const Index share = larger(enough, WARP / larger(pieces.max_degree, 1));
    const bool may_cut = pieces.capacity > 0 && (Op::FIRST_EDGES < 0 || Op::FIRST_EDGES > PIECE);
    const Index piece_size = may_cut ? piece_of(pieces, end - begin) : PIECE;
    for (Index first = begin + warp_in_grid() * share; first < end; first += warps_in_grid() * share) {
        Index position = first + lane();
        bool has_vertex = lane() < share && position < end;
        Index src = 0, start = 0, degree = 0;
        if (has_vertex) {
            src = Op::FROM_QUEUE ? Index(sources[position]) : position;
            __builtin_assume(src >= 0);
            if (Op::CLEARS_MARKS) marks_in[src >> 5] = 0;
            bounds_of<Op>(indptr, src, start, degree);
        }
        visited += degree;
        if (may_cut) {
            for (Word32 large = __ballot_sync(ALL_LANES, degree > piece_size); large != 0; large &= large - 1) {
                int owner = __ffs(large) - 1;
                Index count = (__shfl_sync(ALL_LANES, degree, owner) + piece_size - 1) / piece_size;
                Index from = __shfl_sync(ALL_LANES, src, owner);
                Index at = 0;
                if (lane() == owner) at = fetch_add(control + NUM_PIECES, count);
                at = __shfl_sync(ALL_LANES, at, owner);
                for (Index number = lane(); number < count; number += WARP) {
                    pieces.sources[at + number] = static_cast<Vertex>(from);
                    pieces.numbers[at + number] = static_cast<Word32>(number);
                }
                if (lane() == owner) degree = 0;
            }
        }
        for (Word32 medium = __ballot_sync(ALL_LANES, degree >= WARP); medium != 0; medium &= medium - 1) {
            int owner = __ffs(medium) - 1;
            Index from = __shfl_sync(ALL_LANES, src, owner);
            Index edge = __shfl_sync(ALL_LANES, start, owner);
            Index stop = edge + __shfl_sync(ALL_LANES, degree, owner);
            visit_list(visit, static_cast<Vertex>(from), edge, stop);
            if (lane() == owner) degree = 0;
        }
        int behind = scan_warp(static_cast<int>(degree));
        int total = __shfl_sync(ALL_LANES, behind, WARP - 1);
        for (int first_item = 0; first_item < total; first_item += BATCH * WARP) {
            Edges<Vertex> edges;
#pragma unroll
            for (int i = 0; i < BATCH; i++) {
                int item = first_item + i * WARP + lane();
                edges.is_there[i] = item < total;
                item = item < total ? item : total - 1;
                const int owner = owner_of(behind, item);
                edges.src[i] = static_cast<Vertex>(__shfl_sync(ALL_LANES, src, owner));
                edges.edge[i] = __shfl_sync(ALL_LANES, start + degree - behind, owner) + item;
            }
            visit(edges);
        }
    }
    if (may_cut) {
        meet(control, generation);
        const Index num_pieces = control[NUM_PIECES];
        for (Index piece = warp_in_grid(); piece < num_pieces; piece += warps_in_grid()) {
            Index src = pieces.sources[piece];
            __builtin_assume(src >= 0);
            Index start, degree;
            bounds_of<Op>(indptr, src, start, degree);
            Index stop = start + degree;
            Index edge = start + pieces.numbers[piece] * piece_size;
            stop = smaller(stop, edge + piece_size);
            visit_list(visit, static_cast<Vertex>(src), edge, stop);
        }
    }
    visit.flush();
    add_up(control, EDGES, visited);
}

}  // namespace shoal
