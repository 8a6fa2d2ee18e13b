// SPDX-License-Identifier: Apache-2.0
// Pull advance: every vertex that wants a visit looks among its sources for one of the frontier.
//
// A warp has the 32 vertices of a word of the bitmaps at a time, so it writes both words without atomics.  A lane tries a
// few edges of its vertex; what is left then, long lists without a hit, the whole warp goes through together.
// `remaining` holds the vertices that may still want a visit.  A rule is shareable if several edges of a destination may
// be visited at once: it can push, too, or it only stores.
#pragma once

#include "loop.cuh"

namespace shoal {

constexpr int TRIES = 8;  // edges that a lane looks at by itself: a warp waits for its slowest lane
// Edges that a lane has under way at a time where the warp goes through a list together: the longest list of all may be
// what the others wait for.
constexpr int STEPS = 8;

// Look for sources of the vertices of one word that want a visit; the whole warp calls it, a lane has a vertex.  Return
// whether it joined, and whether it may still want a visit.
template <class Op, class Vertex, class Edge>
INLINE void pull_word(const Op& op, Index word, Word32 wanting, const Word32* front, const Edge* indptr,
                      const Vertex* indices, Index& visited, bool& joined, bool& is_left) {
    Index dst = word * WARP + lane();
    __builtin_assume(dst >= 0);
    Index edge = 0, stop = 0;
    bool wants = wanting >> lane() & 1u;
    if (wants) {
        edge = indptr[dst];
        stop = indptr[dst + 1];
        wants = edge < stop && op.where(dst);
    }
    joined = false;
    bool is_searching = wants;
    visited -= wants ? edge : 0;
    for (int i = 0; i < TRIES && is_searching && edge < stop; i++, edge++) {
        Index src = indices[edge];
        __builtin_assume(src >= 0);
        if (Op::ALL_SOURCES || has_bit(front, src)) {
            if (op.visit_own(src, dst, edge)) joined = true;
            if (Op::EARLY_EXIT && !op.where(dst)) is_searching = false;
        }
    }
    for (Word32 rest = __ballot_sync(ALL_LANES, is_searching && edge < stop); rest != 0; rest &= rest - 1) {
        const int owner = __ffs(rest) - 1;
        Index at = __shfl_sync(ALL_LANES, edge, owner);
        const Index end = __shfl_sync(ALL_LANES, stop, owner);
        const Index target = __shfl_sync(ALL_LANES, dst, owner);
        bool has_found = false;
        while (at < end && !has_found) {
            Vertex src[STEPS];
            bool is_hit[STEPS];
#pragma unroll
            for (int i = 0; i < STEPS; i++) src[i] = indices[smaller(at + i * WARP + lane(), end - 1)];
#pragma unroll
            for (int i = 0; i < STEPS; i++) {
                is_hit[i] = at + i * WARP + lane() < end && (Op::ALL_SOURCES || has_bit(front, Index(src[i])));
            }
#pragma unroll
            for (int i = 0; i < STEPS; i++) {
                if (at >= end || has_found) break;
                const Index from = src[i], mine = at + lane();
                __builtin_assume(from >= 0 && target >= 0);
                if constexpr (!Op::EARLY_EXIT || Op::IS_SHAREABLE) {
                    bool joins = is_hit[i] && op.visit(from, target, mine);
                    if (__any_sync(ALL_LANES, joins) && lane() == owner) joined = true;
                    __syncwarp();
                    if (Op::EARLY_EXIT) has_found = __any_sync(ALL_LANES, is_hit[i]) && !op.where(target);
                } else {
                    // One lane after the other: the vertex is one thread's at a time, as its rule was promised.
                    Word32 hits = __ballot_sync(ALL_LANES, is_hit[i]);
                    for (; hits != 0 && !has_found; hits &= hits - 1) {
                        const int hit = __ffs(hits) - 1;
                        Index source = __shfl_sync(ALL_LANES, from, hit);
                        if (lane() == owner) {
                            if (op.visit_own(source, target, at + hit)) joined = true;
                            has_found = !op.where(target);
                        }
                        has_found = __shfl_sync(ALL_LANES, has_found, owner);
                    }
                }
                at += WARP;
            }
        }
        if (lane() == owner) edge = smaller(at, end);
    }
    visited += wants ? edge : 0;
    is_left = wants && (!Op::EARLY_EXIT || op.where(dst));
}

template <class Op, class Vertex, class Edge>
INLINE void pull(const Op& op, Index* control, Index num_vertices, const Word32* front, Word32* back,
                 Word32* remaining, const Edge* indptr, const Vertex* indices) {
    Index joined_total = 0, visited = 0;
    // Every warp takes as many words in a row, up to one a lane: it loads them at once, and passes by those that are zero.
    const Index num_words = (num_vertices + WARP - 1) / WARP, all_lanes = warps_in_grid() * WARP;
    const Index rounds = larger((num_words + all_lanes - 1) / all_lanes, 1);
    const Index share = (num_words + warps_in_grid() * rounds - 1) / (warps_in_grid() * rounds);
    for (Index first = warp_in_grid() * share; first < num_words; first += warps_in_grid() * share) {
        const bool has_word = lane() < share && first + lane() < num_words;
        const Word32 mine = has_word ? remaining[first + lane()] : 0;
        Word32 found = 0, left = 0;
        for (Word32 words = __ballot_sync(ALL_LANES, mine != 0); words != 0; words &= words - 1) {
            const int place = __ffs(words) - 1;
            const Word32 wanting = __shfl_sync(ALL_LANES, mine, place);
            bool joined, is_left;
            pull_word(op, first + place, wanting, front, indptr, indices, visited, joined, is_left);
            const Word32 joined_bits = __ballot_sync(ALL_LANES, joined), left_bits = __ballot_sync(ALL_LANES, is_left);
            if (lane() == place) {
                found = joined_bits;
                left = left_bits;
            }
        }
        if (has_word) {
            back[first + lane()] = found;
            if (mine != 0) remaining[first + lane()] = left;
            joined_total += __popc(found);
        }
    }
    add_up(control, OUTPUT, joined_total);
    add_up(control, EDGES, visited);
}

// Turn to pull if that is less to do for this very frontier; all blocks call it before a push.
//
// A push visits the frontier's edges.  A vertex that pulls goes through its list until it meets one of them: one in so
// many edges as the frontier has of all.  A step of a pull costs less than an edge of a push; with a quarter, searches
// that meet the hubs of a Kronecker graph in their first frontiers turn there, where they should.  Edges are counted
// only if vertices with the most edges of all would make the difference.
constexpr double PULL_COST = 0.25, USUAL_KNOB = 0.01;

// How devices agree on a number: there is but one device.
struct Alone {
    INLINE Index operator()(Index*, Index mine) const { return mine; }
};

template <class Vertex, class Edge, class Agree>
INLINE void reconsider(Index* control, Index& generation, const double* knobs, const Vertex* queue,
                       const Edge* indptr, Index max_degree, Agree agree) {
    if (control[HAS_PULLED] != 0 || control[HAS_QUEUE] == 0) return;
    const double unvisited = double(control[NUM_VERTICES] - control[NUM_VISITED]);
    const double limit = PULL_COST * knobs[0] / USUAL_KNOB * unvisited * double(control[NUM_EDGES]);
    const double most = double(control[SIZE]) * double(max_degree);
    if (most * most <= limit) return;
    count_frontier_edges(control, queue, indptr);
    meet(control, generation, [=](Index* control) {
        if (threadIdx.x != 0) return;
        const double found = double(agree(control, control[FRONTIER_EDGES]));
        control[FRONTIER_EDGES] = 0;
        if (found * found > limit) {
            control[DIRECTION] = PULL;
            control[HAS_PULLED] = 1;
        }
    });
}

}  // namespace shoal
