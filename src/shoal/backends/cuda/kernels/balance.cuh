// SPDX-License-Identifier: Apache-2.0
// Other ways to deal the edges of a push than that of push.cuh: by thread, by block, by bins, by merge path.
//
// Each hands every edge of the frontier to `visit` once; they differ only in who takes which.  A visit is made by all
// lanes of a warp, so a loop around it ends for all of them at once.  Bins and merge path keep a ledger with a number for
// each vertex of the frontier: all blocks meet before they read in it what others have written, and before anybody
// writes in it anew.
#pragma once

#include "push.cuh"
#include "vertices.cuh"

namespace shoal {

// A vertex and where its edges are.
struct List {
    Index src, start, degree;
};

// The frontier of a push, or a part of it: `sources[begin:end]`.
template <class Op, class VertexId, class Edge>
struct Work {
    using Vertex = VertexId;
    const Vertex* sources;
    Index begin, end;
    Word32* marks_in;
    const Edge* indptr;

    INLINE List list_of(Index src) const {
        __builtin_assume(src >= 0);
        List list{src, 0, 0};
        bounds_of<Op>(indptr, src, list.start, list.degree);
        return list;
    }

    INLINE List list_at(Index position) const { return list_of(vertex_at<Op>(sources, position)); }

    // The same for a thread that may have no vertex.  It clears a word of marks, if all of them are to become zero: so
    // it is called for every vertex once at least.
    INLINE List take(Index position, bool has_vertex) const {
        if (!has_vertex) return {0, 0, 0};
        const List list = list_at(position);
        if (Op::CLEARS_MARKS) marks_in[list.src >> 5] = 0;
        return list;
    }
};

// What a push writes of its frontier: a number for each vertex, and sums of bins or blocks.  Those of bins are zero
// between two pushes.
struct Ledger {
    Index* entries = nullptr;
    Index* sums = nullptr;
    Index capacity = NEVER;  // vertices that it has room for; who needs none has room for all
    Index max_degree = 0;
};

// Hand every edge of `sources[begin:end]` to `visit`, dealt by `Balance`; a frontier longer than the ledger comes in
// turns.
template <class Balance, class Op, class Visit, class Vertex, class Edge>
INLINE void push_by(Visit& visit, Index* control, Index& generation, const Vertex* sources, Index begin, Index end,
                    Word32* marks_in, const Edge* indptr, const Ledger& ledger) {
    Index visited = 0;
    for (Index first = begin; first < end; first += ledger.capacity) {
        if (first > begin) meet(control, generation);
        const Index last = smaller(end - first, ledger.capacity) + first;
        const Work<Op, Vertex, Edge> work{sources, first, last, marks_in, indptr};
        visited += Balance::deal(visit, work, control, generation, ledger);
    }
    visit.flush();
    add_up(control, EDGES, visited);
}

// Return how many vertices a warp or a block takes at a time: as many as it has room for, fewer if there are few.
INLINE Index share_of(Index num_vertices, Index num_takers, Index room) {
    return smaller(larger((num_vertices + num_takers - 1) / num_takers, 1), room);
}

// What the threads of the block before this one have, added up, with its own; `total` is that of all.  All threads of
// the block call it.
INLINE Index scan_block(Index value, Index& total) {
    __shared__ Index sums[WARP];
    value = scan_warp(value);
    __syncthreads();  // nobody reads the sums of an earlier scan any more
    if (lane() == WARP - 1) sums[threadIdx.x / WARP] = value;
    __syncthreads();
    if (threadIdx.x < WARP) sums[threadIdx.x] = scan_warp(threadIdx.x < BLOCK_WARPS ? sums[threadIdx.x] : Index(0));
    __syncthreads();
    total = sums[WARP - 1];
    return threadIdx.x < WARP ? value : value + sums[threadIdx.x / WARP - 1];
}

// A number for each thread of the block.
INLINE Index* block_room() {
    __shared__ Index room[BLOCK_WARPS * WARP];
    return room;
}

// Return how many of so many numbers, which ascend, are at most `value`.
template <class Number>
INLINE Index count_up_to(Index count, Index value, Number number_at) {
    Index low = 0, high = count;
    while (low < high) {
        const Index middle = (low + high) / 2;
        if (number_at(middle) <= value) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

// A lane goes through the edges of its own vertex.
struct ByThread {
    template <class Visit, class Work>
    static INLINE Index deal(Visit& visit, const Work& work, Index*, Index&, const Ledger&) {
        Index visited = 0;
        const Index share = share_of(work.end - work.begin, warps_in_grid(), WARP);
        for (Index first = work.begin + warp_in_grid() * share; first < work.end; first += warps_in_grid() * share) {
            const List mine = work.take(first + lane(), lane() < share && first + lane() < work.end);
            visited += mine.degree;
            for (Index number = 0; __any_sync(ALL_LANES, number < mine.degree); number += BATCH) {
                Edges<typename Work::Vertex> edges;
#pragma unroll
                for (int i = 0; i < BATCH; i++) {
                    edges.is_there[i] = number + i < mine.degree;
                    edges.src[i] = static_cast<typename Work::Vertex>(mine.src);
                    edges.edge[i] = edges.is_there[i] ? mine.start + number + i : 0;
                }
                visit(edges);
            }
        }
        return visited;
    }
};

// The edges of a block's vertices are laid end to end and dealt to all its warps.
struct ByBlock {
    template <class Visit, class Work>
    static INLINE Index deal(Visit& visit, const Work& work, Index*, Index&, const Ledger&) {
        Index* const behind = block_room();  // where the edges of each vertex end
        const Index share = share_of(work.end - work.begin, gridDim.x, blockDim.x);
        Index visited = 0;
        for (Index first = work.begin + blockIdx.x * share; first < work.end; first += gridDim.x * share) {
            const Index position = first + threadIdx.x;
            const Index degree = work.take(position, threadIdx.x < share && position < work.end).degree;
            visited += degree;
            Index total;
            behind[threadIdx.x] = scan_block(degree, total);  // behind its barriers nobody needs earlier vertices
            __syncthreads();
            for (Index item = threadIdx.x / WARP * BATCH * WARP; item < total; item += BATCH * blockDim.x) {
                Edges<typename Work::Vertex> edges;
#pragma unroll
                for (int i = 0; i < BATCH; i++) {
                    const Index wanted = item + i * WARP + lane(), nearest = smaller(wanted, total - 1);
                    const Index owner = count_up_to(share, nearest, [=](Index number) { return behind[number]; });
                    const List list = work.list_at(first + owner);
                    edges.is_there[i] = wanted < total;
                    edges.src[i] = static_cast<typename Work::Vertex>(list.src);
                    edges.edge[i] = list.start + list.degree - behind[owner] + nearest;
                }
                visit(edges);
            }
        }
        return visited;
    }
};

// Logarithmic radix binning (Green, Fox and others, HPEC 2018): the frontier is sorted by the logarithm of the degree, so
// that what is visited together has about as many edges.  Bin b has the vertices with at least 2^b edges and less than
// twice as many; the last has all with more.  Vertices of low bins share a warp, those of high ones are cut into pieces.
struct ByBins {
    static constexpr int BINS = WARP;  // so that each lane has one
    static constexpr int LAST_SHORT = 5;  // of up to this bin, two edges for each lane are a whole list
    static_assert(1 << LAST_SHORT == WARP && BATCH >= 2, "a visit takes two edges of each lane");

    static INLINE int bin_of(Index degree) { return static_cast<int>(smaller(63 - __clzll(degree), BINS - 1)); }

    // Return the pieces that each vertex of a bin is cut into; the last of a shorter list are empty.
    static INLINE Index pieces_in(int bin, Index piece, Index max_degree) {
        const Index longest = bin < BINS - 1 ? smaller((Index(2) << bin) - 1, max_degree) : max_degree;
        return (longest + piece - 1) / piece;
    }

    // Return what warps have to take of a bin, one by one: visits of vertices that share it, or pieces.
    static INLINE Index items_in(int bin, Index count, Index piece, Index max_degree) {
        if (bin > LAST_SHORT) return count * pieces_in(bin, piece, max_degree);
        const Index together = WARP >> bin;
        return (count + together - 1) / together;
    }

    // Write the vertices into the ledger, bin by bin; return how many this lane's bin has.  A block has the same vertices
    // when it counts and when it writes, and takes room for all of them at once.
    template <class Work>
    static INLINE Index sort(const Work& work, Index* control, Index& generation, const Ledger& ledger,
                             Index& visited) {
        __shared__ Word32 counts[BINS];
        __shared__ Index bases[BINS];
        if (threadIdx.x < BINS) counts[threadIdx.x] = 0;
        __syncthreads();
        for (Index position = work.begin + thread_in_grid(); position < work.end; position += threads_in_grid()) {
            const Index degree = work.take(position, true).degree;
            visited += degree;
            if (degree > 0) atomicAdd(counts + bin_of(degree), 1u);
        }
        __syncthreads();
        if (threadIdx.x < BINS && counts[threadIdx.x] > 0) fetch_add(ledger.sums + threadIdx.x, counts[threadIdx.x]);
        meet(control, generation);
        const Index count = ledger.sums[lane()], stop = scan_warp(count);
        if (threadIdx.x < BINS) {
            const Index before = fetch_add(ledger.sums + BINS + threadIdx.x, counts[threadIdx.x]);
            bases[threadIdx.x] = stop - count + before;
            counts[threadIdx.x] = 0;
        }
        __syncthreads();
        for (Index position = work.begin + thread_in_grid(); position < work.end; position += threads_in_grid()) {
            const List list = work.list_at(position);
            if (list.degree == 0) continue;
            const int bin = bin_of(list.degree);
            ledger.entries[bases[bin] + atomicAdd(counts + bin, 1u)] = list.src;
        }
        meet(control, generation);
        if (thread_in_grid() < 2 * BINS) ledger.sums[thread_in_grid()] = 0;  // all have read them
        return count;
    }

    // Visit vertices of a low bin, `entries[place:stop]`, as many as share a warp: each has 2^bin lanes.
    template <class Visit, class Work>
    static INLINE void visit_short(Visit& visit, const Work& work, const Index* entries, Index place, Index stop,
                                   int bin) {
        const int width = 1 << bin;
        const Index mine = place + (lane() >> bin);
        const List list = work.list_of(entries[smaller(mine, stop - 1)]);
        Edges<typename Work::Vertex> edges;
#pragma unroll
        for (int i = 0; i < BATCH; i++) {
            const Index number = i * width + (lane() & (width - 1));
            edges.is_there[i] = mine < stop && number < list.degree;
            edges.src[i] = static_cast<typename Work::Vertex>(list.src);
            edges.edge[i] = list.start + smaller(number, list.degree - 1);
        }
        visit(edges);
    }

    template <class Visit, class Work>
    static INLINE Index deal(Visit& visit, const Work& work, Index* control, Index& generation, const Ledger& ledger) {
        Index visited = 0;
        // These are of the lane's own bin; of all bins the items, as the vertices, are laid end to end.
        const Index count = sort(work, control, generation, ledger, visited), stop = scan_warp(count);
        Index piece = PIECE, items, items_end, total;
        while (true) {  // the fewer items there are, the smaller the pieces
            items = items_in(lane(), count, piece, ledger.max_degree);
            items_end = scan_warp(items);
            total = __shfl_sync(ALL_LANES, items_end, WARP - 1);
            if (total >= warps_in_grid() || piece <= SMALLEST_PIECE) break;
            piece /= 2;
        }
        for (Index item = warp_in_grid(); item < total; item += warps_in_grid()) {
            const int bin = __popc(__ballot_sync(ALL_LANES, items_end <= item));
            const Index number = item - __shfl_sync(ALL_LANES, items_end - items, bin);
            const Index bin_begin = __shfl_sync(ALL_LANES, stop - count, bin);
            const Index bin_end = __shfl_sync(ALL_LANES, stop, bin);
            if (bin <= LAST_SHORT) {
                visit_short(visit, work, ledger.entries, bin_begin + number * (WARP >> bin), bin_end, bin);
            } else {
                const Index pieces = pieces_in(bin, piece, ledger.max_degree);
                const List list = work.list_of(ledger.entries[bin_begin + number / pieces]);
                const Index edge = list.start + number % pieces * piece;
                visit_list(visit, static_cast<typename Work::Vertex>(list.src), edge,
                           smaller(edge + piece, list.start + list.degree));
            }
        }
        return visited;
    }
};

// Edges of the lanes' vertices are laid end to end, those of a lane up to `behind`, and dealt to all lanes; `shift` leads
// from a number among them to the graph's.  Return how many there are.  (In `push`, whose code is tuned, the same is
// written out.)
template <class Vertex, class Visit>
INLINE int visit_dealt(Visit& visit, Index src, Index shift, int behind) {
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
            edges.edge[i] = __shfl_sync(ALL_LANES, shift, owner) + item;
        }
        visit(edges);
    }
    return total;
}

// All edges of the frontier are laid end to end, and every warp has as many of them.  The ledger has where the edges of
// each vertex end, counted from the first of its block's part of the frontier; the sums are those of the parts.
struct ByMergePath {
    template <class Visit, class Work>
    static INLINE Index deal(Visit& visit, const Work& work, Index* control, Index& generation, const Ledger& ledger) {
        const Index count = work.end - work.begin, part = (count + gridDim.x - 1) / gridDim.x;
        const Index part_begin = blockIdx.x * part, part_end = smaller(part_begin + part, count);
        Index visited = 0, before = 0, total;
        for (Index first = part_begin; first < part_end; first += blockDim.x) {
            const Index place = first + threadIdx.x;
            const Index degree = work.take(work.begin + place, place < part_end).degree;
            visited += degree;
            const Index behind = scan_block(degree, total);
            if (place < part_end) ledger.entries[place] = before + behind;
            before += total;
        }
        if (threadIdx.x == 0) ledger.sums[blockIdx.x] = before;
        meet(control, generation);
        // There are fewer blocks than threads of a block: one for each multiprocessor.
        Index* const parts = block_room();
        parts[threadIdx.x] = scan_block(threadIdx.x < gridDim.x ? ledger.sums[threadIdx.x] : Index(0), total);
        __syncthreads();
        const auto end_at = [=](Index place) {
            const Index number = place / part;
            return ledger.entries[place] + (number > 0 ? parts[number - 1] : Index(0));
        };
        const Index share = larger((total + warps_in_grid() - 1) / warps_in_grid(), WARP);
        Index item = warp_in_grid() * share;
        const Index stop = smaller(item + share, total);
        if (item >= stop) return visited;
        for (Index first = count_up_to(count, item, end_at); item < stop; first += WARP) {
            const Index place = first + lane();
            Index src = 0, shift = 0, behind = stop;
            if (place < count) {
                const List list = work.list_at(work.begin + place);
                behind = end_at(place);
                src = list.src;
                shift = list.start + list.degree - behind;  // from a number among all these edges to the graph's
            }
            item += visit_dealt<typename Work::Vertex>(visit, src, shift + item, int(smaller(behind, stop) - item));
        }
        return visited;
    }
};

}  // namespace shoal
