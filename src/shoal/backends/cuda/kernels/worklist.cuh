// SPDX-License-Identifier: Apache-2.0
// Work without supersteps: every device, a row of blocks, receives, visits, sends and waits, whenever it has something to.
//
// A device goes round: it visits its near vertices, combines what has arrived and lists what others should hear of; its
// blocks meet; what is listed goes into batches for the receivers that have room; the blocks meet again, and one thread
// looks at what is next.  Devices meet nowhere.  From each to each leads a channel of NUM_BUFFERS batches: the sender
// counts those written, the receiver those read, each on a line of its own.  What finds no free batch stays listed, so
// that what changes often in between is sent once.  A batch has room for all that can be listed: nothing overflows.
//
// Near are vertices whose number is not above the threshold, which all devices share; the others wait in the pile.  It
// rises when nothing below it is left: see backends/cpu/kernels/quiet.py, whose device is a thread, for how devices
// find out.
#pragma once

#include "exchange.cuh"

namespace shoal {

constexpr int NUM_BUFFERS = 2;
// Places in a channel, of which the sender writes the first line, and the receiver the second.
constexpr int BATCHES_WRITTEN = 0, BATCH_ITEMS = 1, BATCHES_READ = LINE, CHANNEL_LENGTH = 2 * LINE;
// A rise of the threshold takes in as many priorities as the window is wide.  It is doubled while rounds have fewer
// vertices than the device has warps: more take no longer then, and there are fewer rounds.  It is halved when they have
// TOO_MANY times as many, for what is visited too early is visited again.  (SSSP of a grid of 4096 x 4096 on an H200 takes
// 115 ms with one priority, 68 so, 88 with four vertices for a warp, 142 with sixteen.)
constexpr Index TOO_MANY = 4, WIDEST = Index(1) << 32;
// What a round does beside visiting and receiving: find the lowest number of the pile, or take out what is near by now.
enum Task { NO_TASK, FIND_LOWEST, TAKE_NEAR };

// A device's ends of its channels.
struct Channels {
    Index* all;         // by sender and receiver
    const Index* rooms;  // of a batch, in items, by sender and receiver
    const Index* hops;   // to whom goes what is for a device
    Index* arrived;      // items of the batch that this round reads, by sender
    Index* is_free;      // whether a batch can be written, by receiver

    INLINE Index* from(Index sender, Index receiver, Index devices) const {
        return all + (sender * devices + receiver) * CHANNEL_LENGTH;
    }
};

// Where the items of a batch begin in the mail of their sender.
template <class Vertex>
INLINE Index batch_at(const Border<Vertex>& border, const Channels& channels, Index sender, Index receiver,
                      Index number) {
    const Index pair = sender * border.devices + receiver;
    return border.mail_at[pair] + number % NUM_BUFFERS * channels.rooms[pair];
}

// Visits

// What becomes of an edge: its destination, if it is the device's own and the rules say so, is near or waits.
template <class Op, class Vertex>
struct Spread {
    const Vertex* indices;
    Enter<Op, Vertex> enter;

    template <int COUNT>
    INLINE void operator()(const Edges<Vertex, COUNT>& edges) {
        Vertex dst[COUNT];
#pragma unroll
        for (int i = 0; i < COUNT; i++) dst[i] = indices[edges.edge[i]];
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            const Index src = edges.src[i], to = dst[i];
            __builtin_assume(src >= 0 && to >= 0);
            const bool is_wanted = edges.is_there[i] && (!Op::HAS_WHERE || enter.op.where(to)) &&
                                   enter.op.visit(src, to, edges.edge[i]) && enter.op.passes(to);
            __syncwarp();
            enter(is_wanted, to);
        }
    }
    INLINE void flush() { enter.flush(); }
};

// Take up what has gathered at the near vertices, before anybody passes more on to them.
template <class Op, class Vertex>
INLINE void take_up(const Op& op, const Vertex* queue, Index begin, Index end) {
    for (Index position = begin + thread_in_grid(); position < end; position += threads_in_grid()) {
        const Index vertex = queue[position];
        __builtin_assume(vertex >= 0);
        op.take_up(vertex);
    }
}

template <class Op, class Vertex>
INLINE void find_lowest(const Op& op, Index* control, const Pile<Vertex>& pile) {
    const int side = static_cast<int>(control[PILE_SIDE]);
    const Index count = control[PILE + side * LINE], current = control[CURRENT];
    Index lowest = NEVER;
    for (Index place = thread_in_grid(); place < count; place += threads_in_grid()) {
        const Index number = op.priority(Index(pile.lists[side][place]));
        if (number > current) lowest = smaller(lowest, number);
    }
    for (int step = WARP / 2; step > 0; step /= 2) lowest = smaller(lowest, __shfl_xor_sync(ALL_LANES, lowest, step));
    if (lane() == 0 && lowest != NEVER) atomicMin(control + LOWEST, lowest);
}

