# SPDX-License-Identifier: Apache-2.0
"""The control block: how the threads of one device agree on where a run stands.

One int64 array per run.  Slots that several threads write at once (atomically) have a cache line each; the slots of the
*serial* part are written by one thread only, between `arrive` and `release` of the barrier, and read by all after it.
"""

from __future__ import annotations

LINE = 8  # int64 per 64-byte cache line

# Written atomically by any thread.
ARRIVED = 0 * LINE
GENERATION = 1 * LINE
STOP = 2 * LINE  # end the run at the next chance, with this reason
ABANDONED = STOP + 1  # set from Python: not all threads will arrive at the next barrier
EDGES = 3 * LINE  # edges looked at in this superstep
OUTPUT = 4 * LINE  # entries appended to the output queue, or bits set in the output bitmap
SPILLED = 5 * LINE  # entries that found no room in the buckets and wait in the spill bitmap
LOWEST = 6 * LINE  # lowest bucket that still has entries
ENTERED = 7 * LINE  # entries published for the next superstep
BLOCKS_USED = 8 * LINE  # blocks of the arena that have been handed out
BORDER = 9 * LINE  # vertices listed for other devices
COMBINED = 10 * LINE  # values received from other devices in this superstep

# Written by the last thread to arrive.
_SERIAL = 11 * LINE
REASON = _SERIAL + 0
SUPERSTEP = _SERIAL + 1
DIRECTION = _SERIAL + 2
HISTORY = _SERIAL + 3  # frontiers kept so far
BEGIN = _SERIAL + 4  # the frontier is queue[BEGIN:END]
END = _SERIAL + 5
SIZE = _SERIAL + 6  # vertices of the frontier, on all devices
OUT_BASE = _SERIAL + 7  # where the next frontier is written
NUM_VISITED = _SERIAL + 8  # vertices that have been in a frontier
HAS_PULLED = _SERIAL + 9  # the one switch from push to pull has been used
TRACE_ROWS = _SERIAL + 10
BUDGET = _SERIAL + 11  # clock at which to return to Python
HAS_SPILLED = _SERIAL + 12  # vertices wait in the spill bitmap
SWAPPED = _SERIAL + 13  # buffers toggled an odd number of times
STARTED = _SERIAL + 14  # clock at the start of this superstep
CURRENT = _SERIAL + 15  # bucket being emptied; FIRST before any is known, NEVER when none has entries
NUM_PUBLISHED = _SERIAL + 16  # blocks published for this superstep
NUM_VERTICES = _SERIAL + 17  # of the whole graph
NUM_EDGES = _SERIAL + 18
MAX_SUPERSTEPS = _SERIAL + 19
HAS_QUEUE = _SERIAL + 20  # the frontier is in queue[BEGIN:END]
HAS_BITMAP = _SERIAL + 21  # the frontier is in the bitmap
INTERMEDIATE = _SERIAL + 22  # where the room for frontiers ends and that for intermediate ones begins
HAS_PULLED_LAST = _SERIAL + 23  # the superstep before was a pull: its input bitmap is not clear
PUBLISHED_AT = _SERIAL + 24  # where in ``published`` the blocks of this superstep begin
DEVICE = _SERIAL + 25  # this device's number
NUM_LOCAL = _SERIAL + 26  # vertices that the device has, of its own or copies
NUM_OWNED = _SERIAL + 27
LOCAL_SIZE = _SERIAL + 28  # vertices of the frontier, on this device
MESSAGES = _SERIAL + 29  # sent in this superstep, as are the next two
ITEMS_SENT = _SERIAL + 30
BYTES_SENT = _SERIAL + 31
IDLE = _SERIAL + 32  # nanoseconds that the device waited for others in this superstep
SHARES_OWN = _SERIAL + 33  # other devices want to know of this device's own vertices that joined, too
ROOM = _SERIAL + 34  # entries of the queue that an operator's output has
CEILING = _SERIAL + 35  # the most it may be given
CAPACITY = _SERIAL + 36  # vertices that an output may have: more than the room, or all there are, is an error
QUEUE_END = _SERIAL + 37  # the same for frontiers that lie one behind the other: where they must end
NEEDED = _SERIAL + 38  # vertices that an operator of the next superstep may put out
MAX_DEGREE = _SERIAL + 39  # edges of one vertex on this device, at most
# Devices have not met since others may have begun to read what this one
IS_READING = _SERIAL + 40  # has in its mail,
IS_POSTED = _SERIAL + 41  # has posted of itself,
IS_REDUCED = _SERIAL + 42  # has posted of a scalar.
# Of work without supersteps:
WORK_ITEMS = _SERIAL + 43  # vertices visited
ITEMS_RECEIVED = _SERIAL + 44
LISTED_BEGIN = _SERIAL + 45  # which of the copies ever listed for other devices are still to be sent
LISTED_END = _SERIAL + 46
JITTER = _SERIAL + 47  # a random number if the device is to dawdle now and then, as tests want it to; else 0
# Where there are several devices, in this superstep:
PACKING = _SERIAL + 48  # nanoseconds that the device packed what it sent,
COMBINING = _SERIAL + 49  # and combined what it received
SINCE = _SERIAL + 50  # clock at the begin of either, or of edges visited in the place of others
STOLEN = _SERIAL + 51  # edges visited in the place of other devices
DEALT_AT = _SERIAL + 52  # where in the queue the part of the frontier begins that other devices visit
DEALS_FROM = _SERIAL + 53  # edges that the frontiers of all devices have together where it pays to deal
TELLS = _SERIAL + 54  # what devices of other processes must be told when the device meets the others next
ROUND = _SERIAL + 55  # and in which round of an exchange
STEALING = _SERIAL + 56  # nanoseconds that the device visited edges in the place of others in this superstep
ROWS_COME = _SERIAL + 57  # the rows of vertices that others give away come along, as they do not lie in this memory
BY_PLACE = _SERIAL + 58  # a push finds the row of a vertex by its place in the mail

