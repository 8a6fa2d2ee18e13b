// SPDX-License-Identifier: Apache-2.0
// Work without supersteps whose author says by rules what becomes of an item (see shoal/dataflow/worklist.py).
//
// These rules may write a vertex's values without atomics, so whoever runs one has its vertex alone.  To pack, there is a
// thread for each listed vertex, while nothing else is done.  What has arrived is taken in before anything is visited,
// one sender after the other: a batch has every vertex at most once, as its sender lists it once, and between two
// batches all blocks meet.  So no lock is needed, nor can two threads wait for one another.  `on_send` is asked along
// edges, by many threads at once.
#pragma once

#include "worklist.cuh"

namespace shoal {

constexpr Index KEEP = 1, PASS = 2;  // as in shoal/worklists.py

// Combine what has arrived with this device's values, a warp's lanes an item each; enter what stays here and was changed
// by it, and list what goes on.  What is near by now is visited behind this, and need not be entered again.
template <class Values, class Op, class Vertex>
INLINE void receive_in_turn(const Values& values, const Border<Vertex>& border, const Channels& channels,
                            Enter<Op, Vertex>& enter, const Word32* near, Index* control, Index& generation) {
    for (Index sender = 0; sender < border.devices; sender++) {
        const Index count = channels.arrived[sender];
        if (count == 0) continue;
        const Index read = channels.from(sender, border.device, border.devices)[BATCHES_READ];
        const Index at = batch_at(border, channels, sender, border.device, read);
        for (Index first = warp_in_grid() * WARP; first < count; first += warps_in_grid() * WARP) {
            const Index slot = at + first + lane();
            bool is_wanted = false;
            Index vertex = 0;
            if (first + lane() < count) {
                const Index code = border.mail_ids[sender][slot];
                const bool joins = code >= 0;
                vertex = joins ? code : ~code;
                __builtin_assume(vertex >= 0);
                const bool is_owned = border.owner[vertex] == border.device;
                const Index flags = values.on_receive(sender, slot, vertex, is_owned);
                const bool has_changed = (flags & (KEEP | PASS)) != 0 &&
                                         (values.merge(sender, slot, vertex) || (Values::IS_CERTAIN && joins));
                if ((flags & PASS) != 0) tell(border, vertex, joins && has_changed, has_changed);
                is_wanted = (flags & KEEP) != 0 && is_owned && joins && has_changed && enter.op.accepts(vertex) &&
                            !has_bit(near, vertex);
            }
            __syncwarp();
            enter(is_wanted, vertex);
        }
        meet(control, generation);
    }
}

}  // namespace shoal
