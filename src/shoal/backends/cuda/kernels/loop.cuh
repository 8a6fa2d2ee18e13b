// SPDX-License-Identifier: Apache-2.0
// The one synchronisation of a persistent kernel, and what blocks add up.
//
// `control` is the block of numbers by which a run stands (see backends/loops/control.py); its slots are constants that
// the generated text defines before it includes this.
#pragma once

#include "types.cuh"

namespace shoal {

INLINE Index load_acquire(const Index* address) {
    Index value;
    asm volatile("ld.acquire.gpu.b64 %0, [%1];" : "=l"(value) : "l"(address) : "memory");
    return value;
}

INLINE void store_release(Index* address, Index value) {
    asm volatile("st.release.gpu.b64 [%0], %1;" ::"l"(address), "l"(value) : "memory");
}

// Add one; return what was there.  Fences of their own beside it, or before a release, cost half a microsecond each.
INLINE Index arrive(Index* address) {
    Index before;
    asm volatile("atom.acq_rel.gpu.global.add.u64 %0, [%1], 1;"
                 : "=l"(before)
                 : "l"(__cvta_generic_to_global(address))
                 : "memory");
    return before;
}

INLINE Index fetch_add(Index* address, Index value) {
    return static_cast<Index>(atomicAdd(reinterpret_cast<Word64*>(address), static_cast<Word64>(value)));
}

INLINE void put(Index* control, int slot, Index value) {
    *const_cast<volatile Index*>(control + slot) = value;
}

// All blocks wait; the last to come does `serial`, with all its threads, while the others wait.
// Every block knows how often all have met: `generation`.
template <class Serial>
INLINE void meet_and(Index* control, Index& generation, Serial serial) {
    __shared__ bool is_last;
    __syncthreads();
    // What the block has written comes before its arrival, and what the last one reads after that of all others.
    if (threadIdx.x == 0) is_last = arrive(control + ARRIVED) == Index(gridDim.x) - 1;
    __syncthreads();
    if (is_last) {
        serial();
        if (threadIdx.x == 0) {
            put(control, ARRIVED, 0);
            store_release(control + GENERATION, generation + 1);
        }
    } else if (threadIdx.x == 0) {
        while (load_acquire(control + GENERATION) == generation) {}
    }
    generation += 1;
    __syncthreads();
}

INLINE void meet(Index* control, Index& generation) {
    meet_and(control, generation, [] {});
}

// Room of a block for what nobody needs any more at the next meeting: shared memory is none of the cache's, so all have
// one.  There is a word of 4 bytes for each thread, at least.
INLINE Index* scratch() {
    constexpr int LENGTH = CONTROL_LENGTH > BLOCK_WARPS * WARP / 2 ? CONTROL_LENGTH : BLOCK_WARPS * WARP / 2;
    __shared__ Index room[LENGTH];
    return room;
}

// The same with a serial part that reads and writes the control block: it has a copy in shared memory, so what it reads
// one after the other takes no time.  Its first lines, which others may write at any time, are not written back.
template <class Serial>
INLINE void meet(Index* control, Index& generation, Serial serial) {
    Index* const copy = scratch();
    meet_and(control, generation, [&] {
        for (int slot = threadIdx.x; slot < CONTROL_LENGTH; slot += blockDim.x) copy[slot] = control[slot];
        __syncthreads();
        serial(copy);
        __syncthreads();
        for (int slot = EDGES + threadIdx.x; slot < CONTROL_LENGTH; slot += blockDim.x) control[slot] = copy[slot];
        __syncthreads();
    });
}

// Copy few numbers that serial parts ask for; every block has its own.
template <int COUNT, class T>
INLINE T* in_shared_memory(const T* numbers) {
    __shared__ T copy[COUNT];
    if (threadIdx.x < COUNT) copy[threadIdx.x] = numbers[threadIdx.x];
    __syncthreads();
    return copy;
}

// Add every thread's value to a slot, with one atomic for a block.  All threads of the block call it.
INLINE void add_up(Index* control, int slot, Index value) {
    __shared__ Index sums[WARP];
    value = sum_warp(value);
    __syncthreads();
    if (lane() == 0) sums[threadIdx.x / WARP] = value;
    __syncthreads();
    if (threadIdx.x < WARP) {
        Index mine = threadIdx.x < blockDim.x / WARP ? sums[threadIdx.x] : 0;
        mine = sum_warp(mine);
        if (threadIdx.x == 0 && mine != 0) fetch_add(control + slot, mine);
    }
}

// Add up the edges of the frontier's queue in FRONTIER_EDGES; all threads call it, and meet before they ask for the sum.
template <class Vertex, class Edge>
INLINE void count_frontier_edges(Index* control, const Vertex* queue, const Edge* indptr) {
    Index num_edges = 0;
    for (Index position = control[BEGIN] + thread_in_grid(); position < control[END]; position += threads_in_grid()) {
        Index vertex = queue[position];
        num_edges += Index(indptr[vertex + 1]) - Index(indptr[vertex]);
    }
    add_up(control, FRONTIER_EDGES, num_edges);
}

// Begin to load a number into the nearest cache; nobody waits for it.  A prefetch does not come as far, and a load that
// nobody uses is left out.  On an H200 a kernel that reads a number, stores another in its place and a third elsewhere
// takes six times as long if it reads just before it stores.  `await_fetched` comes before the next vertex, when there is
// nothing left to wait for, and before blocks meet.
template <class T>
INLINE void fetch(const T* address) {
    Word32* const nowhere = reinterpret_cast<Word32*>(scratch());
    const auto from = __cvta_generic_to_global(address) & ~size_t(3);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(
                     static_cast<Word32>(__cvta_generic_to_shared(nowhere + threadIdx.x))),
                 "l"(from));
}

