# SPDX-License-Identifier: Apache-2.0
"""Names that kernel templates use and the generator replaces.

A template in ``kernels/`` is an ordinary Python function over these names.  For every operator of a program the
generator copies the template into the generated module and replaces

- a call of a *hook*, such as ``RULE(src=src, dst=dst, edge=edge)``, by a call of the program's rule with the arguments
  the rule asks for;
- ``STATE`` in a parameter or argument list by the names of the program's fields;
- a *combiner*, such as ``COMBINE``, by a function written for the operator;
- an upper-case *option* by its value, so that the compiler drops the branches not taken.
"""

from __future__ import annotations

from typing import Any


def _hook(**arguments: Any) -> Any:
    raise TypeError("a hook exists only in templates")


def _function(*arguments: Any) -> Any:
    raise TypeError("a backend's own function exists only in templates")


RULE = GUARD = WHERE = PRIORITY = FINISH = UNTIL = KEY = CHOOSE = _hook
STORE = _hook  # keep the partial values of a block of vertices
FETCH = _hook  # ask for the state of a vertex at the other end of an edge that will be looked at soon
BEFORE = _hook  # the values that a push may change at a destination
CHANGED = _hook  # whether it has
PACK = _hook  # put a vertex's values into the mail
MERGE = _hook  # combine mail with a vertex's values; True if that changed any
ENTER = _hook  # let a vertex wait in its bucket
PACK_COPY = MERGE_COPY = _hook  # the same of what counts at copies: what a rule reads there
TAKE = _hook  # put mail in the place of a vertex's values
RESET = _hook  # empty a copy whose values have been sent
DIFFERS = _hook  # whether a vertex's values are other than they were noted
REMEMBER = _hook  # note a vertex's values for that
TAKE_UP = _hook  # what is computed at a vertex before its edges are visited
FILTER = _hook  # whether a vertex that joins is worth a visit
ON_SEND = ON_RECEIVE = _hook  # whether an item stays here or goes on
STATE: Any = None
# What a kernel takes beside that where there are several devices, and the names it then knows.
SHARED: Any = None
world: Any = None
owner: Any = None
dirty: Any = None
voices: Any = None
border: Any = None
address: Any = None
listed: Any = None
hops: Any = None
channels: Any = None
mail_at: Any = None
mail_room: Any = None
mail_ids: Any = None
# Functions of the backend that the end of a superstep calls.
load = store = nanoseconds = meet = posted = _function


def _combiner(*arguments: Any) -> Any:
    raise TypeError("a combiner exists only in templates")


# Written by the generator for the scalars a reduction goes into, and for the value a gather sums.
IDENTITY = COMBINE = ZERO = ADD = _combiner

IS_SHARDED = False  # there are several devices
IS_RENUMBERED = False  # and each has its own numbers for vertices, first for those it owns
HAS_GUARD = False  # the rule's first test can be asked of many edges before
IS_STRICT = False  # a vertex is let in only when its priority falls
HAS_PRIORITY = False  # work without supersteps goes by priority
HAS_ON_SEND = HAS_ON_RECEIVE = False  # whether rules say where an item goes
REACHES_ALL = False  # what is received may be combined at copies too
IS_DECIDED = False  # a combining rule says by itself whether a vertex joins
IS_CERTAIN = False  # what a rule says of a copy holds, whether values change at the owner or not
IS_REPLICATED = False  # what is to be sent on is found anew in every round
ANNOUNCES = False  # what is mirrored joins the receiver's frontier
ITEM_BYTES = 0  # of the values of one vertex in the mail
FROM_QUEUE = True  # the operator's vertices come from a queue; else they are begin..end themselves
ALL_SOURCES = False  # a pull from every vertex: no bitmap to look into
UNIQUE = False
IS_DEALT = False  # devices give vertices of the frontier to one another
CLEARS_MARKS = False  # a push clears the marks of the vertices it reads
HAS_WEIGHTS = False
HAS_WHERE = False
EARLY_EXIT = False
HAS_MARKS = False  # the vertices are marked in the bitmap that de-duplicates
HAS_OUTPUT = False
READS_ROWS = False  # a pull reads fields with a width at sources
HAS_BETWEEN = False  # an intersection's rule asks how many neighbours lead to a destination
SKIP_EDGES = 0
FIRST_EDGES = -1
HAS_UNTIL = False
IS_SLIDING = False  # all frontiers of the phase lie one behind the other in the queue
KEEP = False
HAS_BOTH = False  # a pull's output is turned into a queue as well
GROWS = False  # outputs begin with little room, and get more as frontiers need it
COUNTS_APART = False  # the edges of a frontier are counted by all threads, behind the end of the superstep
HAS_REGIONS = False  # some do not leave the step
IS_REPLAY = False  # the frontiers are those an earlier phase kept
CAN_PULL = False  # the direction is chosen every superstep
ALWAYS_PULLS = False
IS_ORDERED = False
IS_MARKED = False  # the output is marked in the bitmap
