# SPDX-License-Identifier: Apache-2.0
"""Stealing: which device processes whose edges in a superstep, and which devices take part at all.

Decisions only, as plain arrays: `share_frontier` and `choose_thefts` balance one superstep, `select` finds the vertices
that go, `choose_group` leaves out devices whose help is worth less than meeting them.  An engine carries them out.
Meng, Geng, Li, Tao, Yu, Zhou, *Efficient multi-GPU graph processing with remote work stealing* (GUM, 2023), sections
III to V.
"""

from shoal.strategies.stealing.decision import Decision
from shoal.strategies.stealing.frontier import choose_thefts, cost_matrix, evict, share_frontier, should_steal
from shoal.strategies.stealing.group import Groups, SynchronisationEstimate, choose_group, should_regroup
from shoal.strategies.stealing.selection import select

__all__ = [
    "Decision",
    "Groups",
    "SynchronisationEstimate",
    "choose_group",
    "choose_thefts",
    "cost_matrix",
    "evict",
    "select",
    "share_frontier",
    "should_regroup",
    "should_steal",
]
