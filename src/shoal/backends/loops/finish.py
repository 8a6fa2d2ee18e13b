# SPDX-License-Identifier: Apache-2.0
"""Write the serial end of a superstep for one phase, from its template."""

from __future__ import annotations

from shoal.backends.loops import superstep
from shoal.backends.loops.specialize import Specializer, specialize
from shoal.backends.loops.writer import PhaseWriter

_SUPERSTEP_TEMPLATES = (
    "write_trace", "local_reason", "slack", "next_direction", "bound_output", "agree_with_others", "is_over",
    "adopt_queue", "adopt_buckets", "adopt_output", "take_level", "choose_direction", "finish",
)  # fmt: skip


def write_finish(writer: PhaseWriter, *, counts_apart: bool = False) -> None:
    """Write the functions of the serial end of the superstep; the last of them, ``finish``, calls the others.

    With ``counts_apart`` there is ``settle_room`` as well, for when all threads have counted the frontier's edges.
    """
    phase, flow = writer.phase, writer.flow
    producer = flow.producer(flow.result)
    direction = "push" if producer is None else producer.options.get("direction", "push")
    options = {
        "HAS_OUTPUT": producer is not None or (flow.result is not None and flow.result.kind == "all"),
        "IS_ORDERED": flow.ordered is not None,
        "HAS_UNTIL": phase.until is not None,
        "IS_SLIDING": flow.is_sliding,
        "KEEP": phase.keep,
        "HAS_BOTH": flow.needs_queue,
        "IS_REPLAY": phase.begin == "replay",
        "CAN_PULL": direction == "auto",
        "ALWAYS_PULLS": direction == "pull",
        "IS_MARKED": flow.is_marked(flow.result),
        "IS_SHARDED": writer.sharing is not None,
        "GROWS": flow.grows,
        "COUNTS_APART": counts_apart,
        "HAS_REGIONS": bool(flow.regions),
    }
    shared = ("world",) if writer.sharing is not None else ()
    until = {"UNTIL": writer.call(phase.until, is_serial=True) if phase.until else False}
    for template in (*_SUPERSTEP_TEMPLATES, *(["settle_room"] if counts_apart else [])):
        state = writer.state(phase.until) if template == "finish" else []
        specializer = Specializer(until, {}, options, state, shared=shared)
        writer.parts.append("@inner()\n" + specialize(superstep, template, specializer))
