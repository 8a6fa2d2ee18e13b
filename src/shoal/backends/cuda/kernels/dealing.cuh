// SPDX-License-Identifier: Apache-2.0
// Dealing: before a push, devices with more edges in their frontier than others give some of its vertices away.
//
// A thief visits a vertex's edges in the place of its owner and reads all of it where it lies: the owner's queue, rows
// and values, through tables of addresses.  So nothing is packed, and an owner just ends its push earlier.  Devices
// meet once.  Before that each has written where its frontier is, and the edges up to the end of every chunk of it;
// behind it each works out the same shares from that, and looks for the first and the last of the vertices that it
// visits.  Vertices move whole.  (GUM, ICDE 2023, section III; devices count as equal, so there is nothing to solve.)
//
// A device writes its own row only.  Others read it, and the frontier, between that meeting and the exchange behind
// the push, at which all of them meet again.
#pragma once

#include "balance.cuh"
#include "exchange.cuh"

namespace shoal {

// Parts of a frontier whose edges are summed up: so many that a warp finds any of them by looking twice.
constexpr Index CHUNKS = WARP * WARP;
// What the largest load must have above the mean: an eighth of the edges that all must have together to deal at all, as
// what dealing takes does not shrink with what it brings; and a sixteenth of the mean, as an edge that lies elsewhere
// takes longer.  These are estimates, as the first threshold is.
constexpr Index GAIN_PART = 8, SKEW_PART = 16;

// A row: the edges up to the end of each chunk, where in the queue the frontier is, whose vertices are being visited
// (from 1 on; 0 while it is the device's own), and how many edges had been before;
constexpr Index DEAL_BEGIN = CHUNKS, DEAL_END = CHUNKS + 1, DEAL_VICTIM = CHUNKS + 2, DEAL_BEFORE = CHUNKS + 3;
// then a line for each device: the edges of its frontier, which part of its queue this one visits, and how many edges
// it has taken of it so far.
constexpr Index DEAL_LINES = CHUNKS + 4, DEAL_LINE = 4, DEAL_LOAD = 0, DEAL_FIRST = 1, DEAL_LAST = 2, DEAL_TAKEN = 3;

INLINE Index* deal_line(Index* row, Index device) { return row + DEAL_LINES + device * DEAL_LINE; }

// A part of a frontier: `begin` to `end` of its owner's queue.
struct Part {
    Index owner, begin, end;
};

// What a device needs to read the frontiers of all.
template <class VertexId, class EdgeId>
struct Dealing {
    using Vertex = VertexId;
    using Edge = EdgeId;
    const Border<Vertex>& border;
    Index* row;  // the device's own
    Index* const* rows;
    const Vertex* const* queues;
    const Edge* const* indptrs;

