# SPDX-License-Identifier: Apache-2.0
"""Template of the serial end of a superstep: what one thread does while the others wait.

It writes the superstep's row of the trace, makes the output the next frontier, chooses the direction, and decides
whether the loop goes on.  Direction: the estimates of Gunrock's multi-GPU paper, section VI-A; with Q the frontier,
P the visited and U the unvisited vertices, forward work FV = |Q| |E| / |V| and backward work BV = |U| |V| / |P|; push
turns to pull when FV > BV do_a, once, and back when FV < BV do_b.
"""

from __future__ import annotations

import numpy as np

from shoal.backends.base import Reason
from shoal.backends.loops.control import (
    BEGIN,
    BUDGET,
    BYTES_SENT,
    CEILING,
    COMBINED,
    COMBINING,
    CURRENT,
    DEVICE,
    DIRECTION,
    EDGES,
    END,
    HAS_BITMAP,
    HAS_PULLED,
    HAS_PULLED_LAST,
    HAS_QUEUE,
    HAS_SPILLED,
    HISTORY,
    IDLE,
    INTERMEDIATE,
    IS_POSTED,
    ITEMS_SENT,
    LOCAL_SIZE,
    MAX_DEGREE,
    MAX_SUPERSTEPS,
    MESSAGES,
    NEEDED,
    NEVER,
    NUM_EDGES,
    NUM_LOCAL,
    NUM_VERTICES,
    NUM_VISITED,
    OUT_BASE,
    OUTPUT,
    PACKING,
    POSTED_NEEDED,
    POSTED_REASON,
    POSTED_SIZE,
    POSTED_SLACK,
    PULL,
    PUSH,
    REASON,
    ROOM,
    SIZE,
    SPILLED,
    STARTED,
    STEALING,
    STOLEN,
    STOP,
    SUPERSTEP,
    SWAPPED,
    TELLS,
    TELLS_POSTED,
    TRACE_ROWS,
    UNLIMITED,
    WORLD_DEVICES,
)
from shoal.backends.loops.hooks import (
    ALWAYS_PULLS,
    CAN_PULL,
    COUNTS_APART,
    GROWS,
    HAS_BOTH,
    HAS_OUTPUT,
    HAS_REGIONS,
    HAS_UNTIL,
    IS_MARKED,
    IS_ORDERED,
    IS_REPLAY,
    IS_SHARDED,
    IS_SLIDING,
    KEEP,
    UNTIL,
    load,
    meet,
    nanoseconds,
    posted,
    store,
    world,
)


def finish(control, trace, levels, knobs, queue, indptr, STATE, SHARED):
    """End the superstep; called by one thread between arrive and release."""
    write_trace(control, trace)
    reason = local_reason(control, trace)
    control[SUPERSTEP] += 1
    control[SWAPPED] ^= 1
    size = control[OUTPUT]
    if IS_REPLAY:
        take_level(control, levels)
        size = control[LOCAL_SIZE]
    room = np.int64(UNLIMITED)
    if GROWS:
        # Of an output that did not fit, not all is there.
        is_whole = reason < Reason.STOPPED
        control[NEEDED] = bound_output(control, knobs, queue, indptr) if is_whole else control[NUM_LOCAL]
        room = slack(control)
    if IS_SHARDED:
        size, reason, room = agree_with_others(control, world, size, reason, room)
    if IS_REPLAY:
        control[SIZE] = size
    elif IS_ORDERED:
        adopt_buckets(control, size)
    elif HAS_OUTPUT:
        adopt_output(control, levels, size)
    if CAN_PULL:
        choose_direction(control, knobs)
    pulls = ALWAYS_PULLS or (CAN_PULL and control[DIRECTION] == PULL)
    if GROWS and control[NEEDED] > room and (HAS_BOTH or not pulls):
        reason = max(reason, np.int64(Reason.NEEDS_MEMORY))
    if reason < Reason.STOPPED:
        is_last = control[SUPERSTEP] >= control[MAX_SUPERSTEPS] or (HAS_UNTIL and UNTIL())
        is_waiting = IS_ORDERED and reason == Reason.NEEDS_MEMORY
        if is_last or (not is_waiting and is_over(control)):
            reason = Reason.DONE
    control[REASON] = reason


