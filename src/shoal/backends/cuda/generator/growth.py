# SPDX-License-Identifier: Apache-2.0
"""Write what a kernel does before it comes back for memory: all its threads count the edges of the next frontier.

The end of a superstep, one thread's work, only knows that so many vertices with the most edges of all would not fit.
A hub makes that bound useless, and to go through a long frontier takes all threads.
"""

from __future__ import annotations

from shoal.backends.cuda.exports import Argument
from shoal.backends.cuda.generator.advance import reconsider
from shoal.backends.cuda.generator.writer import END, INT64, KernelWriter, meeting


def write_recount(writer: KernelWriter) -> list[str]:
    """Return the statements behind the end of a superstep; a frontier that is a bitmap only is not counted."""
    arguments = {
        "control": writer.control(),
        "trace": writer.trace(),
        "num_edges": Argument("control[FRONTIER_EDGES]", INT64),
    }
    settle = writer.serial_function("serial_settle_room", arguments, f"settle_room({', '.join(arguments)})", END)
    return [
        "if (control[REASON] == NEEDS_MEMORY && control[HAS_QUEUE] != 0) {",
        *_reconsider(writer),
        "count_frontier_edges(control, queue, indptr);",
        meeting(f"if (threadIdx.x == 0) {{ {settle} control[FRONTIER_EDGES] = 0; }}"),
        "}",
    ]


def _reconsider(writer: KernelWriter) -> list[str]:
    """Return what the next superstep would begin with: one that turns to pull, and makes no list, needs no memory."""
    flow = writer.flow
    producer = flow.producer(flow.result)
    may_turn = producer is not None and producer.options.get("direction") == "auto"
    return [reconsider(writer)] if may_turn and not flow.needs_queue else []
