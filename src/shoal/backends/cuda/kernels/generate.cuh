// SPDX-License-Identifier: Apache-2.0
// Random graphs: the same words, edges and weights as backends/cpu/kernels/generate.py, which says how they are drawn.
//
// Word i of the stream `key` is mix(key + GOLDEN * (i + 1)) (SplitMix64), and every edge, id and weight a pure function
// of the seed and its own number: edges are drawn again wherever they are needed instead of being stored.
#pragma once

#include "csr.cuh"

namespace building {

constexpr Word GOLDEN = 0x9E3779B97F4A7C15ull;
constexpr Word FIRST_MULTIPLIER = 0xBF58476D1CE4E5B9ull;
constexpr Word SECOND_MULTIPLIER = 0x94D049BB133111EBull;
constexpr Word LOW_HALF = 0xFFFFFFFFull;
constexpr int SHUFFLE_ROUNDS = 4;

// Streams: the key of each is one word of the seed's own stream.
constexpr Word EDGES = 0, SHUFFLE = 1, WEIGHTS = 2, DROPS = 3;

// Ids being made.  Arithmetic modulo the width of a vertex id does: an id has fewer bits, and only low bits are used.
using Bits = Unsigned<Vertex>::type;

__device__ __forceinline__ Word mix(Word word) {
    word = (word ^ (word >> 30)) * FIRST_MULTIPLIER;
    word = (word ^ (word >> 27)) * SECOND_MULTIPLIER;
    return word ^ (word >> 31);
}

// Word `number` of the stream `key`.
__device__ __forceinline__ Word draw(Word key, Word number) {
    return mix(key + GOLDEN * (number + 1));
}

// Map a word to 0 .. limit - 1.
__device__ __forceinline__ Word scaled(Word word, Word limit) {
    return __umul64hi(word, limit);
}

// R-MAT edges among 2**scale vertices; the thresholds are the upper ends of the quadrants a, b and c times 2**32.
struct RmatEdges {
    Word key;
    int scale;
    Word above_a, above_ab, above_abc;
    bool is_shuffled;
    Bits factors[SHUFFLE_ROUNDS], addends[SHUFFLE_ROUNDS];

    __device__ __forceinline__ RmatEdges(
        Word seed, int scale, Word above_a, Word above_ab, Word above_abc, bool is_shuffled
    )
        : key(draw(seed, EDGES)), scale(scale), above_a(above_a), above_ab(above_ab), above_abc(above_abc),
          is_shuffled(is_shuffled) {
        Word shuffle_key = draw(seed, SHUFFLE);
#pragma unroll
        for (int round = 0; round < SHUFFLE_ROUNDS; ++round) {
            factors[round] = Bits(draw(shuffle_key, 2 * round) | 1);
            addends[round] = Bits(draw(shuffle_key, 2 * round + 1));
        }
    }

    // Append to both ends the bit of the quadrant that a 32-bit uniform falls in: a | b over c | d.
    // The thresholds never fall, so the column bit (quadrants b and d) is the parity of the thresholds reached.
    __device__ __forceinline__ void descend(Bits& row, Bits& column, Word uniform) const {
        Bits row_bit = uniform >= above_ab;
        Bits column_bit = Bits(uniform >= above_a) ^ row_bit ^ Bits(uniform >= above_abc);
        row = row + row + row_bit;
        column = column + column + column_bit;
    }

    // A pseudo-random permutation of ids of `scale` bits: steps that are each a bijection modulo 2**scale.
    __device__ __forceinline__ Bits permuted(Bits id) const {
        Bits mask = (Bits(1) << scale) - 1;
        int fold = (scale + 1) / 2;
#pragma unroll
        for (int round = 0; round < SHUFFLE_ROUNDS; ++round) {
            Bits product = (id * factors[round] + addends[round]) & mask;
            id = product ^ (product >> fold);
        }
        return id;
    }

    // Two levels from each word, its upper half first.
    __device__ __forceinline__ Edge operator()(Word number) const {
        Bits row = 0, column = 0;
        Word state = key + GOLDEN * (number * Word((scale + 1) / 2) + 1);
        for (int level = 0; level + 1 < scale; level += 2) {
            Word word = mix(state);
            descend(row, column, word >> 32);
            descend(row, column, word & LOW_HALF);
            state += GOLDEN;
        }
        if (scale % 2) descend(row, column, mix(state) >> 32);
        if (is_shuffled) {
            row = permuted(row);
            column = permuted(column);
        }
        return {Word(row), Word(column)};
    }
};

// Edges with both ends drawn uniformly: words 2i and 2i + 1 for edge i.
struct UniformEdges {
    Word key, num_vertices;

    __device__ __forceinline__ UniformEdges(Word seed, Word num_vertices)
        : key(draw(seed, EDGES)), num_vertices(num_vertices) {}

    __device__ __forceinline__ Edge operator()(Word number) const {
        return {scaled(draw(key, 2 * number), num_vertices), scaled(draw(key, 2 * number + 1), num_vertices)};
    }
};

// A thread for an edge, which alone writes its two ends.
template <typename Edges>
__device__ void draw_edges(const Edges& edges, Word num_edges, Vertex* src, Vertex* dst) {
    for (Word number = thread_number(); number < num_edges; number += num_threads()) {
        Edge edge = edges(number);
        src[number] = Vertex(edge.src);
        dst[number] = Vertex(edge.dst);
    }
}

// A grid of rows x columns whose edges are dropped where a 32-bit word is below the threshold.
struct Grid {
    Word key, rows, columns, threshold;