def local_reason(control, trace):
    """Return why this device cannot go on with the next superstep at once, if it cannot."""
    if load(control, STOP) != 0:
        return load(control, STOP)
    if IS_ORDERED and load(control, SPILLED) != 0:
        return np.int64(Reason.NEEDS_MEMORY)
    if control[STARTED] >= control[BUDGET] or control[TRACE_ROWS] == trace.shape[0]:
        return np.int64(Reason.BUDGET)
    return np.int64(Reason.RUNNING)


def bound_output(control, knobs, queue, indptr):
    """Return how many vertices an operator may put out of the next frontier: not more than this has edges.

    Edges are counted only where so many vertices with the most edges of all would not do, and a push will need them;
    one of several devices does not know that yet.  Where they are counted apart, all vertices count as those with the
    most edges, and `settle_room` has the last word.
    """
    size = control[OUTPUT]
    if COUNTS_APART:
        is_listed = HAS_BOTH or not (ALWAYS_PULLS or (CAN_PULL and control[DIRECTION] == PULL))
        return size * max(control[MAX_DEGREE], 1) if is_listed else control[NUM_LOCAL]
    if control[ROOM] >= control[CEILING]:
        return control[NUM_LOCAL]
    pulls = ALWAYS_PULLS or (CAN_PULL and (HAS_BOTH or control[DIRECTION] == PULL))
    if CAN_PULL and not IS_SHARDED:
        pulls = pulls or next_direction(control, knobs, size, control[NUM_VISITED] + size) == PULL
    if pulls:
        return control[NUM_LOCAL]
    if size * control[MAX_DEGREE] <= slack(control):
        return size * max(control[MAX_DEGREE], 1)
    num_edges = np.int64(0)
    for position in range(control[OUT_BASE], control[OUT_BASE] + size):
        vertex = np.int64(queue[position])
        num_edges += np.int64(indptr[vertex + 1]) - np.int64(indptr[vertex])
    return max(num_edges, size)


def settle_room(control, trace, num_edges):
    """Say anew whether the next superstep needs memory: so many edges leave its frontier, which is a queue.

    No more vertices than edges come of it, in a push or a pull; one that makes a bitmap only needs no room at all.
    """
    control[NEEDED] = max(num_edges, control[LOCAL_SIZE])
    pulls = CAN_PULL and not HAS_BOTH and control[DIRECTION] == PULL
    if pulls or control[NEEDED] <= slack(control):
        control[REASON] = local_reason(control, trace)


def slack(control):
    """Return how many vertices an output has room for behind the next frontier; any number, if it cannot get more."""
    if control[ROOM] >= control[CEILING]:
        return np.int64(UNLIMITED)
    if not IS_SLIDING:
        return control[ROOM]
    free = control[INTERMEDIATE] - control[OUT_BASE] - control[OUTPUT]
    return min(free, control[ROOM]) if HAS_REGIONS else free


def agree_with_others(control, world, size, reason, room):
    """Return the size of the next frontier on all devices, the most pressing of their reasons, and the least room.

    What a device puts out comes from the others' frontiers too: it needs room for what all of them may find.
    """
    if control[IS_POSTED] != 0:
        meet(control, world)
    device = control[DEVICE]
    store(world, posted(world, device, POSTED_SIZE), size)
    store(world, posted(world, device, POSTED_REASON), reason)
    if GROWS:
        store(world, posted(world, device, POSTED_NEEDED), control[NEEDED])
        store(world, posted(world, device, POSTED_SLACK), room)
    control[TELLS] = TELLS_POSTED
    meet(control, world)
    total = np.int64(0)
    needed = np.int64(0)
    for other in range(world[WORLD_DEVICES]):
        total += load(world, posted(world, other, POSTED_SIZE))
        reason = max(reason, load(world, posted(world, other, POSTED_REASON)))
        if GROWS:
            needed += load(world, posted(world, other, POSTED_NEEDED))
            room = min(room, load(world, posted(world, other, POSTED_SLACK)))
    control[IS_POSTED] = 1
    if GROWS:
        control[NEEDED] = needed
    return total, reason, room


def is_over(control):
    """Whether nothing is left to do."""
    if IS_ORDERED:
        return control[CURRENT] == NEVER
    if IS_REPLAY:
        return control[HISTORY] == 0
    return HAS_OUTPUT and control[SIZE] == 0


