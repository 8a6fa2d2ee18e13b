# SPDX-License-Identifier: Apache-2.0
"""The kernels by which GPU devices deal frontiers, run by the CPU: shares are whole, even, and where a sum says."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from cuda_grid import build_grid
from cuda_on_host import COMPILER
from shoal.algorithms.bfs import BFS
from shoal.backends.cuda.dealing import LINE, LINES
from shoal.backends.cuda.phases import load_phase
from shoal.backends.loops import control as slot

pytestmark = [
    pytest.mark.skipif(COMPILER is None, reason="needs g++ or clang++"),
    pytest.mark.host_only("for machines without a GPU"),
]

NUM_BLOCKS = 2
SOURCE = load_phase(BFS(), BFS().phases()[0], (np.dtype(np.int32), np.dtype(np.int64), None), "push").source
DRIVER = f"""
#include "dealing.cuh"
using namespace shoal;
using Id = int;

struct Op {{
    static constexpr bool FROM_QUEUE = true, CLEARS_MARKS = true;
    static constexpr Index SKIP_EDGES = 1, FIRST_EDGES = -1;
}};
extern "C" void deal(Index devices, Index* const* controls, Index* world, Index* const* rows, const Id* const* queues,
                     const Index* const* indptrs, Word32* const* marks) {{
    host::run({NUM_BLOCKS}, BLOCK_WARPS * WARP, [=] {{
        const Index device = blockIdx.y;
        Index* const control = controls[device];
        Border<Id> border{{}};
        border.control = control;
        border.world = world;
        border.device = device;
        border.devices = devices;
        const Dealing<Id, Index> dealing{{border, rows[device], rows, queues, indptrs}};
        Index generation = load_acquire(control + GENERATION);
        deal_frontier<Op>(control, generation, dealing, marks[device]);
    }}, static_cast<unsigned int>(devices));
}}
"""
FIRST, LAST = 1, 2
BEFORE = 5  # entries of a queue that are no frontier
#: Frontiers of the devices, by the lengths of the lists of their vertices.
FRONTIERS = {
    "one has nearly all": lambda random: [random.integers(0, 40, 70_000), random.integers(0, 40, 50), np.ones(3), []],
    "the last has all": lambda random: [[], [], random.integers(0, 9, 40_000)],
    "two give to three": lambda random: [random.integers(0, 60, size) for size in (30, 3000, 500, 2500, 1)],
    "many vertices without edges": lambda random: [random.integers(0, 50, 9000) // 49, [], np.zeros(2000)],
    "hubs": lambda random: [np.where(np.arange(3000) % 500 == 7, 4000, 2), np.full(100, 3), []],
    "a hub alone": lambda random: [[5000], [], []],
    "a hub behind others": lambda random: [np.r_[np.full(50, 3), 5000], [], []],
    "even": lambda random: [np.full(1000, 7), np.full(995, 7), np.full(1005, 7)],
    "nobody has any": lambda random: [[], [], []],
}


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return build_grid(tmp_path_factory.mktemp("dealing"), SOURCE, DRIVER)


def addresses(arrays):
    return (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))


class Frontier:
    """What a device has of its own: a frontier in its queue, and the lists of its vertices, with an edge to skip."""

    def __init__(self, device, degrees, num_devices, random):
        degrees = np.asarray(degrees, np.int64)
        count = len(degrees)
        self.order = random.permutation(count)
        self.degrees = degrees[self.order]
        self.indptr = np.concatenate([[0], np.cumsum(degrees + 1)])
        self.queue = np.concatenate([np.full(BEFORE, -1), self.order]).astype(np.int32)
        self.row = np.full(LINES + LINE * num_devices, 10**15)
        self.marks = np.full(count // 32 + 1, -1, np.int32)
        self.control = np.zeros(SOURCE.control_length, np.int64)
        self.control[slot.DEVICE], self.control[slot.DEALS_FROM] = device, 1
        self.control[slot.BEGIN], self.control[slot.END] = BEFORE, BEFORE + count

    @property
    def load(self):
        return int(self.degrees.sum())

    def cut(self, edges):
        """The number of vertices whose first edge is among so many; behind all edges, of all vertices."""
        firsts = np.cumsum(self.degrees) - self.degrees
        return len(firsts) if edges >= self.load else int(np.searchsorted(firsts, edges, side="left"))

    def share(self, owner):
        line = self.row[LINES + LINE * owner :]
        return int(line[FIRST]), int(line[LAST])


def expected_shares(frontiers):
    """Return for every owner and device where its part begins and ends, if all come to the mean."""
    loads = [each.load for each in frontiers]
    mean = sum(loads) // len(loads)
    lacking = np.cumsum([0, *(max(mean - load, 0) for load in loads)])
    above = np.minimum(np.cumsum([0, *(max(load - mean, 0) for load in loads)]), lacking[-1])
    if max(loads) - mean <= mean / 16:
        above[:] = 0
    shares = {}
    for owner, each in enumerate(frontiers):
        kept = each.load - (above[owner + 1] - above[owner])
        for device in range(len(loads)):
            begin, end = (max(min(lacking[device + i], above[owner + 1]), above[owner]) for i in (0, 1))
            first, last = (each.cut(kept + edge - above[owner]) for edge in (begin, end))
            part = (0, each.cut(kept)) if owner == device else (first, last)
            shares[owner, device] = tuple(BEFORE + place for place in part)
    return shares


@pytest.mark.parametrize("name", FRONTIERS)
def test_shares_are_whole_and_even(name, library):
    random = np.random.default_rng(1)
    lengths = FRONTIERS[name](random)
    frontiers = [Frontier(device, degrees, len(lengths), random) for device, degrees in enumerate(lengths)]
    world = np.zeros(slot.world_size(len(lengths)), np.int64)
    world[slot.WORLD_DEVICES] = len(lengths)
    lists = [[getattr(each, part) for each in frontiers] for part in ("control", "row", "queue", "indptr", "marks")]
    controls, *others = map(addresses, lists)
    library.deal(ctypes.c_longlong(len(lengths)), controls, ctypes.c_void_p(world.ctypes.data), *others)
    expected, visited = expected_shares(frontiers), np.zeros(len(lengths), int)
    for owner, each in enumerate(frontiers):
        shares = [frontiers[device].share(owner) for device in range(len(lengths))]
        taken = np.zeros(len(each.order), int)
        for device, (first, last) in enumerate(shares):
            if first < last or owner == device:
                assert (first, last) == expected[owner, device]
            taken[first - BEFORE : max(last, first) - BEFORE] += 1
            visited[device] += each.degrees[first - BEFORE : max(last, first) - BEFORE].sum()
        assert (taken == 1).all()
        given = each.order[shares[owner][1] - BEFORE :]
        words = np.arange(len(each.marks))
        np.testing.assert_array_equal(each.marks, np.where(np.isin(words, given // 32), 0, -1))
        assert each.control[slot.DEALT_AT] == shares[owner][1]
    longest = max(each.degrees.max(initial=0) for each in frontiers)
    mean = sum(each.load for each in frontiers) / len(frontiers)
    assert visited.sum() == sum(each.load for each in frontiers)
    assert visited.max() <= max(17 / 16 * mean + longest, mean + longest) + 1
    assert visited.max() <= max(each.load for each in frontiers)
