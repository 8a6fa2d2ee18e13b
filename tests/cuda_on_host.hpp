// SPDX-License-Identifier: Apache-2.0
// CUDA's words for a C++ compiler: runs kernels on one CPU thread, block after block.
//
// Every thread of a block is a fiber.  A barrier passes on to the next fiber, and since all threads of a block must meet
// the same barriers, a fiber that goes on knows that all others have arrived; one that ends before others is an error.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <ucontext.h>
#include <vector>

#define __device__
#define __global__
#define __forceinline__ inline
#define __shared__ static

struct Dimensions {
    unsigned int x;
};
inline Dimensions threadIdx, blockIdx, blockDim, gridDim;

namespace host {

struct Fiber {
    ucontext_t context;
    std::vector<char> stack = std::vector<char>(1 << 15);
    bool has_ended;
    bool vote;
};

inline ucontext_t scheduler;
inline std::vector<Fiber> fibers;
inline std::function<void()> body;

inline void pass_on() {
    unsigned int thread = threadIdx.x;
    swapcontext(&fibers[thread].context, &scheduler);
}

inline void run_fiber() {
    body();
    fibers[threadIdx.x].has_ended = true;
    pass_on();
}

inline void start(Fiber& fiber) {
    fiber.has_ended = false;
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.data();
    fiber.context.uc_stack.ss_size = fiber.stack.size();
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, run_fiber, 0);
}

// Run every fiber up to its next barrier; return how many have ended.
inline unsigned int run_phase() {
    unsigned int num_ended = 0;
    for (unsigned int thread = 0; thread < blockDim.x; ++thread) {
        threadIdx.x = thread;
        swapcontext(&scheduler, &fibers[thread].context);
        num_ended += fibers[thread].has_ended;
    }
    return num_ended;
}

inline void run(unsigned int grid, unsigned int block, std::function<void()> kernel) {
    body = kernel;
    gridDim.x = grid;
    blockDim.x = block;
    fibers.resize(block);
    for (blockIdx.x = 0; blockIdx.x < grid; ++blockIdx.x) {
        for (Fiber& fiber : fibers) start(fiber);
        unsigned int num_ended = 0;
        while (num_ended == 0) num_ended = run_phase();
        if (num_ended != block) {
            std::fprintf(stderr, "%u of %u threads ended before the others met a barrier\n", num_ended, block);
            std::abort();
        }
    }
}

}  // namespace host

#include "cuda_launch_on_host.hpp"

inline void __syncthreads() {
    host::pass_on();
}

inline unsigned int __ballot_sync(unsigned int, bool vote) {
    host::fibers[threadIdx.x].vote = vote;
    host::pass_on();
    unsigned int first = threadIdx.x / 32 * 32, votes = 0;
    for (unsigned int lane = 0; lane < 32; ++lane) votes |= (unsigned int)(host::fibers[first + lane].vote) << lane;
    host::pass_on();
    return votes;
}

inline int __popc(unsigned int word) {
    return __builtin_popcount(word);
}

inline unsigned long long __umul64hi(unsigned long long left, unsigned long long right) {
    return (unsigned long long)(((unsigned __int128)left * right) >> 64);
}

template <typename Number>
Number atomicAdd(Number* place, Number added) {
    Number before = *place;
    *place = before + added;
    return before;
}

template <typename Number>
Number atomicMin(Number* place, Number other) {
    Number before = *place;
    if (other < before) *place = other;
    return before;
}

template <typename Number>
Number atomicCAS(Number* place, Number seen, Number desired) {
    Number before = *place;
    if (before == seen) *place = desired;
    return before;
}