INLINE void await_fetched() {
    asm volatile("cp.async.wait_all;" ::);
}

INLINE bool has_bit(const Word32* bitmap, Index vertex) {
    return bitmap[vertex >> 5] >> (vertex & 31) & 1u;
}

// Put a vertex into the bitmap; true if it was not there.
INLINE bool add_bit(Word32* bitmap, Index vertex) {
    Word32 bit = 1u << (vertex & 31);
    Word32* word = bitmap + (vertex >> 5);
    if (*const_cast<volatile Word32*>(word) & bit) return false;
    return !(atomicOr(word, bit) & bit);
}

INLINE void clear_words(Word32* bitmap, Index num_words) {
    for (Index word = thread_in_grid(); word < num_words; word += threads_in_grid()) bitmap[word] = 0;
}

// Where an operator puts vertices: `queue[base]` and behind it, counted in a slot.
template <class Vertex>
struct Output {
    Vertex* queue;
    Index base;
    int counter;
    Index capacity;
};

// What a warp collects in shared memory before it takes room in a queue: one atomic for 32 vertices, not one for each
// time that some lanes have one.  Only so many atomics on one address a second there are.  A queue too short ends the
// run.
template <class Vertex>
struct Outbox {
    Index* control;
    Output<Vertex> output;
    Vertex* room;  // of this warp, for two loads
    int count;

    // Put in the vertices of the lanes that want it; all lanes of the warp call it.
    INLINE void add(bool is_wanted, Vertex vertex) {
        Word32 wanting = __ballot_sync(ALL_LANES, is_wanted);
        if (wanting == 0) return;
        if (is_wanted) room[count + __popc(wanting & ((1u << lane()) - 1u))] = vertex;
        count += __popc(wanting);
        __syncwarp();
        if (count >= WARP) {
            send(WARP);
            count -= WARP;
            Vertex rest = room[WARP + lane()];
            __syncwarp();
            room[lane()] = rest;
            __syncwarp();
        }
    }

    // Send what is left; all lanes of the warp call it.
    INLINE void flush() {
        if (count > 0) send(count);
        count = 0;
        __syncwarp();
    }

    INLINE void send(int length) {
        Index start = 0;
        if (lane() == 0) start = fetch_add(control + output.counter, length);
        start = __shfl_sync(ALL_LANES, start, 0) + lane();
        if (lane() >= length) return;
        if (start < output.capacity) {
            output.queue[output.base + start] = room[lane()];
        } else {
            put(control, STOP, OVERFLOW);
        }
    }
};

// The outbox number `number` of this warp; a block has room for as many as its kernels use at once.
template <int number, class Vertex>
INLINE Outbox<Vertex> make_outbox(Index* control, const Output<Vertex>& output) {
    __shared__ Vertex rooms[BLOCK_WARPS * 2 * WARP];
    return {control, output, rooms + threadIdx.x / WARP * 2 * WARP, 0};
}

template <class Vertex>
INLINE void queue_to_bitmap(const Vertex* queue, Index begin, Index end, Word32* bitmap) {
    for (Index position = begin + thread_in_grid(); position < end; position += threads_in_grid()) {
        Index vertex = queue[position];
        atomicOr(bitmap + (vertex >> 5), 1u << (vertex & 31));
    }
}

template <class Vertex>
INLINE void bitmap_to_queue(Index* control, const Word32* bitmap, Index num_words,
                            const Output<Vertex>& output) {
    for (Index first = warp_in_grid() * WARP; first < num_words; first += warps_in_grid() * WARP) {
        Word32 mine = first + lane() < num_words ? bitmap[first + lane()] : 0;
        int before = scan_warp(__popc(mine));
        int total = __shfl_sync(ALL_LANES, before, WARP - 1);
        if (total == 0) continue;
        Index start = 0;
        if (lane() == 0) start = fetch_add(control + output.counter, total);
        start = __shfl_sync(ALL_LANES, start, 0);
        if (start + total > output.capacity) {
            put(control, STOP, OVERFLOW);
            continue;
        }
        Index position = output.base + start + before - __popc(mine);
        for (; mine != 0; mine &= mine - 1) {
            output.queue[position++] = static_cast<Vertex>((first + lane()) * WARP + __ffs(mine) - 1);
        }
    }
}

// Make a device's vertices an output: those in a table, or all.
template <class Vertex>
INLINE void list_everything(const Vertex* table, Vertex* queue, Index base, Index count) {
    for (Index place = thread_in_grid(); place < count; place += threads_in_grid()) {
        queue[base + place] = table == nullptr ? static_cast<Vertex>(place) : table[place];
    }
}

}  // namespace shoal