    // What the device visits as one: first its own part, then those that it steals, from the next device on.
    INLINE Part part(const Index* control, bool is_dealt, Index turn) const {
        if (!is_dealt) return {border.device, control[BEGIN], control[END]};
        const Index owner = (border.device + turn) % border.devices;
        const Index* const line = deal_line(row, owner);
        return {owner, line[DEAL_FIRST], line[DEAL_LAST]};
    }
};

// Whether the frontier of all devices has many edges, if its vertices are as all others; all of them agree.
INLINE bool is_worth_dealing(const Index* control) {
    const double expected = double(control[SIZE]) * double(control[NUM_EDGES]);
    return expected >= double(control[DEALS_FROM]) * double(control[NUM_VERTICES]);
}

INLINE Index chunk_begin(Index begin, Index end, Index chunk) { return begin + chunk * (end - begin) / CHUNKS; }

template <class Op, class Edge>
INLINE Index edges_of(const Edge* indptr, Index src) {
    Index start, degree;
    __builtin_assume(src >= 0);
    bounds_of<Op>(indptr, src, start, degree);
    return degree;
}

// Write the edges of every chunk of the device's frontier; a warp takes one.
template <class Op, class Dealing>
INLINE void weigh_frontier(const Index* control, const Dealing& dealing) {
    const auto* const queue = dealing.queues[dealing.border.device];
    const auto* const indptr = dealing.indptrs[dealing.border.device];
    const Index begin = control[BEGIN], end = control[END];
    for (Index chunk = warp_in_grid(); chunk < CHUNKS; chunk += warps_in_grid()) {
        const Index first = chunk_begin(begin, end, chunk), stop = chunk_begin(begin, end, chunk + 1);
        Index edges = 0;
        for (Index position = first + lane(); position < stop; position += WARP) {
            edges += edges_of<Op>(indptr, queue[position]);
        }
        if (first < stop) edges = sum_warp(edges);
        if (lane() == 0) dealing.row[chunk] = edges;
    }
}

// The level to which all come: who has more than the mean gives that away, as far as others miss it.
struct Level {
    Index mean, missing;
};

INLINE Level find_level(const Index* control, Index* row, Index devices) {
    Index total = 0, largest = 0, missing = 0;
    for (Index device = 0; device < devices; device++) {
        const Index load = deal_line(row, device)[DEAL_LOAD];
        total += load;
        largest = larger(largest, load);
    }
    const Index mean = total / devices;
    for (Index device = 0; device < devices; device++) {
        missing += larger(mean - deal_line(row, device)[DEAL_LOAD], 0);
    }
    const bool is_even = largest - mean <= larger(control[DEALS_FROM] / GAIN_PART, mean / SKEW_PART);
    return {mean, is_even ? 0 : missing};
}

// Return which edges of an owner's frontier, laid end to end, a device visits.  What is given away lies end to end,
// too, in the order of the givers' numbers, and who misses some takes it in the order of theirs.
INLINE Part find_share(Index* row, Index devices, const Level& level, Index owner, Index device) {
    Index given = 0, wanted = 0;  // by those of lower numbers
    for (Index other = 0; other < larger(owner, device); other++) {
        const Index above = deal_line(row, other)[DEAL_LOAD] - level.mean;
        if (other < owner) given += larger(above, 0);
        if (other < device) wanted += larger(-above, 0);
    }
    const Index load = deal_line(row, owner)[DEAL_LOAD];
    const Index begin = smaller(given, level.missing);
    const Index end = smaller(given + larger(load - level.mean, 0), level.missing);
    const Index kept = load - (end - begin);
    if (owner == device) return {owner, 0, kept};
    const Index lacking = larger(level.mean - deal_line(row, device)[DEAL_LOAD], 0);
    const Index first = larger(begin, wanted), last = smaller(end, wanted + lacking);
    return {owner, kept + first - begin, kept + larger(first, last) - begin};
}

// Return where in an owner's queue so many edges of its frontier end; a vertex is of who has its first edge.  All lanes
// of a warp call it.
template <class Op, class Dealing>
INLINE Index find_cut(const Dealing& dealing, Index owner, Index edges) {
    const Index* const row = dealing.rows[owner];
    const auto* const queue = dealing.queues[owner];
    const auto* const indptr = dealing.indptrs[owner];
    const Index begin = look(row + DEAL_BEGIN), end = look(row + DEAL_END);
    if (edges >= look(row + CHUNKS - 1)) return end;
    if (edges <= 0) return begin;
    Index chunk = WARP * __popc(__ballot_sync(ALL_LANES, look(row + (lane() + 1) * WARP - 1) < edges));
    chunk += __popc(__ballot_sync(ALL_LANES, look(row + chunk + lane()) < edges));
    Index before = chunk > 0 ? look(row + chunk - 1) : 0;
    const Index stop = chunk_begin(begin, end, chunk + 1);
    for (Index first = chunk_begin(begin, end, chunk); first < stop; first += WARP) {
        const Index position = first + lane();
        const Index degree = position < stop ? edges_of<Op>(indptr, queue[position]) : Index(0);
        const Index behind = before + scan_warp(degree);
        const Word32 beyond = __ballot_sync(ALL_LANES, position >= stop || behind - degree >= edges);
        if (beyond != 0) return first + __ffs(beyond) - 1;
        before = __shfl_sync(ALL_LANES, behind, WARP - 1);
    }
    return stop;
}

// Serial, by all threads of a block: add the chunks up, meet the others, and find what this device visits of whom.
template <class Op, class Dealing>
INLINE void share_out(Index* control, const Dealing& dealing) {
    const Index device = dealing.border.device, devices = dealing.border.devices;
    Index* const row = dealing.row;
    Index before = 0, total;
    for (Index first = 0; first < CHUNKS; first += blockDim.x) {
        const Index chunk = first + threadIdx.x;
        const Index behind = scan_block(chunk < CHUNKS ? row[chunk] : Index(0), total);
        if (chunk < CHUNKS) row[chunk] = before + behind;
        before += total;
    }
    if (threadIdx.x == 0) {
        row[DEAL_BEGIN] = control[BEGIN];
        row[DEAL_END] = control[END];
    }
    __syncthreads();
    if (threadIdx.x == 0) meet_devices(control, dealing.border.world);
    __syncthreads();
    for (Index other = threadIdx.x; other < devices; other += blockDim.x) {
        deal_line(row, other)[DEAL_LOAD] = look(dealing.rows[other] + CHUNKS - 1);
    }
    __syncthreads();
    const Level level = find_level(control, row, devices);
    const bool is_lost = control[IS_LOST] != 0;  // nobody may look at what is there of others
    for (Index owner = threadIdx.x / WARP; owner < devices; owner += blockDim.x / WARP) {
        const Part share = is_lost ? Part{owner, 0, 0} : find_share(row, devices, level, owner, device);
        Index first = 0, last = 0;
        if (share.begin < share.end || owner == device) {
            first = owner == device ? control[BEGIN] : find_cut<Op>(dealing, owner, share.begin);
            last = find_cut<Op>(dealing, owner, share.end);
        }
        if (lane() == 0) {
            deal_line(row, owner)[DEAL_FIRST] = first;
            deal_line(row, owner)[DEAL_LAST] = last;
        }
    }
    __syncthreads();
    if (threadIdx.x == 0) control[DEALT_AT] = deal_line(row, device)[DEAL_LAST];
}

// Deal the frontiers of all devices.  Who gives a vertex away clears the marks that a push of it would have cleared.
template <class Op, class Dealing>
INLINE void deal_frontier(Index* control, Index& generation, const Dealing& dealing, Word32* marks_in) {
    weigh_frontier<Op>(control, dealing);
    meet(control, generation, [&](Index* control) { share_out<Op>(control, dealing); });
    if (!Op::CLEARS_MARKS) return;
    const auto* const queue = dealing.queues[dealing.border.device];
    const Index end = control[END];
    for (Index position = control[DEALT_AT] + thread_in_grid(); position < end; position += threads_in_grid()) {
        marks_in[Index(queue[position]) >> 5] = 0;
    }
}

// Copy what a rule will read at stolen vertices from their owners; before any rule runs here, as what that finds at a
// copy is sent later.  An owner may be pushing already: a value is then one of those that its own push may read.
template <class Values, class Dealing>
INLINE void take_stolen(const Values& values, const Index* control, const Dealing& dealing) {
    for (Index turn = 1; turn < dealing.border.devices; turn++) {
        const Part part = dealing.part(control, true, turn);
        const auto* const queue = dealing.queues[part.owner];
        for (Index position = part.begin + thread_in_grid(); position < part.end; position += threads_in_grid()) {
            const Index vertex = queue[position];
            __builtin_assume(vertex >= 0);
            values.take(part.owner, vertex, vertex);
        }
    }
}

// Serial: count the edges and the time of what was stolen last, if anything was.
INLINE void end_stolen(Index* control, Index* row) {
    if (row[DEAL_VICTIM] == 0) return;
    const Index taken = control[EDGES] - row[DEAL_BEFORE];
    deal_line(row, row[DEAL_VICTIM] - 1)[DEAL_TAKEN] += taken;
    row[DEAL_VICTIM] = 0;
    control[STOLEN] += taken;
    control[STEALING] += nanoseconds() - control[SINCE];
}

// Serial: go on to another part of what is stolen.
INLINE void begin_stolen(Index* control, Index* row, Index victim) {
    end_stolen(control, row);
    row[DEAL_VICTIM] = victim + 1;
    row[DEAL_BEFORE] = control[EDGES];
    control[SINCE] = nanoseconds();
    control[NUM_PIECES] = 0;
}

}  // namespace shoal
