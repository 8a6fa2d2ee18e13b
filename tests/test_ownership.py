# SPDX-License-Identifier: Apache-2.0
"""Where atomics are left out: only for arrays that a rule writes at nothing but the vertex that is one thread's."""

import numpy as np
import pytest

from shoal import atomic, rule
from shoal.accesses import owned_arrays

pytestmark = pytest.mark.host_only("about code that is written for the CPU")


@rule
def add_at(place, label):
    atomic.add(label, place, 1)


@rule
def add_further_down(label, place):
    add_at(place, label=label)


@rule
def look_at(place, label):
    return label[place] + 1


@rule
def first_row(paths):
    return paths[0]


# Only at the vertex


@rule
def at_vertex(dst, label):
    atomic.add(label, dst, 1)
    label[dst] += 2
    label[dst] = np.int64(label[dst])


@rule
def reads_elsewhere(src, dst, label):
    nearest = label[src]
    nearest += 1
    nearest = min(nearest, np.sqrt(label[src]))
    atomic.min(label, dst, nearest + look_at(src, label))


@rule
def in_rows(src, dst, label):
    for k in range(4):
        atomic.add(label, (dst, k), label[src, k])


# Elsewhere too


@rule
def at_both_ends(src, dst, label):
    atomic.add(label, dst, 1)
    label[src] = 2


@rule
def at_a_moved_vertex(src, dst, label):
    dst = src
    atomic.add(label, dst, 1)


@rule
def in_a_loop_over_vertices(dst, label):
    for dst in range(3):
        atomic.add(label, dst, 1)


@rule
def in_a_called_rule(src, dst, label):
    atomic.add(label, dst, 1)
    add_at(src, label)


@rule
def in_a_rule_called_by_a_rule(src, dst, label):
    atomic.add(label, dst, 1)
    add_further_down(label, place=src)


@rule
def in_a_rule_by_another_name(src, dst, label):
    atomic.add(label, dst, 1)
    adding = add_at
    adding(src, label)


@rule
def under_another_name(src, dst, label):
    other = label
    atomic.add(label, dst, 1)
    atomic.add(other, src, 1)


@rule
def under_a_third_name(src, dst, label, share):
    other, _ = label, share
    third = other if src > 3 else share
    atomic.add(label, dst, 1)
    third[src] = 1


@rule
def through_a_row(src, dst, label):
    row = label[src]
    atomic.add(label, (dst, 0), 1)
    atomic.add(row, 0, 1)


@rule
def through_a_row_at_once(src, dst, label):
    atomic.add(label, (dst, 0), 1)
    label[src][0] = 1


@rule
def through_a_row_in_place(src, dst, label):
    row = label[src]
    atomic.add(label, (dst, 0), 1)
    row += 1


@rule
def through_a_row_from_a_rule(dst, label):
    atomic.add(label, (dst, 0), 1)
    first_row(label)[0] = 1


@rule
def through_every_row(dst, label):
    for row in label:
        row[0] = 1
    atomic.add(label, (dst, 0), 1)


@rule
def through_a_slice(dst, label):
    label[:] = 0
    atomic.add(label, dst, 1)


@rule
def through_a_method(dst, label):
    label.fill(0)
    atomic.add(label, dst, 1)


@rule
def through_a_function(dst, label, share):
    np.add(share, 1, label)
    atomic.add(label, dst, 1)


@rule
def under_its_name_another(src, dst, label, share):
    atomic.add(share, src, 1)
    label = share
    atomic.add(label, dst, 1)


OWNED = [at_vertex, reads_elsewhere, in_rows]
SHARED = [
    at_both_ends,
    at_a_moved_vertex,
    in_a_loop_over_vertices,
    in_a_called_rule,
    in_a_rule_called_by_a_rule,
    in_a_rule_by_another_name,
    under_another_name,
    under_a_third_name,
    through_a_row,
    through_a_row_at_once,
    through_a_row_in_place,
    through_a_row_from_a_rule,
    through_every_row,
    through_a_slice,
    through_a_method,
    through_a_function,
    under_its_name_another,
]


@pytest.mark.parametrize("used", OWNED, ids=lambda used: used.name)
def test_an_array_written_only_at_the_vertex(used):
    assert owned_arrays(used, "dst") == {"label"}


@pytest.mark.parametrize("used", SHARED, ids=lambda used: used.name)
def test_an_array_that_may_be_written_elsewhere(used):
    assert owned_arrays(used, "dst") == set()


@pytest.mark.parametrize("used", OWNED, ids=lambda used: used.name)
def test_where_no_vertex_is_one_thread_s(used):
    assert owned_arrays(used, None) == set()
