# SPDX-License-Identifier: Apache-2.0
"""Kernels that draw random graphs.

Random words come from SplitMix64 (Steele, Lea, Flood 2014) entered at any position: word ``i`` of the stream ``key`` is
``mix(key + GOLDEN * (i + 1))``.  A stream per purpose (EDGES, SHUFFLE, WEIGHTS, DROPS) has as key one word of the
seed's own stream.  Every edge, id and weight is thus a pure function of the seed and its own number, made of unsigned
64-bit operations and integer thresholds only, so that any number of threads, or any other device, gives the same graph.

Threads: each takes a contiguous share of edges (or vertices) and alone writes the elements of its share.
"""

from __future__ import annotations

import numpy as np

from shoal.backends.cpu.compiler import compiled, inner

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
FIRST_MULTIPLIER = np.uint64(0xBF58476D1CE4E5B9)
SECOND_MULTIPLIER = np.uint64(0x94D049BB133111EB)
LOW_HALF = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)
ONE = np.uint64(1)
ZERO = np.uint64(0)

EDGES, SHUFFLE, WEIGHTS, DROPS = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(3)

# Edges drawn level by level together: the loops over a block become vector code, and a block's two word arrays (8 KiB)
# stay in the first-level cache.  One edge at a time was 2.5 times slower on an AVX-512 Xeon.
BLOCK = 512

# Three rounds leave output bits that follow an input bit (64 % instead of 50 % at 16 bits), four do not.
SHUFFLE_ROUNDS = 4


@inner
def mix(word):
    """SplitMix64's finalizer."""
    word = (word ^ (word >> np.uint64(30))) * FIRST_MULTIPLIER
    word = (word ^ (word >> np.uint64(27))) * SECOND_MULTIPLIER
    return word ^ (word >> np.uint64(31))


@inner
def draw(key, number):
    """Word ``number`` of the stream ``key``."""
    return mix(key + GOLDEN * (number + ONE))


@inner
def enter(key, number, step):
    """State and stride that give the words number, number + step, ...: ``mix(state)``, then ``state += stride``."""
    return key + GOLDEN * (number + ONE), GOLDEN * step


@inner
def scaled(word, limit):
    """Map a word to 0..limit-1: the upper 64 bits of the 128-bit product (``__umul64hi``), from 32-bit halves."""
    word_high, word_low = word >> HALF, word & LOW_HALF
    limit_high, limit_low = limit >> HALF, limit & LOW_HALF
    middle = word_high * limit_low + ((word_low * limit_low) >> HALF)
    other = word_low * limit_high + (middle & LOW_HALF)
    return word_high * limit_high + (middle >> HALF) + (other >> HALF)


@inner
def share(total, thread, num_threads):
    """First and last+1 of the items that are this thread's."""
    return total * thread // num_threads, total * (thread + 1) // num_threads


@inner
def descend(row, column, uniform, above_a, above_ab, above_abc):
    """Append to both endpoints the bit of the quadrant that a 32-bit uniform falls in: a | b over c | d.

    The thresholds never fall, so the column bit (quadrants b and d) is the parity of the thresholds reached.
    """
    row_bit = np.uint64(uniform >= above_ab)
    column_bit = np.uint64(uniform >= above_a) ^ row_bit ^ np.uint64(uniform >= above_abc)
    return row + row + row_bit, column + column + column_bit


