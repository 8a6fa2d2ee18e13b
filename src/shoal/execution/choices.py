# SPDX-License-Identifier: Apache-2.0
"""Choices: what ``auto`` becomes where there are several devices, and what a program cannot do with.

As in Gunrock's multi-GPU paper, section III-C: a program whose rules look at neighbours only needs copies of these and
is told of its own vertices only; one that pulls from a frontier, or that looks farther than one edge, needs all
vertices and is told of all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from shoal.backends.base import REGROUPS
from shoal.config import ONLY_ON, RESOLVED, RunConfig
from shoal.errors import ArgumentError
from shoal.exchanges import Sharing


@dataclass(frozen=True)
class Choices:
    """The strategies of a run on several devices, none of them ``auto``; on one device there are none."""

    duplication: str | None = None
    communication: str | None = None
    stealing: str | None = None
    reason: str = field(default="", compare=False)  # in words: why ``auto`` became these
    kept: str = field(default="", compare=False)  # in words: why no parts are handed over in a phase
    left: str = field(default="", compare=False)  # in words: why edges are not copied

    def resolved(self) -> dict[str, str]:
        """Return them by name; nothing on one device."""
        chosen = {"duplication": self.duplication, "communication": self.communication, "stealing": self.stealing}
        return {axis: name for axis, name in chosen.items() if name is not None}


SINGLE = Choices()
_LOOKS_NEAR = "rules look at neighbours only: copies of these are enough, and a device is told of its own vertices"
_PULLS = "an advance may pull from its frontier, and asks of every vertex whether it is there"
_STEERED = "on_send and on_receive say whether an item goes on, from device to device"
_NEEDS_ALL = "every device must know every vertex"
SEGMENT_REASON = "segments have as many edges each, and on a CPU none of these are copied"
_FEW_DEVICES = "without supersteps few devices of a CPU keep the graph's own ids, and its edges are not copied"
_ALONE = "the graph has few edges: the first device is done with all of them before several have met"
_MEMORY = {
    "fused": "only the run shows how many vertices a frontier has, and lists with room for all need never grow",
    "fixed": "the program makes no frontier whose size only the run would show",
}


# So many devices of a CPU have copies of all vertices without supersteps.  Ids then are the graph's, and so is the
# memory of the edges, where part by part they would be copied: two devices search road networks in a tenth less time,
# and copies of four devices are no more bytes than those edges, with five or more of them a vertex.
WHOLE_DEVICES = 4


def choose(sharings: list[Sharing], config: RunConfig, kind: str, num_devices: int, left: str = "") -> Choices:
    """Return the strategies for a program's phases on devices of a kind; refuse what it cannot do with.

    ``left`` says why edges should stay where they are, if they should.
    """
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
        is_whole = is_whole or config.stealing not in ("auto", "none") or left != ""
        duplication = "one-hop" if communication == "selective" and not is_whole else "all"
    reason = f"{needs_all}; {_NEEDS_ALL}" if needs_all is not None else _PULLS if pulls else _LOOKS_NEAR
    stealing = "none" if config.stealing == "auto" else config.stealing
    kept = [sharing.reason_to_keep for sharing in sharings] if stealing in REGROUPS else []
    return Choices(duplication, communication, stealing, reason, "; ".join(dict.fromkeys(filter(None, kept))), left)


def explain(
    config: RunConfig, kind: str, choices: Choices, memory: str, edges: str = "", *, is_alone: bool = False
) -> dict[str, str]:  # fmt: skip
    """Return why each strategy that was left to ``auto`` is what it is, by axis; what was asked for needs no reason.

    ``edges`` says how one can tell where these are, which nobody asks for.
    """
    is_async = config.execution == "async"
    reasons = {
        "devices": f"what SHOAL_DEVICES names, or cpu: {RESOLVED['devices']}",
        "execution": "supersteps suit most graphs; async is for those that need thousands of small ones",
        "priority": "no device runs far ahead of the others" if is_async else "a superstep visits its whole frontier",
        "memory": _MEMORY.get(memory, ""),
        "direction": "without supersteps there is only push" if is_async else
                     "superstep by superstep, by which way has fewer edges to look at, where the program has both",
        "load_balance": "by warps, and the edges of hubs by pieces that any warp takes" if kind == "cuda" else
                        ONLY_ON["load_balance"][1],
    }  # fmt: skip
    if choices.duplication is not None:
        is_whole = is_async and choices.duplication == "all" and choices.communication == "selective"
        reasons["partition"] = SEGMENT_REASON
        reasons["duplication"] = _FEW_DEVICES if is_whole else choices.reason
        if choices.left and choices.duplication == "all":
            reasons["partition"] = f"{SEGMENT_REASON}; {choices.left}"
            reasons["duplication"] = f"parts with the graph's own ids are slices of it; {choices.left}"
        reasons["communication"] = choices.reason
        meetings = "a meeting" if kind == "cuda" else "two meetings"
        reasons["stealing"] = f"where devices have equal work it costs {meetings} a superstep and gains nothing"
    explained = {axis: reason for axis, reason in reasons.items() if reason and _is_auto(config, axis)}
    noted = {"edges": edges, "stealing": f"devices keep their parts: {choices.kept}" if choices.kept else "",
             "devices": _ALONE if is_alone else ""}  # fmt: skip
    return explained | {axis: reason for axis, reason in noted.items() if reason}


def _is_auto(config: RunConfig, axis: str) -> bool:
    value = getattr(config, axis)
    return isinstance(value, str) and value == "auto"
