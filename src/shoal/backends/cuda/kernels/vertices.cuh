// SPDX-License-Identifier: Apache-2.0
// Operators over vertices: compute and filter.
#pragma once

#include "loop.cuh"

namespace shoal {

template <class Op, class Vertex>
INLINE Index vertex_at(const Vertex* sources, Index position) {
    Index vertex = Op::FROM_QUEUE ? Index(sources[position]) : position;
    __builtin_assume(vertex >= 0);
    return vertex;
}

template <class Op, class Vertex>
INLINE void compute(const Op& op, const Vertex* sources, Index begin, Index end) {
    for (Index position = begin + thread_in_grid(); position < end; position += threads_in_grid()) {
        op.visit(vertex_at<Op>(sources, position));
    }
}

// Append the vertices for which the rule is true; unmark the others.
template <class Op, class Vertex>
INLINE void filter(const Op& op, Index* control, const Vertex* sources, Index begin, Index end,
                   const Output<Vertex>& output, Word32* marks) {
    auto outbox = make_outbox<0>(control, output);
    for (Index first = begin + warp_in_grid() * WARP; first < end; first += warps_in_grid() * WARP) {
        Index position = first + lane(), vertex = 0;
        bool is_kept = false;
        if (position < end) {
            vertex = vertex_at<Op>(sources, position);
            is_kept = op.visit(vertex);
            if (Op::HAS_MARKS && !is_kept) atomicAnd(marks + (vertex >> 5), ~(1u << (vertex & 31)));
        }
        outbox.add(is_kept, static_cast<Vertex>(vertex));
    }
    outbox.flush();
}

}  // namespace shoal