OUTPUTS = _SERIAL + 8 * LINE  # a line per operator: the length of an output that does not leave the step


def control_size(num_operators: int) -> int:
    """Return the length of the control block of a phase with so many operators."""
    return OUTPUTS + LINE * num_operators


UNLIMITED = 2**62  # more than anything that is counted
NEVER = 2**62  # beyond every priority
FIRST = -(2**62)  # before every priority


PUSH = 0
PULL = 1
NO_SUPERSTEPS = 2  # in the trace: the row is about all that a device did

# Columns of the trace, one row a superstep.
TRACE_BEGIN = 0
TRACE_END = 1
TRACE_FRONTIER = 2
TRACE_EDGES = 3
TRACE_DIRECTION = 4
TRACE_OUTPUT = 5
TRACE_MESSAGES = 6
TRACE_ITEMS_SENT = 7
TRACE_BYTES_SENT = 8
TRACE_COMBINED = 9
TRACE_IDLE = 10
TRACE_PACKING = 11
TRACE_COMBINING = 12
TRACE_STOLEN = 13
TRACE_STEALING = 14
NUM_TRACE_COLUMNS = 15

# The block that all devices of a run share.
WORLD_ARRIVED = 0 * LINE
WORLD_GENERATION = 1 * LINE
WORLD_THRESHOLD = WORLD_GENERATION  # without supersteps: the highest priority that is visited
WORLD_ABANDONED = 2 * LINE
WORLD_SPINS = 3 * LINE + 0  # how often to look before a core is given away
WORLD_DEVICES = 3 * LINE + 1
WORLD_ROUTED = 3 * LINE + 2  # a device is sent only what concerns it
WORLD_FORWARDS = 3 * LINE + 3
WORLD_ROUNDS = 3 * LINE + 4
WORLD_MEETING = 3 * LINE + 5  # who meets here: the devices, and whoever speaks for those of other processes
WORLD_LEFT = 3 * LINE + 6  # all threads have come back from their loops
WORLD_ROWS = 4 * LINE  # a line per device: what it posts for the others
POSTED_SIZE = 0
POSTED_REASON = 1
POSTED_LOWEST = 2
POSTED_LISTED = 3  # of the items for all, those that are not the sender's own vertices; they come first
POSTED_NEEDED = 4
POSTED_SLACK = 5
POSTED_MET = 6  # on a GPU: how often the device has met others,
POSTED_LEFT = 7  # and whether an advance by priority has left it anything
# Where devices of a CPU may hand their parts over:
POSTED_WORK = 6  # edges and vertices that the device had to do with in the superstep,
POSTED_WORKED = 7  # and nanoseconds that it did not wait for others
# Without supersteps there are, beside POSTED_LOWEST:
POSTED_STATE = 0  # counts up as the device becomes idle (odd) and busy again
POSTED_ITEMS_SENT = 3
POSTED_ITEMS_RECEIVED = 4
POSTED_WINDOW = 5  # on a GPU: the priorities that the next rise of the threshold should take in

# What a meeting is for, beside being one: TELLS.
TELLS_NOTHING = 0
TELLS_POSTED = 1  # the devices' lines
TELLS_TOTALS = 2  # their parts of scalars
TELLS_BITS = 3  # a round's bitmaps
TELLS_LOADS = 4  # the edges of the devices' frontiers
TELLS_DEALT = 5  # vertices that they give away
TELLS_MAIL = 6  # and on: a round's items, of the exchange of that number

FORWARDS_OWN = 0
FORWARDS_ALL = 1
FORWARDS_LAST = 2
FORWARDS = {"own": FORWARDS_OWN, "all": FORWARDS_ALL, "last": FORWARDS_LAST}  # as a schedule says it


def world_size(num_devices: int) -> int:
    """Return the length of the block that so many devices share.

    Behind their lines are items by sender and receiver, and likewise the bytes sent in the phase; where all are told
    the same, what each receiver got, by sender and round.
    """
    return WORLD_ROWS + num_devices * LINE + 2 * num_devices * num_devices
