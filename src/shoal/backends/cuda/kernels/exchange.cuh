// SPDX-License-Identifier: Apache-2.0
// Exchanges between devices: list, pack, meet, merge, clean, as on a CPU (see backends/cpu/kernels/exchange.py).
//
// A device is a row of blocks of one kernel, or a kernel on a GPU of its own.  It lists the vertices that it has news of,
// packs them and their values into its mail, which the others can read, and when all have met merges what the schedule's
// round has for it.  What one device writes, no other does: its mail, its line of `world`, its own arrays.  No host takes
// part.
#pragma once

#include "ordered.cuh"

namespace shoal {

using Device = unsigned short;  // a device's number, in tables

// What a device has beside its shard, to exchange values with others.
template <class Vertex>
struct Border {
    Index* control;
    Index* world;  // all devices'
    Index device, devices;
    const Device* owner;    // of every local vertex
    const Vertex* address;  // its id at its owner; null where ids are the same
    Vertex* listed;         // vertices that others want to hear of, each once:
    Word32* dirty;          // those,
    Word32* voices;         // and those of them that join
    const Index *receive_at, *receive_from, *num_receivers;  // the schedule
    const Index* mail_at;       // where the mail of a sender for a receiver begins
    Vertex* const* mail_ids;    // by sender
    Word32* const* mail_bits;   // by sender
    Index* mail_counts;         // items for each receiver, while they are packed
    const Index* copy_at;       // who has copies of a vertex,
    const Device* copy_peers;
    const Vertex* copy_ids;     // and by what id
};

INLINE Index load_acquire_system(const Index* address) {
    Index value;
    asm volatile("ld.acquire.sys.b64 %0, [%1];" : "=l"(value) : "l"(address) : "memory");
    return value;
}

INLINE void store_release_system(Index* address, Index value) {
    asm volatile("st.release.sys.b64 [%0], %1;" ::"l"(address), "l"(value) : "memory");
}

// A number of a world that others write.
INLINE Index look(const Index* address) { return *const_cast<const volatile Index*>(address); }
INLINE void post(Index* address, Index value) { *const_cast<volatile Index*>(address) = value; }

INLINE Index* line_of(Index* world, Index device) { return world + WORLD_ROWS + device * LINE; }

// The number of items that one device has for another; for all: for itself.
INLINE Index* num_items(Index* world, Index sender, Index receiver) {
    const Index devices = world[WORLD_DEVICES];
    return world + WORLD_ROWS + devices * LINE + sender * devices + receiver;
}

// The bytes that a device has sent: to a receiver, or in a round to each of its receivers.
INLINE Index* bytes_sent(Index* world, Index sender, Index place) {
    const Index devices = world[WORLD_DEVICES];
    return world + WORLD_ROWS + devices * LINE + devices * devices + sender * devices + place;
}

// Wait for all devices; called by one thread of each, while its others wait for it.  Every device counts how often it
// has come, and looks at the others' counts.  If the run is given up, nobody waits any more.
INLINE void meet_devices(Index* control, Index* world) {
    control[IS_READING] = control[IS_POSTED] = control[IS_REDUCED] = 0;
    const Index began = nanoseconds();
    Index* const mine = line_of(world, control[DEVICE]) + POSTED_MET;
    const Index count = look(mine) + 1;
    __threadfence_system();
    store_release_system(mine, count);
    for (Index other = 0; other < world[WORLD_DEVICES]; other++) {
        while (load_acquire_system(line_of(world, other) + POSTED_MET) < count) {
            if (look(world + WORLD_ABANDONED) != 0) break;
        }
    }
    if (look(world + WORLD_ABANDONED) != 0) control[IS_LOST] = 1;
    control[IDLE] += nanoseconds() - began;
}

// Serial: let nobody write mail that others may still be reading; devices that have met since have read it.
template <class Vertex>
INLINE void begin_round(Index* control, const Border<Vertex>& border) {
    if (control[IS_READING] != 0) meet_devices(control, border.world);
    for (Index peer = 0; peer < border.devices; peer++) border.mail_counts[peer] = 0;
    control[SINCE] = nanoseconds();
}

// Serial: go on to the next round, or past the exchange without waiting for others.
template <class Vertex>
INLINE void end_round(Index* control, const Border<Vertex>& border, Index round) {
    control[IS_READING] = 1;
    control[COMBINING] += nanoseconds() - control[SINCE];
    if (round + 1 < border.world[WORLD_ROUNDS]) {
        begin_round(control, border);
    } else if (border.world[WORLD_FORWARDS] != FORWARDS_ALL) {
        control[BORDER] = 0;
    }
}

template <class Vertex>
INLINE bool is_packed(const Border<Vertex>& border, Index round) {
    return round == 0 || border.world[WORLD_FORWARDS] == FORWARDS_ALL;
}

// Whose mail a device reads that receives from `peer`: in a ring what started so many places back.
template <class Vertex>
INLINE Index sender_of(const Border<Vertex>& border, Index peer, Index round) {
    if (border.world[WORLD_FORWARDS] != FORWARDS_LAST) return peer;
    return (peer - round + border.devices) % border.devices;
}

// Serial: count what a round sends, in messages to `receivers` others.
INLINE void count_sent(Index* control, Index receivers, Index items, Index num_bytes) {
    control[MESSAGES] += receivers;
    control[ITEMS_SENT] += items;
    control[BYTES_SENT] += num_bytes;
}

// Serial: tell the others how many items there are for them, count them, and wait for the others to do so.
template <class Vertex>
INLINE void post_items(Index* control, const Border<Vertex>& border, Index round, Index num_own, Index item_bytes) {
    control[PACKING] += nanoseconds() - control[SINCE];
    Index* const world = border.world;
    const bool is_routed = world[WORLD_ROUTED] != 0;
    if (is_routed) {
        for (Index peer = 0; peer < border.devices; peer++) {
            post(num_items(world, border.device, peer), border.mail_counts[peer]);
        }
    } else if (is_packed(border, round)) {
        post(num_items(world, border.device, border.device), control[BORDER] + num_own);
        post(line_of(world, border.device) + POSTED_LISTED, control[BORDER]);
    }
    meet_devices(control, world);
    const Index receivers = border.num_receivers[round * border.devices + border.device];
    Index items = 0;
    if (is_routed) {
        for (Index peer = 0; peer < border.devices; peer++) {
            const Index told = look(num_items(world, border.device, peer));
            items += told;
            *bytes_sent(world, border.device, peer) += told * item_bytes;
        }
    } else {
        const Index origin = sender_of(border, border.device, round);
        const Index told = look(num_items(world, origin, origin));
        items = receivers * told;
        *bytes_sent(world, border.device, round) += told * item_bytes;
    }
    count_sent(control, receivers, items, items * item_bytes);
    control[SINCE] = nanoseconds();
}

// Serial: the same of bitmaps, and of the vertices in them.
template <class Vertex>
INLINE void post_bits(Index* control, const Border<Vertex>& border, Index round, Index num_bytes) {
    control[PACKING] += nanoseconds() - control[SINCE];
    if (is_packed(border, round)) {
        post(num_items(border.world, border.device, border.device), control[BORDER]);
        control[BORDER] = 0;
    }
    meet_devices(control, border.world);
    const Index receivers = border.num_receivers[round * border.devices + border.device];
    const Index origin = sender_of(border, border.device, round);
    count_sent(control, receivers, receivers * look(num_items(border.world, origin, origin)), receivers * num_bytes);
    *bytes_sent(border.world, border.device, round) += num_bytes;
    control[SINCE] = nanoseconds();
}

// Serial: the least of what devices have each; once in a superstep for every place where they post it.
INLINE Index agree_on_least(Index* control, Index* world, int place, Index mine) {
    post(line_of(world, control[DEVICE]) + place, mine);
    meet_devices(control, world);
    Index least = mine;
    for (Index device = 0; device < world[WORLD_DEVICES]; device++) {
        least = smaller(least, look(line_of(world, device) + place));
    }
    return least;
}

// Advance by priority: the lowest number of all devices' piles.
struct LowestOfAll {
    Index* world;
    INLINE Index operator()(Index* control, Index lowest) const {
        return agree_on_least(control, world, POSTED_LOWEST, lowest);
    }
};

// The edges of all devices' frontiers.
struct SumOfAll {
    Index* world;
    INLINE Index operator()(Index* control, Index mine) const {
        post(line_of(world, control[DEVICE]) + POSTED_LEFT, mine);
        meet_devices(control, world);
        Index sum = 0;
        for (Index device = 0; device < world[WORLD_DEVICES]; device++) {
            sum += look(line_of(world, device) + POSTED_LEFT);
        }
        return sum;
    }
};

// Serial: as on one device; but the piles' turn has come when no device has a near vertex left.
INLINE void adopt_near(Index* control, Index half, Index* world) {
    enum { HAS_NEAR, HAS_FAR, HAS_NONE };
    const Index waiting = control[PILE + control[PILE_SIDE] * LINE];
    const Index mine = control[OUTPUT] > 0 ? HAS_NEAR : waiting > 0 ? HAS_FAR : HAS_NONE;
    const Index least = agree_on_least(control, world, POSTED_LEFT, mine);
    control[BEGIN] = control[OUT_BASE];
    control[END] = control[OUT_BASE] + control[OUTPUT];
    control[OUT_BASE] = control[OUT_BASE] == 0 ? half : 0;
    control[PILE_DUE] = least != HAS_NEAR;
    if (least == HAS_NONE) control[CURRENT] = NEVER;
}

// Serial: what all devices have summed up, the same on each; `posted` has room for every device's.
template <class Totals>
INLINE Totals settle_devices(Index* control, Index* world, char* posted, const Totals& mine) {
    if (control[IS_REDUCED] != 0) meet_devices(control, world);
    Totals* const all = reinterpret_cast<Totals*>(posted);
    all[control[DEVICE]] = mine;
    meet_devices(control, world);
    Totals total = Totals::identity();
    for (Index device = 0; device < world[WORLD_DEVICES]; device++) {
        const Totals other = all[device];
        total.merge(other);
    }
    control[IS_REDUCED] = 1;
    return total;
}

// What a device receives in a round from one other.
struct Mail {
    Index sender, first, count;
};

template <class Vertex>
INLINE Mail find_mail(const Border<Vertex>& border, Index round, Index peer) {
    const Index sender = sender_of(border, peer, round);
    const Index receiver = border.world[WORLD_ROUTED] != 0 ? border.device : sender;
    return {sender, border.mail_at[sender * border.devices + receiver], look(num_items(border.world, sender, receiver))};
}

// Lists

// List a vertex for other devices; the lanes that are here together take room at once.
template <class Vertex>
INLINE void note(const Border<Vertex>& border, Index vertex) {
    const Word32 active = __activemask();
    const int leader = __ffs(active) - 1;
    Index at = 0;
    if (lane() == leader) at = fetch_add(border.control + BORDER, __popc(active));
    at = __shfl_sync(active, at, leader);
    border.listed[at + __popc(active & ((1u << lane()) - 1u))] = static_cast<Vertex>(vertex);
}

// Let others hear of a vertex that a rule was at: it joins, or changed; once.
template <class Vertex>
INLINE void tell(const Border<Vertex>& border, Index vertex, bool joins, bool has_changed) {
    const Word32 bit = 1u << (vertex & 31);
    if (joins) atomicOr(border.voices + (vertex >> 5), bit);
    if ((joins || has_changed) && !(atomicOr(border.dirty + (vertex >> 5), bit) & bit)) note(border, vertex);
}

INLINE void take_bit(Word32* bitmap, Index vertex) { atomicAnd(bitmap + (vertex >> 5), ~(1u << (vertex & 31))); }

template <class Vertex>
INLINE void list_vertices(const Border<Vertex>& border, const Vertex* queue, Index begin, Index end) {
    for (Index position = begin + thread_in_grid(); position < end; position += threads_in_grid()) {
        border.listed[position - begin] = queue[position];
    }
}

// List the vertices whose values are other than before the operator.
template <class Values, class Vertex>
INLINE void list_changes(const Values& values, const Border<Vertex>& border) {
    for (Index vertex = thread_in_grid(); vertex < border.control[NUM_LOCAL]; vertex += threads_in_grid()) {
        if (values.differs(vertex)) note(border, vertex);
    }
}

template <class Values, class Vertex>
INLINE void remember_values(const Values& values, const Border<Vertex>& border) {
    for (Index vertex = thread_in_grid(); vertex < border.control[NUM_LOCAL]; vertex += threads_in_grid()) {
        values.remember(vertex);
    }
}

template <class Values, class Vertex>
INLINE void empty_copies(const Values& values, const Border<Vertex>& border) {
    for (Index vertex = thread_in_grid(); vertex < border.control[NUM_LOCAL]; vertex += threads_in_grid()) {
        if (border.owner[vertex] != border.device) values.reset(vertex);
    }
}

// Mail

// Take the next place in the mail for a receiver; lanes that have one for the same take theirs at once.
template <class Vertex>
INLINE Index take_place(const Border<Vertex>& border, Index peer) {
    const Word32 same = __match_any_sync(__activemask(), static_cast<int>(peer));
    const int leader = __ffs(same) - 1;
    Index at = 0;
    if (lane() == leader) at = fetch_add(border.mail_counts + peer, __popc(same));
    at = __shfl_sync(same, at, leader) + __popc(same & ((1u << lane()) - 1u));
    return border.mail_at[border.device * border.devices + peer] + at;
}

// Take a vertex off the list; empty a copy whose values must not be sent twice.
template <class Values, class Vertex>
INLINE void forget(const Values& values, const Border<Vertex>& border, Word32* marks, Index vertex) {
    take_bit(border.dirty, vertex);
    const bool joins = has_bit(border.voices, vertex);
    if (joins) take_bit(border.voices, vertex);
    if (border.owner[vertex] == border.device) return;
    values.reset(vertex);
    if (Values::REACHES_ALL && Values::CAN_PULL && joins && border.control[SHARES_OWN] != 0) {
        add_bit(marks, vertex);  // found here: in the next frontier, as all devices know
    }
}

// Write the listed vertices and their values into the mail: for their owners, or for all.  What all are told includes
// this device's own vertices that joined, `queue[base : base + num_own]`.
template <class Values, class Vertex>
INLINE void pack_collected(const Values& values, const Border<Vertex>& border, Word32* marks, const Vertex* queue,
                           Index base, Index num_own) {
    const Index count = border.control[BORDER];
    const bool is_routed = border.world[WORLD_ROUTED] != 0;
    const bool forwards = border.world[WORLD_FORWARDS] == FORWARDS_ALL;
    Vertex* const ids = border.mail_ids[border.device];
    const Index place = border.mail_at[border.device * border.devices + border.device];
    for (Index position = thread_in_grid(); position < count; position += threads_in_grid()) {
        const Index vertex = border.listed[position];
        __builtin_assume(vertex >= 0);
        Index name = vertex, slot = place + position;
        if (is_routed) {
            slot = take_place(border, border.owner[vertex]);
            if (border.address != nullptr) name = border.address[vertex];
        }
        const bool joins = !Values::IS_REPLICATED && has_bit(border.voices, vertex);
        ids[slot] = static_cast<Vertex>(joins ? name : ~name);
        values.pack(slot, vertex);
        if (!Values::IS_REPLICATED && !forwards) forget(values, border, marks, vertex);
    }
    for (Index position = thread_in_grid(); position < num_own; position += threads_in_grid()) {
        const Index vertex = queue[base + position], slot = place + count + position;
        __builtin_assume(vertex >= 0);
        ids[slot] = static_cast<Vertex>(vertex);
        if (forwards) {
            values.pack(slot, vertex);
        } else {
            values.pack_copy(slot, vertex);
        }
    }
}

// How a vertex joins that others have told of: it is appended to an output, once.
template <class Vertex>
struct Join {
    Outbox<Vertex> outbox;
    Word32* marks;

