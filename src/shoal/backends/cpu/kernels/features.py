# SPDX-License-Identifier: Apache-2.0
"""The degrees of a frontier in one pass: sums, extremes, and the out-degrees by their logarithm.

Degrees below 16 have a bin each; above, every power of two has eight of equal width, so that degrees in a bin differ by
less than an eighth.  A bin keeps its vertices and their degrees' sum, from which `shoal.model.features` finds how
uneven they are.  One thread reads the frontier and writes everything.
"""

from __future__ import annotations

from shoal.backends.cpu.compiler import compiled, inner
from shoal.backends.cpu.intrinsics import nonnegative

#: Eight bins for each power of two.
SPLIT_BITS = 3
#: Any degree below 2**63 has a bin.
NUM_BINS = (63 - SPLIT_BITS + 1) << SPLIT_BITS
#: Places in ``extremes``: least and most edges out, least and most edges in, the sum of edges in.
LEAST_OUT, MOST_OUT, LEAST_IN, MOST_IN, SUM_IN = range(5)
NUM_EXTREMES = 5


@inner
def _bin_of(degree):
    """Return the bin of a degree: its leading bits behind the number of those that follow."""
    shift = 0
    while degree >> shift >= 2 << SPLIT_BITS:
        shift += 1
    return (shift << SPLIT_BITS) + (degree >> shift)


@compiled()
def bin_degrees(indptr, in_indptr, queue, counts, sums, extremes):
    """Add the vertices of ``queue`` to ``counts`` and ``sums`` of the bins, and to ``extremes``, which begin as 0.

    ``in_indptr`` is that of the reversed graph; of an undirected one it is ``indptr`` itself.
    """
    least_out, most_out, least_in, most_in, sum_in = 2**62, 0, 2**62, 0, 0
    for k in range(queue.size):
        vertex = nonnegative(queue[k])
        out = indptr[vertex + 1] - indptr[vertex]
        into = in_indptr[vertex + 1] - in_indptr[vertex]
        place = nonnegative(_bin_of(out))
        counts[place] += 1
        sums[place] += out
        least_out, most_out = min(least_out, out), max(most_out, out)
        least_in, most_in = min(least_in, into), max(most_in, into)
        sum_in += into
    extremes[LEAST_OUT], extremes[MOST_OUT] = least_out, most_out
    extremes[LEAST_IN], extremes[MOST_IN] = least_in, most_in
    extremes[SUM_IN] = sum_in
