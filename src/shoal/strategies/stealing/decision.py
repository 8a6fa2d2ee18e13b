# SPDX-License-Identifier: Apache-2.0
"""A decision about stealing: who processes what, why, and what the cost model expects of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class Decision:
    """Who processes whose edges, and which devices take part.

    Parameters
    ----------
    shares : int64; ``shares[i, j]`` edges of device i are processed by device j
    owners : int64; device i's edges are processed by device ``owners[i]`` but for those that are stolen: by itself, or
        if it does not take part, by the one that has taken it over
    seconds_before, seconds_after : modelled time of the superstep without the decision, and with it; where the group
        is decided, both with thefts and with the time to meet
    """

    shares: np.ndarray
    owners: np.ndarray
    reason: str
    seconds_before: float
    seconds_after: float

    @property
    def members(self) -> list[int]:
        """The devices that take part."""
        return np.flatnonzero(is_member(self.owners)).tolist()

    @property
    def thefts(self) -> list[tuple[int, int, int]]:
        """Victim, thief and number of edges of each theft."""
        stolen = self.shares.copy()
        stolen[np.arange(len(stolen)), self.owners] = 0
        return [(int(i), int(j), int(stolen[i, j])) for i, j in np.argwhere(stolen)]

    @property
    def stolen_edges(self) -> int:
        """Number of edges that somebody steals."""
        return sum(edges for _, _, edges in self.thefts)

    def to_dict(self) -> dict[str, Any]:
        """Return the decision as plain values, for a trace."""
        return {
            "reason": self.reason,
            "members": self.members,
            "owners": self.owners.tolist(),
            "thefts": [{"victim": i, "thief": j, "edges": edges} for i, j, edges in self.thefts],
            "stolen_edges": self.stolen_edges,
            "seconds_before": self.seconds_before,
            "seconds_after": self.seconds_after,
        }


def is_member(owners: np.ndarray) -> np.ndarray:
    """Return which devices take part: those that own themselves."""
    return owners == np.arange(owners.shape[-1])


def finish_times(shares: np.ndarray, costs: np.ndarray) -> np.ndarray:
    """Return when each device has processed what it is given: sum_i c_ij x_ij."""
    # An infinite cost counts only where there are edges.
    return (shares * np.where(shares > 0, costs, 0)).sum(axis=0)
