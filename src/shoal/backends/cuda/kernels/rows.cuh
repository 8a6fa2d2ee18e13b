// SPDX-License-Identifier: Apache-2.0
// The rows of a CSR: types of ids and offsets, and which row an edge stands in.
//
// SHOAL_VERTEX and SHOAL_OFFSET are the types of vertex ids and edge offsets.
#pragma once

#if !defined(SHOAL_VERTEX) || !defined(SHOAL_OFFSET)
#error "define SHOAL_VERTEX and SHOAL_OFFSET, each as int or long long"
#endif

namespace building {

using Vertex = SHOAL_VERTEX;
using Offset = SHOAL_OFFSET;
using Word = unsigned long long;

static_assert(sizeof(Offset) >= sizeof(Vertex), "edge offsets must not be narrower than vertex ids");

constexpr unsigned int WARP = 32;

__device__ __forceinline__ Word thread_number() {
    return Word(blockIdx.x) * blockDim.x + threadIdx.x;
}

__device__ __forceinline__ Word num_threads() {
    return Word(gridDim.x) * blockDim.x;
}

// The last of the rows low .. high - 1 that begins at or before an edge.
__device__ __forceinline__ Word search_row(Word edge, const Offset* indptr, Word low, Word high) {
    while (high - low > 1) {
        Word middle = low + (high - low) / 2;
        if (Word(indptr[middle]) <= edge) low = middle;
        else high = middle;
    }
    return low;
}

}  // namespace building
