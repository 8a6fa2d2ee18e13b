// SPDX-License-Identifier: Apache-2.0
// CUDA's words for a C++ compiler: runs a whole grid at once, for kernels whose blocks, or warps, wait for one another.
//
// A block is a thread of the CPU, and shared memory that thread's own; a thread of the block is a fiber.  The lanes of a
// warp wait for each other in every collective, as the threads of a block do in a barrier; a wait that cannot end is an
// error.
#pragma once

#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <sched.h>
#include <thread>
#include <ucontext.h>
#include <vector>

#define __device__
#define __global__
#define __launch_bounds__(...)
#define __forceinline__ inline
#define __shared__ static thread_local
#define __builtin_assume(condition) ((void)0)

struct Dimensions {
    unsigned int x, y;
};
inline thread_local Dimensions threadIdx, blockIdx;
inline Dimensions blockDim, gridDim;

using std::isfinite;

namespace host {

constexpr unsigned int LANES = 32;
constexpr int PATIENCE = 1000;  // rounds in which no fiber comes any further

struct Meeting {
    unsigned int num_arrived = 0, generation = 0;
};

struct Fiber {
    ucontext_t context;
    std::vector<char> stack = std::vector<char>(1 << 16);
    bool has_ended = false;
    unsigned int num_exchanges = 0;
};

// What lanes show each other, in turns: nobody is more than one exchange ahead.
struct Warp {
    Meeting meeting;
    unsigned long long shown[2][LANES];
};

struct Block {
    std::vector<Fiber> fibers;
    std::vector<Warp> warps;
    Meeting meeting;
    ucontext_t scheduler;
    bool has_moved = false;
};

inline thread_local Block* block;
inline std::function<void()> body;

inline void pass_on() {
    const unsigned int thread = threadIdx.x;
    swapcontext(&block->fibers[thread].context, &block->scheduler);
}

inline void wait(Meeting& meeting, unsigned int count) {
    const unsigned int generation = meeting.generation;
    if (++meeting.num_arrived == count) {
        meeting = {0, generation + 1};
        block->has_moved = true;
    }
    while (meeting.generation == generation) pass_on();
}

inline void run_fiber() {
    body();
    block->fibers[threadIdx.x].has_ended = block->has_moved = true;
    pass_on();
}

inline void start(Fiber& fiber) {
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.data();
    fiber.context.uc_stack.ss_size = fiber.stack.size();
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, run_fiber, 0);
}

// Run every fiber that has not ended up to where it waits; return whether there is one.
inline bool run_round() {
    bool is_running = false;
    for (unsigned int thread = 0; thread < blockDim.x; ++thread) {
        if (block->fibers[thread].has_ended) continue;
        is_running = true;
        threadIdx.x = thread;
        swapcontext(&block->scheduler, &block->fibers[thread].context);
    }
    return is_running;
}

inline void run_block(unsigned int number, unsigned int row) {
    Block own;
    own.fibers.resize(blockDim.x);
    own.warps.resize(blockDim.x / LANES);
    block = &own;
    blockIdx = {number, row};
    for (Fiber& fiber : own.fibers) start(fiber);
    int num_idle = 0;
    while (run_round()) {
        num_idle = own.has_moved ? 0 : num_idle + 1;
        own.has_moved = false;
        if (num_idle > PATIENCE) {
            std::fprintf(stderr, "threads of block %u wait for others that do not come\n", number);
            std::abort();
        }
    }
}

inline void run(unsigned int num_blocks, unsigned int num_threads, std::function<void()> kernel,
                unsigned int num_rows = 1) {
    body = kernel;
    gridDim = {num_blocks, num_rows};
    blockDim = {num_threads, 1};
    std::vector<std::thread> threads;
    for (unsigned int row = 0; row < num_rows; ++row) {
        for (unsigned int number = 0; number < num_blocks; ++number) threads.emplace_back(run_block, number, row);
    }
    for (std::thread& thread : threads) thread.join();
}

// Show the other lanes a value; return those of all.
template <typename Value>
const unsigned long long* show(Value value) {
    static_assert(sizeof(Value) <= sizeof(unsigned long long), "");
    Warp& warp = block->warps[threadIdx.x / LANES];
    unsigned long long* shown = warp.shown[block->fibers[threadIdx.x].num_exchanges++ % 2];
    std::memcpy(shown + threadIdx.x % LANES, &value, sizeof(Value));
    wait(warp.meeting, LANES);
    return shown;
}

template <typename Value>
Value value_of(const unsigned long long* shown, unsigned int lane) {
    Value value;
    std::memcpy(&value, shown + lane, sizeof(Value));
    return value;
}

