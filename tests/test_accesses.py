# SPDX-License-Identifier: Apache-2.0
"""What a rule does to its arrays: read or written, at which of its vertices, or anywhere."""

import numpy as np
import pytest

from shoal import atomic, rule
from shoal.accesses import ANYWHERE, Access, contended_arrays, find_accesses, reads_elements_only

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


# What must be read anew each time: an array that atomics change, and that is read at vertices of the rule's own choice.


@rule
def hook(one, other, label):
    left, right = label[one], label[other]
    while left != right:
        high = max(left, right)
        if atomic.compare_exchange(label, high, high, min(left, right)):
            break
        left = label[label[high]]


@rule
def hook_ends(src, dst, label):
    hook(src, dst, label)


@rule
def shorten(vertex, label):
    while label[label[vertex]] != label[vertex]:
        label[vertex] = label[label[vertex]]


@rule
def root_of(vertex, label):
    while label[vertex] != vertex:
        vertex = label[vertex]
    return vertex


@rule
def hook_roots(src, dst, label):
    left = root_of(src, label)
    right = root_of(dst, label)
    return atomic.compare_exchange(label, max(left, right), max(left, right), min(left, right))


@rule
def hook_by_another_name(src, dst, label):
    parents = label
    return atomic.compare_exchange(label, parents[src], parents[src], parents[dst])


@rule
def hook_through_a_slice(src, dst, label):
    few = label[0:2]
    return atomic.compare_exchange(label, few[0], src, dst)


@pytest.mark.parametrize(
    ("given", "contended", "is_plain"),
    [
        (relax, set(), True),  # at the vertices that it is given
        (keep_parent, set(), True),
        (shorten, set(), True),  # without an atomic nobody tries again
        (hook, {"label"}, True),
        (hook_ends, {"label"}, True),
        (hook_roots, {"label"}, False),  # a rule reads it that does not know
        (hook_by_another_name, {"label"}, False),
        (hook_through_a_slice, {"label"}, False),
    ],
)
def test_contended_arrays(given, contended, is_plain):
    assert contended_arrays(given) == contended
    assert reads_elements_only(given, contended_arrays(given)) == is_plain
