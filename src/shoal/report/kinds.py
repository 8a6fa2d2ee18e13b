# SPDX-License-Identifier: Apache-2.0
"""What the time of a device is made of: one table, by which the timeline, Perfetto and the tables go.

A kind is seconds per superstep and device under a key of the statistics.  Those that a run did not measure are not in
its trace, and are not drawn; what no key accounts for is work.  Within a superstep only sums are known, so its kinds
are drawn one behind the other in the order of this table.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shoal.report.trace import RunTrace


@dataclass(frozen=True)
class Kind:
    """Something that devices spend time on.

    Parameters
    ----------
    key : of its seconds in a superstep's statistics; none for what is left over
    color : from the palette of Okabe and Ito, which colour-blind people can tell apart
    """

    name: str
    key: str | None
    color: str
    shade: str  # of every other superstep, so that one sees where they end


WORK = Kind("work", None, "#0072B2", "#56B4E9")
IDLE = Kind("idle", "idle_seconds", "#E69F00", "#E69F00")
STEAL = Kind("steal", "steal_seconds", "#D55E00", "#D55E00")
KINDS = (
    WORK,
    STEAL,
    Kind("pack", "pack_seconds", "#009E73", "#009E73"),
    Kind("combine", "combine_seconds", "#CC79A7", "#CC79A7"),
    IDLE,
)


def measured_kinds(trace: RunTrace) -> list[Kind]:
    """Return the kinds that there is something of in a run."""
    return [kind for kind in KINDS if kind.key is None or trace.column(kind.key).any()]


def working_seconds(trace: RunTrace) -> np.ndarray:
    """Return the seconds spent along edges, whosever they are, by superstep and device."""
    return seconds_of(trace, WORK) + seconds_of(trace, STEAL)


def seconds_of(trace: RunTrace, kind: Kind) -> np.ndarray:
    """Return the seconds of one kind, by superstep and device."""
    if kind.key is not None:
        return trace.column(kind.key)
    others = [trace.column(other.key) for other in KINDS if other.key is not None]
    return np.maximum(trace.column("seconds") - sum(others), 0.0)