// Of a loop that waits for other blocks.
template <typename Number>
Number load_acquire(const Number* address) {
    sched_yield();
    block->has_moved = true;
    return __atomic_load_n(address, __ATOMIC_ACQUIRE);
}

}  // namespace host

#include "cuda_launch_on_host.hpp"

inline void __syncthreads() { host::wait(host::block->meeting, blockDim.x); }
inline void __syncwarp() { host::show(0); }
inline void __threadfence_system() { std::atomic_thread_fence(std::memory_order_seq_cst); }
inline void __threadfence() { std::atomic_thread_fence(std::memory_order_seq_cst); }

// Lanes that have taken different ways are alone each.
inline unsigned int __activemask() { return 1u << threadIdx.x % host::LANES; }
inline unsigned int __match_any_sync(unsigned int mask, int) { return mask; }

template <typename Value>
Value __shfl_sync(unsigned int mask, Value value, int lane) {
    if (mask != 0xffffffffu) return value;
    return host::value_of<Value>(host::show(value), lane % host::LANES);
}

template <typename Value>
Value __shfl_up_sync(unsigned int, Value value, unsigned int step) {
    const unsigned int lane = threadIdx.x % host::LANES;
    return host::value_of<Value>(host::show(value), lane < step ? lane : lane - step);
}

template <typename Value>
Value __shfl_xor_sync(unsigned int, Value value, int step) {
    return host::value_of<Value>(host::show(value), threadIdx.x % host::LANES ^ step);
}

inline unsigned int __ballot_sync(unsigned int, bool vote) {
    const unsigned long long* shown = host::show(vote);
    unsigned int votes = 0;
    for (unsigned int lane = 0; lane < host::LANES; ++lane) votes |= unsigned(host::value_of<bool>(shown, lane)) << lane;
    return votes;
}

template <typename Value>
Value __shfl_down_sync(unsigned int, Value value, unsigned int step) {
    const unsigned int lane = threadIdx.x % host::LANES + step;
    return host::value_of<Value>(host::show(value), lane < host::LANES ? lane : lane - step);
}

// All memory is of one kind.
inline size_t __cvta_generic_to_global(const void* address) { return reinterpret_cast<size_t>(address); }
inline size_t __cvta_generic_to_shared(const void* address) { return reinterpret_cast<size_t>(address); }

inline bool __all_sync(unsigned int mask, bool vote) { return __ballot_sync(mask, vote) == 0xffffffffu; }
inline bool __any_sync(unsigned int mask, bool vote) { return __ballot_sync(mask, vote) != 0; }
inline int __popc(unsigned int word) { return __builtin_popcount(word); }
inline int __ffs(int word) { return __builtin_ffs(word); }
inline int __clzll(long long word) { return __builtin_clzll(word); }

// What `change` makes of what is there; returns what was there.
template <typename Number, typename Change>
Number update(Number* place, Change change) {
    Number found, wanted;
    __atomic_load(place, &found, __ATOMIC_SEQ_CST);
    do wanted = change(found);
    while (!__atomic_compare_exchange(place, &found, &wanted, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
    return found;
}

template <typename Number>
Number atomicAdd(Number* place, Number added) {
    return update(place, [=](Number found) { return found + added; });
}

template <typename Number>
Number atomicMin(Number* place, Number value) {
    return update(place, [=](Number found) { return value < found ? value : found; });
}

template <typename Number>
Number atomicMax(Number* place, Number value) {
    return update(place, [=](Number found) { return value > found ? value : found; });
}

template <typename Number>
Number atomicExch(Number* place, Number value) {
    return update(place, [=](Number) { return value; });
}

template <typename Number>
Number atomicCAS(Number* place, Number seen, Number desired) {
    return update(place, [=](Number found) { return found == seen ? desired : found; });
}

template <typename Number>
Number atomicCAS_system(Number* place, Number seen, Number desired) { return atomicCAS(place, seen, desired); }

template <typename Number>
Number atomicOr(Number* place, Number bits) { return __atomic_fetch_or(place, bits, __ATOMIC_SEQ_CST); }

template <typename Number>
Number atomicAnd(Number* place, Number bits) { return __atomic_fetch_and(place, bits, __ATOMIC_SEQ_CST); }

template <typename Value>
Value __ldcs(const Value* place) { return *place; }

inline double __dadd_rn(double left, double right) { return left + right; }
inline double __dsub_rn(double left, double right) { return left - right; }
inline float __fadd_rn(float left, float right) { return left + right; }