// Go through the pile: what is not above the threshold any more becomes near, the rest goes to the other pile.  Others
// may lower numbers meanwhile, and enter the same vertex: its mark says who was first.  A vertex not above the threshold
// before became near when it came there.
template <class Op, class Vertex>
INLINE void take_near(const Pile<Vertex>& pile, int side, Index count, Index before, Enter<Op, Vertex>& enter) {
    for (Index first = warp_in_grid() * WARP; first < count; first += warps_in_grid() * WARP) {
        bool is_near = false, is_far = false;
        Index vertex = 0;
        if (first + lane() < count) {
            vertex = pile.lists[side][first + lane()];
            __builtin_assume(vertex >= 0);
            const Index number = enter.op.priority(vertex);
            is_far = number > enter.current;
            is_near = number > before && !is_far;
            if (!is_far) take_bit(pile.waiting, vertex);
            is_near = is_near && add_bit(enter.marks, vertex);
        }
        enter.near.add(is_near, static_cast<Vertex>(vertex));
        enter.far.add(is_far, static_cast<Vertex>(vertex));
    }
}

// Mail

// Combine what has arrived with this device's values; enter what that changes, and list what others own.
template <class Values, class Op, class Vertex>
INLINE void receive(const Values& values, const Border<Vertex>& border, const Channels& channels,
                    Enter<Op, Vertex>& enter) {
    for (Index sender = 0; sender < border.devices; sender++) {
        const Index count = channels.arrived[sender];
        if (count == 0) continue;
        const Index read = channels.from(sender, border.device, border.devices)[BATCHES_READ];
        const Index at = batch_at(border, channels, sender, border.device, read);
        for (Index first = warp_in_grid() * WARP; first < count; first += warps_in_grid() * WARP) {
            const Index item = first + lane();
            bool is_wanted = false;
            Index vertex = 0;
            if (item < count) {
                const Index code = border.mail_ids[sender][at + item];
                const bool joins = code >= 0;
                vertex = joins ? code : ~code;
                __builtin_assume(vertex >= 0);
                const bool has_changed = values.merge(sender, at + item, vertex) || (Values::IS_CERTAIN && joins);
                if (border.owner[vertex] != border.device) {
                    tell(border, vertex, joins && has_changed, has_changed);
                } else {
                    is_wanted = joins && has_changed && enter.op.passes(vertex);
                }
            }
            __syncwarp();
            enter(is_wanted, vertex);
        }
    }
}

// Write the listed vertices and their values into the batches; those for whom there is none are listed again.
template <class Values, class Vertex>
INLINE void send(const Values& values, const Border<Vertex>& border, const Channels& channels, const Vertex* listed,
                 Index count) {
    Vertex* const ids = border.mail_ids[border.device];
    for (Index position = thread_in_grid(); position < count; position += threads_in_grid()) {
        const Index vertex = listed[position];
        __builtin_assume(vertex >= 0);
        const Index receiver = channels.hops[border.owner[vertex]];
        if (channels.is_free[receiver] == 0) {
            note(border, vertex);
            continue;
        }
        const Index* const channel = channels.from(border.device, receiver, border.devices);
        const Index pair = border.device * border.devices + receiver;
        // `take_place` counts from where the first batch begins.
        const Index slot = take_place(border, receiver) + channel[BATCHES_WRITTEN] % NUM_BUFFERS * channels.rooms[pair];
        const Index name = border.address == nullptr ? vertex : Index(border.address[vertex]);
        const bool joins = has_bit(border.voices, vertex);
        ids[slot] = static_cast<Vertex>(joins ? name : ~name);
        values.pack(slot, vertex);
        take_bit(border.dirty, vertex);
        if (joins) take_bit(border.voices, vertex);
        values.reset(vertex);
    }
}

// Serial parts.  `control` is the block's copy in shared memory, `border.control` the one that others write.

template <class Vertex>
INLINE bool find_arrived(const Border<Vertex>& border, const Channels& channels) {
    bool has_any = false;
    for (Index sender = 0; sender < border.devices; sender++) {
        const Index* const channel = channels.from(sender, border.device, border.devices);
        const Index read = channel[BATCHES_READ];
        const bool is_there = load_acquire_system(channel + BATCHES_WRITTEN) != read;
        channels.arrived[sender] = is_there ? look(channel + BATCH_ITEMS + read % NUM_BUFFERS) : 0;
        has_any = has_any || is_there;
    }
    return has_any;
}