@inner
def draw_block(rows, columns, first, count, scale, thresholds, key):
    """Draw edges first .. first+count-1: two levels from each word, its upper half first."""
    above_a, above_ab, above_abc = thresholds
    words_per_edge = np.uint64((scale + 1) // 2)
    rows[:] = ZERO
    columns[:] = ZERO
    for word_number in range(scale // 2):
        state, stride = enter(key, np.uint64(first) * words_per_edge + np.uint64(word_number), words_per_edge)
        for i in range(count):
            word = mix(state)
            row, column = descend(rows[i], columns[i], word >> HALF, above_a, above_ab, above_abc)
            rows[i], columns[i] = descend(row, column, word & LOW_HALF, above_a, above_ab, above_abc)
            state += stride
    if scale % 2:
        state, stride = enter(key, np.uint64(first + 1) * words_per_edge - ONE, words_per_edge)
        for i in range(count):
            rows[i], columns[i] = descend(rows[i], columns[i], mix(state) >> HALF, above_a, above_ab, above_abc)
            state += stride


@inner
def permute_block(ids, count, scale, key):
    """Replace ids of ``scale`` bits by a pseudo-random permutation of them.

    Each step is a bijection modulo 2**scale: an odd factor, an addend, and folding the upper half onto the lower.
    """
    mask = (ONE << np.uint64(scale)) - ONE
    fold = np.uint64((scale + 1) // 2)
    for round_number in range(SHUFFLE_ROUNDS):
        factor = draw(key, np.uint64(2 * round_number)) | ONE
        addend = draw(key, np.uint64(2 * round_number + 1))
        for i in range(count):
            product = (ids[i] * factor + addend) & mask
            ids[i] = product ^ (product >> fold)


@compiled(allocates=True)
def draw_rmat(thread, num_threads, seed, src, dst, scale, thresholds, is_shuffled, begin):
    """Fill ``src`` and ``dst`` with R-MAT edges among 2**scale vertices, from the edge of number ``begin`` on."""
    edge_key, shuffle_key = draw(seed, EDGES), draw(seed, SHUFFLE)
    rows, columns = np.empty(BLOCK, np.uint64), np.empty(BLOCK, np.uint64)
    start, stop = share(len(src), thread, num_threads)
    for first in range(start, stop, BLOCK):
        count = min(BLOCK, stop - first)
        draw_block(rows, columns, begin + first, count, scale, thresholds, edge_key)
        if is_shuffled:
            permute_block(rows, count, scale, shuffle_key)
            permute_block(columns, count, scale, shuffle_key)
        for i in range(count):
            src[first + i] = rows[i]
            dst[first + i] = columns[i]


@compiled()
def draw_uniform(thread, num_threads, seed, src, dst, num_vertices, begin):
    """Fill ``src`` and ``dst`` with endpoints drawn uniformly: words 2i and 2i+1 for edge i, from ``begin`` on."""
    key = draw(seed, EDGES)
    start, stop = share(len(src), thread, num_threads)
    for i in range(start, stop):
        number = np.uint64(2 * (begin + i))
        src[i] = scaled(draw(key, number), num_vertices)
        dst[i] = scaled(draw(key, number + ONE), num_vertices)


@inner
def grid_neighbours(vertex, rows, columns, threshold, key):
    """Whether the edges up, left, right and down are there.

    A vertex owns its edges to the right and down; the halves of its one word say whether each is dropped.
    """
    row, column = vertex // columns, vertex % columns
    word = draw(key, np.uint64(vertex))
    up = row > 0 and (draw(key, np.uint64(vertex - columns)) & LOW_HALF) >= threshold
    left = column > 0 and (draw(key, np.uint64(vertex - 1)) >> HALF) >= threshold
    right = column + 1 < columns and (word >> HALF) >= threshold
    down = row + 1 < rows and (word & LOW_HALF) >= threshold
    return up, left, right, down


@compiled()
def count_grid(thread, num_threads, seed, rows, columns, threshold):
    """Count the stored edges of this thread's vertices."""
    key = draw(seed, DROPS)
    start, stop = share(rows * columns, thread, num_threads)
    count = 0
    for vertex in range(start, stop):
        up, left, right, down = grid_neighbours(vertex, rows, columns, threshold, key)
        count += up + left + right + down
    return count


@compiled()
def fill_grid(thread, num_threads, seed, indptr, indices, first_edges, rows, columns, threshold):
    """Write the CSR of this thread's vertices; its edges begin at ``first_edges[thread]``."""
    key = draw(seed, DROPS)
    start, stop = share(rows * columns, thread, num_threads)
    edge = first_edges[thread]
    for vertex in range(start, stop):
        indptr[vertex] = edge
        up, left, right, down = grid_neighbours(vertex, rows, columns, threshold, key)
        if up:
            indices[edge] = vertex - columns
            edge += 1
        if left:
            indices[edge] = vertex - 1
            edge += 1
        if right:
            indices[edge] = vertex + 1
            edge += 1
        if down:
            indices[edge] = vertex + columns
            edge += 1


@inner
def row_of(edge, indptr):
    """The row that holds a stored edge: the last one that begins at or before it."""
    low, high = 0, len(indptr) - 1
    while high - low > 1:
        middle = (low + high) // 2
        if indptr[middle] <= edge:
            low = middle
        else:
            high = middle
    return low


@inner
def edge_word(key, src, dst):
    """A word that depends on the unordered pair of endpoints only: both directions and all copies have the same."""
    return draw(draw(key, np.uint64(min(src, dst))), np.uint64(max(src, dst)))


@compiled()
def weigh_edges(thread, num_threads, seed, src, dst, weights, low, num_values, unit):
    """Give every edge the weight that `weigh` gives it in a CSR."""
    key = draw(seed, WEIGHTS)
    start, stop = share(len(src), thread, num_threads)
    for i in range(start, stop):
        word = edge_word(key, np.int64(src[i]), np.int64(dst[i]))
        weights[i] = low + unit * np.float64(scaled(word, num_values))


@compiled()
def weigh(thread, num_threads, seed, indptr, indices, weights, low, num_values, unit):
    """Give every stored edge the weight ``low + unit * k`` with a random k from 0 to num_values - 1.

    Float64 holds every such weight exactly: 32-bit whole numbers, and fractions of 24 or 53 bits.
    """
    key = draw(seed, WEIGHTS)
    start, stop = share(len(indices), thread, num_threads)
    row = row_of(start, indptr)
    while start < stop:
        row_stop = min(np.int64(indptr[row + 1]), stop)
        for edge in range(start, row_stop):
            word = edge_word(key, row, np.int64(indices[edge]))
            weights[edge] = low + unit * np.float64(scaled(word, num_values))
        start = row_stop
        row += 1
