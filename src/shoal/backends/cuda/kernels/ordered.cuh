// SPDX-License-Identifier: Apache-2.0
// Advance by priority: the vertices of the lowest number first, the others wait in a pile.
//
// The frontier, the near vertices, is a queue; what joins with a number above the current one goes to the far pile,
// once (`waiting` has a bit for each).  When no near vertex is left, the pile is gone through twice: for the lowest
// number, and to take out its vertices.  A vertex of the pile whose number has fallen to the current one or below joined
// the near ones when it fell, and is dropped.  (Near-far: Davidson, Baxter, Garland, Owens, IPDPS 2014.)
#pragma once

#include "pull.cuh"
#include "push.cuh"

namespace shoal {

template <class Vertex>
struct Pile {
    Vertex* lists[2];
    Word32* waiting;
};

// A priority between those that stand for the begin and the end, which no vertex has.
INLINE Index bounded(Index priority) { return smaller(larger(priority, FIRST + 1), NEVER - 1); }

template <class Op, class Vertex>
struct Relax {
    const Op& op;
    const Vertex* indices;
    Outbox<Vertex> near, far;
    Word32* marks;
    Word32* waiting;
    Index current;

    template <int COUNT>
    INLINE void operator()(const Edges<Vertex, COUNT>& edges) {
        Vertex dst[COUNT];
#pragma unroll
        for (int i = 0; i < COUNT; i++) dst[i] = indices[edges.edge[i]];
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            bool is_near = false, is_far = false;
            Index src = edges.src[i], to = dst[i];
            __builtin_assume(src >= 0 && to >= 0);
            if (edges.is_there[i] && (!Op::HAS_WHERE || op.where(to)) && op.visit(src, to, edges.edge[i])) {
                is_near = op.priority(to) <= current;
                is_far = !is_near && add_bit(waiting, to);
                is_near = is_near && add_bit(marks, to);
            }
            near.add(is_near, dst[i]);
            far.add(is_far, dst[i]);
        }
    }

    INLINE void flush() {
        near.flush();
        far.flush();
    }
};

// Make the vertices of the lowest number in the pile the frontier; all blocks call it, when no near vertex is left: at
// the end of a superstep, or at the begin of the next.
template <bool IS_END, class Op, class Vertex, class Agree>
INLINE void take_lowest(const Op& op, Index* control, Index& generation, const Pile<Vertex>& pile,
                        const Output<Vertex>& near, Agree agree) {
    const int side = static_cast<int>(control[PILE_SIDE]);
    const Index count = control[PILE + side * LINE], before = control[CURRENT];
    Index lowest = NEVER;
    for (Index place = thread_in_grid(); place < count; place += threads_in_grid()) {
        Index number = op.priority(Index(pile.lists[side][place]));
        if (number > before) lowest = smaller(lowest, number);
    }
    for (int step = WARP / 2; step > 0; step /= 2) lowest = smaller(lowest, __shfl_xor_sync(ALL_LANES, lowest, step));
    if (lane() == 0 && lowest != NEVER) atomicMin(control + LOWEST, lowest);
    meet(control, generation, [=](Index* control) {
        if (threadIdx.x == 0) {
            control[CURRENT] = agree(control, control[LOWEST]);
            control[LOWEST] = NEVER;
        }
    });
    const Index current = control[CURRENT];
    auto nearer = make_outbox<0>(control, near);
    const Output<Vertex> far{pile.lists[1 - side], 0, PILE + (1 - side) * LINE, near.capacity};
    auto farther = make_outbox<1>(control, far);
    for (Index first = warp_in_grid() * WARP; first < count; first += warps_in_grid() * WARP) {
        bool is_near = false, is_far = false;
        Index vertex = 0;
        if (first + lane() < count) {
            vertex = pile.lists[side][first + lane()];
            Index number = op.priority(vertex);
            is_far = number > current;
            is_near = number > before && !is_far;
            if (!is_far) atomicAnd(pile.waiting + (vertex >> 5), ~(1u << (vertex & 31)));
        }
        nearer.add(is_near, static_cast<Vertex>(vertex));
        farther.add(is_far, static_cast<Vertex>(vertex));
    }
    nearer.flush();
    farther.flush();
    meet(control, generation, [=](Index* control) {
        if (threadIdx.x == 0) {
            control[PILE + side * LINE] = 0;
            control[PILE_SIDE] = 1 - side;
            control[END] = control[BEGIN] + control[OUTPUT];
            control[PILE_DUE] = 0;
            if (!IS_END) {
                control[SIZE] = control[LOCAL_SIZE] = control[OUTPUT];
                control[OUTPUT] = 0;
            }
        }
    });
}

// Serial: make what was appended the frontier, and turn to the other half of the queue; if nothing was, the pile's turn
// has come, and if nothing waits there either, the end.
INLINE void adopt_near(Index* control, Index half) {
    control[BEGIN] = control[OUT_BASE];
    control[END] = control[OUT_BASE] + control[OUTPUT];
    control[OUT_BASE] = control[OUT_BASE] == 0 ? half : 0;
    control[PILE_DUE] = control[OUTPUT] == 0;
    if (control[OUTPUT] == 0 && control[PILE + control[PILE_SIDE] * LINE] == 0) control[CURRENT] = NEVER;
}

}  // namespace shoal