// Let senders have the batches back that were read.
template <class Vertex>
INLINE void acknowledge(Index* control, const Border<Vertex>& border, const Channels& channels) {
    for (Index sender = 0; sender < border.devices; sender++) {
        const Index count = channels.arrived[sender];
        if (count == 0) continue;
        channels.arrived[sender] = 0;
        Index* const read = channels.from(sender, border.device, border.devices) + BATCHES_READ;
        store_release_system(read, *read + 1);
        control[ITEMS_RECEIVED] += count;
        control[COMBINED] += count;
    }
}

// Get ready to send what is listed: turn to the other list, and look who has room.
template <class Vertex>
INLINE void begin_sending(Index* control, const Border<Vertex>& border, const Channels& channels) {
    control[NUM_LISTED] = control[BORDER];
    if (control[BORDER] == 0) return;
    control[BORDER] = 0;
    control[LIST_SIDE] ^= 1;
    for (Index receiver = 0; receiver < border.devices; receiver++) {
        const Index* const channel = channels.from(border.device, receiver, border.devices);
        const Index read = load_acquire_system(channel + BATCHES_READ);
        channels.is_free[receiver] = channel[BATCHES_WRITTEN] - read < NUM_BUFFERS;
        border.mail_counts[receiver] = 0;
    }
}

// Let receivers have the batches that were written.
template <class Vertex>
INLINE void end_sending(Index* control, const Border<Vertex>& border, const Channels& channels, Index item_bytes) {
    __threadfence_system();
    for (Index receiver = 0; receiver < border.devices; receiver++) {
        const Index count = border.mail_counts[receiver];
        if (count == 0) continue;
        Index* const channel = channels.from(border.device, receiver, border.devices);
        const Index number = channel[BATCHES_WRITTEN];
        post(channel + BATCH_ITEMS + number % NUM_BUFFERS, count);
        store_release_system(channel + BATCHES_WRITTEN, number + 1);
        count_sent(control, 1, count, count * item_bytes);
    }
}

// Return the threshold to come if nothing below this one is left anywhere; else this one.  Whoever reads all lines twice
// with the same odd states has seen a moment in which nobody worked and nothing was under way.
INLINE Index next_threshold(Index* world, Index threshold) {
    Index states = 0, under_way = 0, lowest = NEVER, window = WIDEST;
    for (Index device = 0; device < world[WORLD_DEVICES]; device++) {
        Index* const line = line_of(world, device);
        const Index state = load_acquire_system(line + POSTED_STATE);
        if (state % 2 == 0) return threshold;
        states += state;
        lowest = smaller(lowest, look(line + POSTED_LOWEST));
        window = smaller(window, look(line + POSTED_WINDOW));
        under_way += look(line + POSTED_ITEMS_SENT) - look(line + POSTED_ITEMS_RECEIVED);
    }
    if (under_way != 0 || lowest <= threshold) return threshold;
    __threadfence_system();
    for (Index device = 0; device < world[WORLD_DEVICES]; device++) {
        states -= load_acquire_system(line_of(world, device) + POSTED_STATE);
    }
    if (states != 0) return threshold;
    return lowest == NEVER ? NEVER : smaller(lowest + window - 1, NEVER - 1);
}

// Return how many priorities the next rise of the threshold should take in, by how busy rounds were since the last.
INLINE Index choose_window(const Index* control) {
    const Index visits = control[WORK_ITEMS] - control[VISITED_BEFORE], window = control[WINDOW];
    const Index full = control[ROUNDS] * warps_in_grid();
    if (visits <= full) return smaller(2 * window, WIDEST);
    return visits > TOO_MANY * full && window > 1 ? window / 2 : window;
}

// Say that this device is busy again.
template <class Vertex>
INLINE void end_waiting(Index* control, const Border<Vertex>& border) {
    Index* const state = line_of(border.world, border.device) + POSTED_STATE;
    store_release_system(state, look(state) + 1);
    control[IS_WAITING] = 0;
}