def write_trace(control, trace):
    """Add this superstep's row; reset its counter of edges."""
    row = control[TRACE_ROWS]
    now = nanoseconds()
    # All is loaded before anything is stored: a compiler cannot know that a trace is no control block.
    started, size, edges, output = control[STARTED], control[LOCAL_SIZE], control[EDGES], control[OUTPUT]
    direction = PULL if ALWAYS_PULLS else control[DIRECTION]
    messages, items, num_bytes = control[MESSAGES], control[ITEMS_SENT], control[BYTES_SENT]
    combined, idle, stolen = control[COMBINED], control[IDLE], control[STOLEN]
    packing, combining, stealing = control[PACKING], control[COMBINING], control[STEALING]
    trace[row, 0] = started
    trace[row, 1] = now
    trace[row, 2] = size
    trace[row, 3] = edges
    trace[row, 4] = direction
    trace[row, 5] = output
    trace[row, 6] = messages
    trace[row, 7] = items
    trace[row, 8] = num_bytes
    trace[row, 9] = combined
    trace[row, 10] = idle
    trace[row, 11] = packing
    trace[row, 12] = combining
    trace[row, 13] = stolen
    trace[row, 14] = stealing
    if IS_SHARDED:
        control[MESSAGES] = 0
        control[ITEMS_SENT] = 0
        control[BYTES_SENT] = 0
        control[IDLE] = 0
        control[PACKING] = 0
        control[COMBINING] = 0
        control[STOLEN] = 0
        control[STEALING] = 0
        store(control, COMBINED, 0)
    control[TRACE_ROWS] = row + 1
    control[STARTED] = now
    store(control, EDGES, 0)
    if not HAS_OUTPUT:
        store(control, OUTPUT, 0)


def adopt_output(control, levels, size):
    """Make the output the frontier: a queue after a push, a bitmap after a pull, both where both were written."""
    control[LOCAL_SIZE] = control[OUTPUT]
    store(control, OUTPUT, 0)
    control[SIZE] = size
    control[NUM_VISITED] += size
    pulled = ALWAYS_PULLS or (CAN_PULL and control[DIRECTION] == PULL)
    control[HAS_BITMAP] = 1 if pulled or IS_MARKED else 0
    control[HAS_PULLED_LAST] = 1 if pulled else 0
    if pulled and not HAS_BOTH:
        control[HAS_QUEUE] = 0
    else:
        adopt_queue(control)
        if KEEP and size > 0:  # empty here, maybe, but not everywhere
            levels[control[HISTORY]] = control[BEGIN]
            control[HISTORY] += 1
            levels[control[HISTORY]] = control[END]


def adopt_buckets(control, size):
    """Make the blocks that were published the frontier; note whether vertices were spilled."""
    control[SIZE] = size
    control[LOCAL_SIZE] = control[OUTPUT]
    store(control, OUTPUT, 0)
    control[HAS_SPILLED] = control[SPILLED]
    store(control, SPILLED, 0)


def adopt_queue(control):
    """Make what lies at OUT_BASE the frontier's queue and move OUT_BASE behind it, or to the other half."""
    control[BEGIN] = control[OUT_BASE]
    control[END] = control[BEGIN] + control[LOCAL_SIZE]
    if IS_SLIDING:
        control[OUT_BASE] = control[END]
    else:
        control[OUT_BASE] = 0 if control[BEGIN] > 0 else control[ROOM]
    control[HAS_QUEUE] = 1


def take_level(control, levels):
    """Make the last kept frontier the current one."""
    control[HISTORY] -= 1
    control[LOCAL_SIZE] = 0
    if control[HISTORY] > 0:
        control[BEGIN] = levels[control[HISTORY] - 1]
        control[END] = levels[control[HISTORY]]
        control[LOCAL_SIZE] = control[END] - control[BEGIN]


def choose_direction(control, knobs):
    """Turn to where the next superstep has less to do."""
    control[DIRECTION] = next_direction(control, knobs, control[SIZE], control[NUM_VISITED])
    if control[DIRECTION] == PULL:
        control[HAS_PULLED] = 1


def next_direction(control, knobs, size, visited):
    """Compare the forward with the backward estimate for a frontier of some size.

    Both are multiplied by the vertices and by those visited: one thread of a GPU would divide for longer than it takes
    all others to meet.
    """
    num_vertices = control[NUM_VERTICES]
    forward = np.float64(size) * control[NUM_EDGES] * max(visited, 1)
    backward = np.float64(num_vertices - visited) * num_vertices * num_vertices
    if control[DIRECTION] == PULL:
        return PUSH if forward < backward * knobs[1] else PULL
    return PULL if control[HAS_PULLED] == 0 and forward > backward * knobs[0] else PUSH
