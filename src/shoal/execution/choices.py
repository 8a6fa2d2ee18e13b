# SPDX-License-Identifier: Apache-2.0
"""Choices: what ``auto`` becomes where there are several devices, and what a program cannot do with.

As in Gunrock's multi-GPU paper, section III-C: a program whose rules look at neighbours only needs copies of these and
is told of its own vertices only; one that pulls from a frontier, or that looks farther than one edge, needs all
vertices and is told of all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from shoal.config import RunConfig
from shoal.errors import ArgumentError
from shoal.exchanges import Sharing


@dataclass(frozen=True)
class Choices:
    """The strategies of a run on several devices, none of them ``auto``; on one device there are none."""

    duplication: str | None = None
    communication: str | None = None
    reason: str = field(default="", compare=False)  # in words: why ``auto`` became these

    def resolved(self) -> dict[str, str]:
        """Return them by name; nothing on one device."""
        chosen = {"duplication": self.duplication, "communication": self.communication}
        return {axis: name for axis, name in chosen.items() if name is not None}


SINGLE = Choices()
_LOOKS_NEAR = "rules look at neighbours only: copies of these are enough, and a device is told of its own vertices"
_PULLS = "an advance may pull from its frontier, and asks of every vertex whether it is there"
_STEERED = "on_send and on_receive say whether an item goes on, from device to device"
_NEEDS_ALL = "every device must know every vertex"


# So many devices of a CPU have copies of all vertices without supersteps.  Ids then are the graph's, and so is the
# memory of the edges, where part by part they would be copied: two devices search road networks in a tenth less time,
# and copies of four devices are no more bytes than those edges, with five or more of them a vertex.
WHOLE_DEVICES = 4


def choose(sharings: list[Sharing], config: RunConfig, kind: str, num_devices: int) -> Choices:
    """Return the strategies for a program's phases on devices of a kind; refuse what it cannot do with."""
    needs_all = next((reason for sharing in sharings if (reason := sharing.reason_for_all()) is not None), None)
    pulls = any(sharing.pulls_from_frontier for sharing in sharings)
    if needs_all is not None:
        for axis, name in (("duplication", "one-hop"), ("communication", "selective")):
            if getattr(config, axis) == name:
                raise ArgumentError(f"{axis}={name!r} is not possible: {needs_all}; {_NEEDS_ALL}")
    communication, duplication = config.communication, config.duplication
    if any(sharing.is_steered for sharing in sharings):
        if communication not in ("auto", "ring"):
            raise ArgumentError(f"communication={communication!r} is not possible: {_STEERED}; allowed: auto, ring")
        if duplication == "one-hop":
            raise ArgumentError(f"duplication={duplication!r} is not possible: {_STEERED}; {_NEEDS_ALL}")
        communication = "ring"
    if communication == "auto":
        is_told_all = (needs_all is not None or pulls) and duplication != "one-hop"
        communication = "broadcast" if is_told_all else "selective"
    if duplication == "auto":
        is_whole = config.execution == "async" and kind == "cpu" and num_devices <= WHOLE_DEVICES
        duplication = "one-hop" if communication == "selective" and not is_whole else "all"
    reason = f"{needs_all}; {_NEEDS_ALL}" if needs_all is not None else _PULLS if pulls else _LOOKS_NEAR
    return Choices(duplication, communication, reason)