// Wait until something has arrived, the threshold has risen, or the run is to end; return the threshold.
template <class Vertex>
INLINE Index await_work(Index* control, const Border<Vertex>& border, const Channels& channels, Index threshold) {
    Index* const world = border.world;
    Index* const line = line_of(world, border.device);
    const Index began = nanoseconds();
    if (control[IS_WAITING] == 0) {
        post(line + POSTED_LOWEST, control[LOWEST]);
        post(line + POSTED_WINDOW, choose_window(control));
        post(line + POSTED_ITEMS_SENT, control[ITEMS_SENT]);
        post(line + POSTED_ITEMS_RECEIVED, control[ITEMS_RECEIVED]);
        __threadfence_system();
        store_release_system(line + POSTED_STATE, look(line + POSTED_STATE) + 1);
        control[IS_WAITING] = 1;
    }
    Index found = load_acquire_system(world + WORLD_THRESHOLD);
    while (found == threshold && !find_arrived(border, channels) && look(border.control + STOP) == 0) {
        const Index coming = next_threshold(world, threshold);
        if (coming != threshold) {
            atomicCAS_system(reinterpret_cast<Word64*>(world + WORLD_THRESHOLD), static_cast<Word64>(threshold),
                             static_cast<Word64>(coming));
        } else if (look(world + WORLD_ABANDONED) != 0) {
            control[IS_LOST] = 1;
            break;
        } else if (control[BUDGET] == 0) {  // not fused: whoever has nothing to do comes back
            control[IDLE] += nanoseconds() - began;
            return threshold;
        }
        found = load_acquire_system(world + WORLD_THRESHOLD);
    }
    end_waiting(control, border);
    control[IDLE] += nanoseconds() - began;
    return found;
}

// Now and then, if asked to, let other devices get ahead.
INLINE void dawdle(Index* control) {
    Word64 number = static_cast<Word64>(control[JITTER]);
    if (number == 0) return;
    number ^= number << 13;  // Marsaglia's xorshift
    number ^= number >> 7;
    number ^= number << 17;
    control[JITTER] = static_cast<Index>(number);
    const Index until = nanoseconds() + ((number & 7) == 0 ? Index(number >> 8 & 0x3fff) : 0);
    while (nanoseconds() < until) {}
}

// Look at what is next: to visit, to combine, to send, to find out about the pile, or to wait for.
template <class Vertex>
INLINE void decide(Index* control, const Border<Vertex>& border, const Channels& channels) {
    dawdle(control);
    control[TASK] = NO_TASK;
    control[FINISHED] = nanoseconds();
    if (control[BUDGET] == 0) control[REASON] = COMES_BACK;
    if (control[IS_WAITING] != 0) end_waiting(control, border);  // it came back, and is here again
    const bool has_mail = find_arrived(border, channels);
    if (look(border.control + STOP) != 0) {
        control[REASON] = look(border.control + STOP);
    } else if (has_mail || control[END] > control[BEGIN] || control[BORDER] > 0) {
        control[KNOWS_LOWEST] = 0;
    } else if (control[KNOWS_LOWEST] == 0) {
        control[LOWEST] = NEVER;
        control[TASK] = FIND_LOWEST;
        control[KNOWS_LOWEST] = 1;
    } else {
        const Index before = control[CURRENT];
        const Index found = await_work(control, border, channels, before);
        if (found == before && control[IS_WAITING] == 0) control[KNOWS_LOWEST] = 0;  // something has arrived
        if (found == NEVER) control[REASON] = IS_DONE;
        if (found == before || found == NEVER) return;
        control[WINDOW] = smaller(choose_window(control), found - before);  // others may have wished for less
        control[ROUNDS] = 0;
        control[VISITED_BEFORE] = control[WORK_ITEMS];
        control[BEFORE] = before;
        control[CURRENT] = found;
        if (control[LOWEST] > found) return;
        control[TASK] = TAKE_NEAR;
        control[KNOWS_LOWEST] = 0;
    }
}

// The end of visiting and receiving.
template <class Vertex>
INLINE void end_visits(Index* control, const Border<Vertex>& border, const Channels& channels) {
    control[WORK_ITEMS] += control[END] - control[BEGIN];
    control[ROUNDS] += control[END] > control[BEGIN];
    if (control[TASK] == TAKE_NEAR) {
        control[PILE + control[PILE_SIDE] * LINE] = 0;
        control[PILE_SIDE] ^= 1;
    }
    control[BEGIN] = control[OUT_BASE];
    control[END] = control[OUT_BASE] + control[OUTPUT];
    control[OUT_BASE] = control[OUT_BASE] == 0 ? control[NUM_LOCAL] : 0;
    control[OUTPUT] = control[NUM_PIECES] = 0;
    control[SWAPPED] ^= 1;
    acknowledge(control, border, channels);
    begin_sending(control, border, channels);
    if (control[NUM_LISTED] == 0) decide(control, border, channels);
}

}  // namespace shoal