    __device__ __forceinline__ Grid(Word seed, Word rows, Word columns, Word threshold)
        : key(draw(seed, DROPS)), rows(rows), columns(columns), threshold(threshold) {}

    // A vertex owns its edges to the right and down: the upper and the lower half of its one word.
    __device__ __forceinline__ bool has_right(Word vertex) const { return draw(key, vertex) >> 32 >= threshold; }
    __device__ __forceinline__ bool has_down(Word vertex) const { return (draw(key, vertex) & LOW_HALF) >= threshold; }

    // Put the neighbours of a vertex, ascending, into `found`; return how many they are.
    __device__ __forceinline__ int neighbours(Word vertex, Word found[4]) const {
        Word row = vertex / columns, column = vertex % columns;
        int count = 0;
        if (row > 0 && has_down(vertex - columns)) found[count++] = vertex - columns;
        if (column > 0 && has_right(vertex - 1)) found[count++] = vertex - 1;
        if (column + 1 < columns && has_right(vertex)) found[count++] = vertex + 1;
        if (row + 1 < rows && has_down(vertex)) found[count++] = vertex + columns;
        return count;
    }
};

// Give every stored edge the weight low + unit * k with a random k from 0 to num_values - 1, which float64 holds
// exactly.  The word depends on the unordered pair of ends only.  A thread for an edge, which alone writes its weight.
template <typename Weight>
__device__ void weigh_edges(
    Word num_edges, Word seed, const Offset* indptr, const Vertex* indices, Word num_rows, Weight* weights, double low,
    Word num_values, double unit
) {
    Word key = draw(seed, WEIGHTS);
    for (Word edge = thread_number(); edge < num_edges; edge += num_threads()) {
        Word src = row_of(edge, indptr, num_rows, num_edges), dst = Word(indices[edge]);
        Word word = draw(draw(key, src < dst ? src : dst), src < dst ? dst : src);
        weights[edge] = Weight(low + unit * double(scaled(word, num_values)));
    }
}

}  // namespace building

SHOAL_BUILDING_KERNELS(
    rmat, building::RmatEdges(seed, scale, above_a, above_ab, above_abc, is_shuffled), building::Word seed, int scale,
    building::Word above_a, building::Word above_ab, building::Word above_abc, bool is_shuffled
)
SHOAL_BUILDING_KERNELS(
    uniform, building::UniformEdges(seed, num_drawn_vertices), building::Word seed, building::Word num_drawn_vertices
)

extern "C" __global__ void draw_rmat(
    building::Word num_edges, building::Vertex* src, building::Vertex* dst, building::Word seed, int scale,
    building::Word above_a, building::Word above_ab, building::Word above_abc, bool is_shuffled
) {
    building::RmatEdges edges(seed, scale, above_a, above_ab, above_abc, is_shuffled);
    building::draw_edges(edges, num_edges, src, dst);
}

extern "C" __global__ void draw_uniform(
    building::Word num_edges, building::Vertex* src, building::Vertex* dst, building::Word seed,
    building::Word num_drawn_vertices
) {
    building::draw_edges(building::UniformEdges(seed, num_drawn_vertices), num_edges, src, dst);
}

// A thread for a vertex, which alone writes its degree.
extern "C" __global__ void count_grid(
    building::Word num_vertices, building::Word seed, building::Word rows, building::Word columns,
    building::Word threshold, unsigned char* degrees
) {
    using namespace building;
    Grid grid(seed, rows, columns, threshold);
    Word found[4];
    for (Word vertex = thread_number(); vertex < num_vertices; vertex += num_threads()) {
        degrees[vertex] = (unsigned char)grid.neighbours(vertex, found);
    }
}

// A thread for a vertex, which alone writes its row.
extern "C" __global__ void fill_grid(
    building::Word num_vertices, building::Word seed, building::Word rows, building::Word columns,
    building::Word threshold, const building::Offset* indptr, building::Vertex* indices
) {
    using namespace building;
    Grid grid(seed, rows, columns, threshold);
    Word found[4];
    for (Word vertex = thread_number(); vertex < num_vertices; vertex += num_threads()) {
        int count = grid.neighbours(vertex, found);
        for (int i = 0; i < count; ++i) indices[indptr[vertex] + i] = Vertex(found[i]);
    }
}

#define SHOAL_WEIGHING_KERNEL(NAME, WEIGHT)                                                                            \
    extern "C" __global__ void weigh_##NAME(                                                                           \
        building::Word num_edges, building::Word seed, const building::Offset* indptr,                                 \
        const building::Vertex* indices, building::Word num_rows, WEIGHT* weights, double low,                         \
        building::Word num_values, double unit                                                                         \
    ) {                                                                                                                \
        building::weigh_edges(num_edges, seed, indptr, indices, num_rows, weights, low, num_values, unit);             \
    }

SHOAL_WEIGHING_KERNEL(int32, int)
SHOAL_WEIGHING_KERNEL(float32, float)
SHOAL_WEIGHING_KERNEL(float64, double)