    INLINE void operator()(bool is_wanted, Index vertex) {
        outbox.add(is_wanted && add_bit(marks, vertex), static_cast<Vertex>(vertex));
    }
    INLINE void flush() { outbox.flush(); }
};

// The same by priority: it becomes a near vertex, or a far one.
template <class Op, class Vertex>
struct Enter {
    const Op& op;
    Outbox<Vertex> near, far;
    Word32* marks;
    Word32* waiting;
    Index current;

    INLINE void operator()(bool is_wanted, Index vertex) {
        const bool is_low = is_wanted && op.priority(vertex) <= current;
        near.add(is_low && add_bit(marks, vertex), static_cast<Vertex>(vertex));
        far.add(is_wanted && !is_low && add_bit(waiting, vertex), static_cast<Vertex>(vertex));
    }
    INLINE void flush() {
        near.flush();
        far.flush();
    }
};

// The same where nobody joins.
struct JoinNothing {
    INLINE void operator()(bool, Index) {}
    INLINE void flush() {}
};

// Combine an item with a vertex's values: all of them, or those that count at copies; true if any changed.
template <class Values>
INLINE bool merge_item(const Values& values, const Mail& mail, Index item, Index vertex, bool has_all) {
    const Index slot = mail.first + item;
    if constexpr (Values::IS_SPLIT) {  // lanes with copies and others do the first part together
        const bool has_changed = values.merge_copy(mail.sender, slot, vertex);
        return has_all ? values.merge_rest(mail.sender, slot, vertex) || has_changed : has_changed;
    } else {
        return has_all ? values.merge(mail.sender, slot, vertex) : values.merge_copy(mail.sender, slot, vertex);
    }
}

// Combine a round's items with this device's values; what they change, and may join, joins.
template <class Values, class Vertex, class Joining>
INLINE void merge_collected(const Values& values, const Border<Vertex>& border, Index round, Word32* marks,
                            Joining join) {
    Index* const control = border.control;
    const bool is_routed = border.world[WORLD_ROUTED] != 0;
    const bool forwards = border.world[WORLD_FORWARDS] == FORWARDS_ALL;
    const bool shares_own = control[SHARES_OWN] != 0;
    const Index row = round * border.devices + border.device;
    Index combined = 0;
    for (Index i = border.receive_at[row]; i < border.receive_at[row + 1]; i++) {
        const Mail mail = find_mail(border, round, border.receive_from[i]);
        const Vertex* const ids = border.mail_ids[mail.sender] + mail.first;
        Index count = mail.count;
        if (Values::REACHES_ALL && !Values::IS_REPLICATED && !is_routed && !forwards) {
            count = look(line_of(border.world, mail.sender) + POSTED_LISTED);
            for (Index item = count + thread_in_grid(); item < mail.count; item += threads_in_grid()) {
                const Index vertex = ids[item];
                __builtin_assume(vertex >= 0);
                combined += 1;
                if (values.merge_copy(mail.sender, mail.first + item, vertex) && Values::CAN_PULL) {
                    add_bit(marks, vertex);
                }
            }
        }
        for (Index first = warp_in_grid() * WARP; first < count; first += warps_in_grid() * WARP) {
            const Index item = first + lane();
            bool is_joining = false;
            Index vertex = 0;
            if (item < count) {
                const Index code = ids[item];
                bool joins = code >= 0;
                vertex = joins ? code : ~code;
                __builtin_assume(vertex >= 0);
                const bool is_own = border.owner[vertex] == border.device;
                if (is_own || Values::REACHES_ALL || forwards) {
                    combined += 1;
                    bool has_changed = merge_item(values, mail, item, vertex, is_own || forwards);
                    if (Values::IS_DECIDED) {
                        joins = has_changed;
                    } else if (Values::IS_CERTAIN) {
                        has_changed = has_changed || joins;
                    }
                    is_joining = joins && has_changed && is_own;
                    if (Values::REACHES_ALL && Values::CAN_PULL && shares_own && joins && has_changed && !is_own) {
                        add_bit(marks, vertex);
                    }
                    if (!Values::IS_REPLICATED && forwards && has_changed && (Values::IS_ORDERED || !is_own)) {
                        tell(border, vertex, joins, true);
                    }
                }
            }
            __syncwarp();
            join(is_joining, vertex);
        }
    }
    join.flush();
    add_up(control, COMBINED, combined);
}

// Forget all that was listed.
template <class Values, class Vertex>
INLINE void clean_border(const Values& values, const Border<Vertex>& border, Word32* marks) {
    const Index count = border.control[BORDER];
    for (Index position = thread_in_grid(); position < count; position += threads_in_grid()) {
        const Index vertex = border.listed[position];
        __builtin_assume(vertex >= 0);
        forget(values, border, marks, vertex);
    }
}

// Write the listed vertices, this device's own, and their values into the mail: for whoever has copies.
template <class Values, class Vertex>
INLINE void pack_mirrored(const Values& values, const Border<Vertex>& border) {
    const Index count = border.control[BORDER];
    const bool is_routed = border.world[WORLD_ROUTED] != 0;
    Vertex* const ids = border.mail_ids[border.device];
    const Index place = border.mail_at[border.device * border.devices + border.device];
    for (Index position = thread_in_grid(); position < count; position += threads_in_grid()) {
        const Index vertex = border.listed[position];
        __builtin_assume(vertex >= 0);
        if (!is_routed) {
            ids[place + position] = static_cast<Vertex>(vertex);
            values.pack(place + position, vertex);
            continue;
        }
        for (Index i = border.copy_at[vertex]; i < border.copy_at[vertex + 1]; i++) {
            const Index slot = take_place(border, border.copy_peers[i]);
            ids[slot] = border.copy_ids[i];
            values.pack(slot, vertex);
        }
    }
}

// Put the owners' values of a round into this device's copies; with an announced frontier mark them, too.
template <class Values, class Vertex>
INLINE void take_mirrored(const Values& values, const Border<Vertex>& border, Index round, Word32* marks) {
    const bool forwards = border.world[WORLD_FORWARDS] == FORWARDS_ALL;
    const Index row = round * border.devices + border.device;
    Index combined = 0;
    for (Index i = border.receive_at[row]; i < border.receive_at[row + 1]; i++) {
        const Mail mail = find_mail(border, round, border.receive_from[i]);
        const Vertex* const ids = border.mail_ids[mail.sender] + mail.first;
        for (Index item = thread_in_grid(); item < mail.count; item += threads_in_grid()) {
            const Index vertex = ids[item];
            __builtin_assume(vertex >= 0);
            combined += 1;
            values.take(mail.sender, mail.first + item, vertex);
            if (Values::ANNOUNCES) add_bit(marks, vertex);
            if (forwards) note(border, vertex);
        }
    }
    add_up(border.control, COMBINED, combined);
}

// Copy the frontier's bitmap into this device's mail, and count its vertices.
template <class Vertex>
INLINE void pack_bits(const Border<Vertex>& border, const Word32* front, Index num_words) {
    Word32* const mine = border.mail_bits[border.device];
    Index count = 0;
    for (Index word = thread_in_grid(); word < num_words; word += threads_in_grid()) {
        mine[word] = front[word];
        count += __popc(front[word]);
    }
    add_up(border.control, BORDER, count);
}

// Add the frontiers that a round has for this device to its own.
template <class Vertex>
INLINE void take_bits(const Border<Vertex>& border, Index round, Word32* front, Index num_words) {
    const Index row = round * border.devices + border.device;
    for (Index word = thread_in_grid(); word < num_words; word += threads_in_grid()) {
        Word32 bits = front[word];
        for (Index i = border.receive_at[row]; i < border.receive_at[row + 1]; i++) {
            bits |= border.mail_bits[sender_of(border, border.receive_from[i], round)][word];
        }
        front[word] = bits;
    }
}

}  // namespace shoal

extern "C" __device__ void shoal_meet_devices(shoal::Index* control, shoal::Index* world) {
    shoal::meet_devices(control, world);
}
