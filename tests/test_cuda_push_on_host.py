# SPDX-License-Identifier: Apache-2.0
"""The kernels of a push, run by the CPU: however edges are dealt, every edge of a frontier is visited once."""

from __future__ import annotations

import numpy as np
import pytest

from cuda_grid import as_argument, build_grid
from cuda_on_host import COMPILER
from shoal.algorithms.bfs import BFS
from shoal.backends.cuda.buffers import NUM_BINS
from shoal.backends.cuda.generator.advance import BALANCES
from shoal.backends.cuda.phases import load_phase
from shoal.backends.loops.control import EDGES
from shoal.config import AXES

pytestmark = [
    pytest.mark.skipif(COMPILER is None, reason="needs g++ or clang++"),
    pytest.mark.host_only("for machines without a GPU"),
]

NUM_BLOCKS = 3
NUM_PUSHES = 2  # one after the other: the second finds all as the first did
NUM_PIECES = 4000
TYPES = (np.dtype(np.int32), np.dtype(np.int64), None)
SOURCE = load_phase(BFS(), BFS().phases()[0], TYPES, "push").source
#: Operators: whether the sources are a queue, whether marks are cleared, and which edges there are.
OPERATORS = {
    "queue": ("true", "true", 0, -1),
    "all but the first edges": ("true", "false", 2, -1),
    "some edges of everything": ("false", "false", 3, 40),
    "few edges of everything": ("false", "false", 1, 3),
}
DRIVER = """
#include "balance.cuh"
using namespace shoal;
using Id = int;

struct Visits {
    Index num_edges;
    Word32* counts;
    Id* sources;
    template <int COUNT>
    void operator()(const Edges<Id, COUNT>& edges) {
        __syncwarp();  // as a visit's own collectives
        for (int i = 0; i < COUNT; i++) {
            if (edges.edge[i] < 0 || edges.edge[i] >= num_edges) std::abort();
            if (!edges.is_there[i]) continue;
            atomicAdd(counts + edges.edge[i], 1u);
            sources[edges.edge[i]] = edges.src[i];
        }
    }
    void flush() { __syncwarp(); }
};
"""
OPERATOR = """
struct Op{number} {{
    static constexpr bool FROM_QUEUE = {queue}, CLEARS_MARKS = {clears};
    static constexpr Index SKIP_EDGES = {skip}, FIRST_EDGES = {first};
}};
"""
ENTRY = """
extern "C" void {name}(Index* control, const Id* queue, Index begin, Index end, Word32* front, const Index* indptr,
                       Id* piece_sources, Word32* piece_numbers, Index num_pieces, Index max_degree,
                       Index* ledger_entries, Index ledger_capacity, Index num_edges, Word32* counts, Id* sources) {{
    host::run({blocks}, BLOCK_WARPS * WARP, [=] {{
        Index generation = load_acquire(control + GENERATION);
        const Pieces<Id> pieces{{piece_sources, piece_numbers, num_pieces, max_degree}};
        const Ledger ledger{{ledger_entries, ledger_entries + ledger_capacity, ledger_capacity, max_degree}};
        for (int turn = 0; turn < {pushes}; turn++) {{
            Visits visit{{num_edges, counts, sources}};
            {push}(visit, control, generation, queue, begin, end, front, indptr, {needed});
            meet(control, generation, [](Index* control) {{ if (threadIdx.x == 0) control[NUM_PIECES] = 0; }});
        }}
    }});
}}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return build_grid(tmp_path_factory.mktemp("push"), SOURCE, "\n".join([DRIVER, *_entries()]))


def _entries():
    """The operators, and a function for each way to deal the edges of each."""
    for number, (queue, clears, skip, first) in enumerate(OPERATORS.values()):
        yield OPERATOR.format(number=number, queue=queue, clears=clears, skip=skip, first=first)
        for balance, (push, needed) in BALANCES.items():
            yield ENTRY.format(name=entry_name(balance, number), blocks=NUM_BLOCKS, pushes=NUM_PUSHES,
                               push=push.format(op=f"Op{number}"), needed=needed)  # fmt: skip


def entry_name(balance, number):
    return f"push_{balance.replace('-', '_')}_{number}"


def many_lengths(random):
    """None, some around the powers of two, and some hubs."""
    powers = 2 ** random.integers(0, 9, 150) + random.integers(-1, 2, 150)
    return np.concatenate([np.zeros(60), powers, random.integers(0, 6, 150), [1023, 1024, 1025, 2500]])


LENGTHS = {
    "many": many_lengths,
    "up to 1": lambda random: random.integers(0, 2, 300),
    "up to 5": lambda random: random.integers(0, 6, 300),
    "up to 8": lambda random: random.integers(0, 9, 300),
}


def random_lists(lengths, seed):
    """Offsets of lists of some lengths."""
    random = np.random.default_rng(seed)
    return np.concatenate([[0], np.cumsum(random.permutation(LENGTHS[lengths](random)))]).astype(np.int64)


FRONTIERS = {
    "most": lambda random, count: random.permutation(count)[: count * 3 // 4],
    "few": lambda random, count: random.permutation(count)[:5],
    "one": lambda random, count: random.integers(0, count, 1),
    "none": lambda random, count: np.empty(0),
    "several times": lambda random, count: np.tile(random.permutation(count), 2),
}


def test_every_name_has_a_way():
    assert tuple(BALANCES) == AXES["load_balance"]


@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("frontier", FRONTIERS)
@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("balance", AXES["load_balance"])
def test_every_edge_is_visited_once(balance, operator, frontier, lengths, library):
    queue, clears, skip, first = OPERATORS[operator]
    indptr = random_lists(lengths, len(frontier))
    num_vertices = len(indptr) - 1
    chosen = FRONTIERS[frontier](np.random.default_rng(1), num_vertices).astype(np.int32)
    if queue == "false":
        chosen = np.arange(min(len(chosen), num_vertices), dtype=np.int32)
    push = library[entry_name(balance, list(OPERATORS).index(operator))]
    counts, sources, front, ledger, control = run(push, indptr, chosen, queue == "true")
    owners = np.repeat(np.arange(num_vertices), np.diff(indptr))
    in_list = np.arange(indptr[-1]) - indptr[owners]
    is_there = (in_list >= skip) & ((in_list < skip + first) | (first < 0))
    expected = NUM_PUSHES * is_there * np.bincount(chosen, minlength=num_vertices)[owners]
    np.testing.assert_array_equal(counts, expected)
    np.testing.assert_array_equal(sources, np.where(expected > 0, owners, -1))
    assert control[EDGES] == expected.sum()
    assert balance == "merge-path" or not ledger[num_vertices:].any()
    cleared = np.unique(chosen // 32) if clears == "true" else []
    np.testing.assert_array_equal(front, np.where(np.isin(np.arange(len(front)), cleared), 0, -1))


def run(push, indptr, chosen, is_queued):
    """Push from some vertices; return what is there afterwards."""
    num_vertices, num_edges = len(indptr) - 1, indptr[-1]
    before = 7 if is_queued else 0  # entries of the queue that are no vertices
    queue = np.concatenate([np.full(before, -1, np.int32), chosen])
    control, front = np.zeros(SOURCE.control_length, np.int64), np.full(num_vertices // 32 + 1, -1, np.int32)
    pieces = np.empty((2, NUM_PIECES), np.int32)
    ledger = np.zeros(num_vertices + 2 * NUM_BINS, np.int64)
    counts, sources = np.zeros(num_edges, np.int32), np.full(num_edges, -1, np.int32)
    given = (control, queue, before, len(queue), front, indptr, pieces[0], pieces[1], NUM_PIECES,
             np.diff(indptr).max(), ledger, num_vertices, num_edges, counts, sources)  # fmt: skip
    push(*map(as_argument, given))
    return counts, sources, front, ledger, control
