// SPDX-License-Identifier: Apache-2.0
// Names of types, and small functions of a thread, a warp or a block.
#pragma once

#define INLINE __device__ __forceinline__

namespace shoal {

using Index = long long;  // of vertices and edges while one computes with them, as on a CPU
using Word32 = unsigned int;
using Word64 = unsigned long long;

constexpr int WARP = 32;
constexpr Word32 ALL_LANES = 0xffffffffu;

template <class T>
constexpr bool is_integer = true;
template <>
constexpr bool is_integer<float> = false;
template <>
constexpr bool is_integer<double> = false;

INLINE int lane() { return threadIdx.x & (WARP - 1); }
INLINE Index thread_in_grid() { return Index(blockIdx.x) * blockDim.x + threadIdx.x; }
INLINE Index threads_in_grid() { return Index(gridDim.x) * blockDim.x; }
INLINE Index warp_in_grid() { return thread_in_grid() / WARP; }
INLINE Index warps_in_grid() { return threads_in_grid() / WARP; }

INLINE Index smaller(Index left, Index right) { return left < right ? left : right; }
INLINE Index larger(Index left, Index right) { return left > right ? left : right; }

template <class T>
INLINE void exchange_pointers(T*& left, T*& right) {
    T* kept = left;
    left = right;
    right = kept;
}

INLINE long long nanoseconds() {
    long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

// What the lanes before this one have, added up, with its own.
template <class T>
INLINE T scan_warp(T value) {
    for (int step = 1; step < WARP; step *= 2) {
        T other = __shfl_up_sync(ALL_LANES, value, step);
        if (lane() >= step) value += other;
    }
    return value;
}

template <class T>
INLINE T sum_warp(T value) {
    for (int step = WARP / 2; step > 0; step /= 2) value += __shfl_xor_sync(ALL_LANES, value, step);
    return value;
}

// Edges of the lanes' vertices are laid end to end, those of a lane up to `behind`: return whose an item is.
INLINE int owner_of(int behind, int item) {
    int owner = 0;
    for (int step = WARP / 2; step > 0; step /= 2) {
        if (__shfl_sync(ALL_LANES, behind, owner + step - 1) <= item) owner += step;
    }
    return owner;
}

}  // namespace shoal
