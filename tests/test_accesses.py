# SPDX-License-Identifier: Apache-2.0
"""What a rule does to its arrays: read or written, at which of its vertices, or anywhere."""

import numpy as np
import pytest

from shoal import atomic, rule
from shoal.accesses import ANYWHERE, Access, find_accesses

pytestmark = pytest.mark.host_only("what rules touch is read from their source: nothing is run")


def read(array, place):
    return Access(array, place, reads=True)


def write(array, place):
    return Access(array, place, writes=True)


def both(array, place):
    return Access(array, place, reads=True, writes=True)


@rule
def relax(src, dst, weight, distance):
    return atomic.min(distance, dst, distance[src] + weight)


@rule
def keep_parent(src, dst, parent):
    parent[dst] = src


@rule
def add_up(vertex, total, rank):
    total[vertex] += rank[vertex]


@rule
def rows(src, dst, paths):
    for k in range(4):
        atomic.add(paths, (dst, k), paths[src, k])


@rule
def whole_rows(src, dst, paths, visit):
    atomic.add_row(paths, dst, paths[src], visit[src], 4)


@rule
def row_by_name(src, dst, paths):
    atomic.add_row(paths, dst, paths[src], 1, 4)
    row = paths[src]
    row[0] = 1


@rule
def jump(vertex, label):
    label[vertex] = label[label[vertex]]


@rule
def moved(src, dst, label):
    src = label[dst]
    label[src] = 0


@rule
def at(place, array):
    return array[place]


@rule
def put(array, place, number):
    array[place] = number


@rule
def through_others(src, dst, level):
    put(level, dst, at(src, level) + 1)


@rule
def through_others_by_name(src, dst, level):
    put(number=src, place=level[dst], array=level)


@rule
def by_row(src, dst, paths):
    row = paths[dst]
    row[0] = paths[src, 0]


@rule
def whole(level, targets):
    return np.sum(level) + len(targets)


CASES = {
    relax: {both("distance", "dst"), read("distance", "src"), read("weight", ANYWHERE)},
    keep_parent: {write("parent", "dst"), read("src", ANYWHERE)},
    add_up: {write("total", "vertex"), read("total", "vertex"), read("rank", "vertex")},
    rows: {write("paths", "dst"), read("paths", "src")},
    whole_rows: {write("paths", "dst"), read("paths", "src"), read("visit", "src")},
    row_by_name: {write("paths", "dst"), read("paths", "src"), write("paths", ANYWHERE)},
    jump: {write("label", "vertex"), read("label", "vertex"), read("label", ANYWHERE)},
    moved: {read("label", "dst"), write("label", ANYWHERE), read("src", ANYWHERE)},
    through_others: {write("level", "dst"), read("level", "src")},
    through_others_by_name: {write("level", ANYWHERE), read("level", "dst"), read("src", ANYWHERE)},
    by_row: {read("paths", "dst"), read("paths", "src"), write("paths", ANYWHERE)},
}


@pytest.mark.parametrize("which", CASES, ids=lambda r: r.name)
def test_accesses(which):
    assert find_accesses(which) == CASES[which]


def test_an_array_used_as_a_whole_is_read_and_maybe_written_anywhere_but_its_length_is_not_an_access():
    assert find_accesses(whole) == {read("level", ANYWHERE), write("level", ANYWHERE)}
