# SPDX-License-Identifier: Apache-2.0
"""A worklist of several devices, whose author says by callbacks what travels between them (Groute, section 4.3).

A device visits vertices that it owns; what a visit finds at a vertex of another's becomes an *item*: the vertex and one
value.  Items go round a ring of devices, and each says whether an item stays there.
"""

from __future__ import annotations

from typing import Any, ClassVar

from shoal.errors import ProgramError
from shoal.operators import CALLBACKS, advance
from shoal.program import Program
from shoal.rules import Rule
from shoal.worklists import DUPLICATE, KEEP, PASS, REMOVE

__all__ = ["DUPLICATE", "KEEP", "PASS", "REMOVE", "DistributedWorklist"]


class DistributedWorklist(Program):
    """A program without supersteps; run it by ``shoal.run(..., execution="async")``.

    Subclass it, declare fields, and define ``visit``, a rule over an edge that says whether its destination is worth a
    visit.  What ``visit`` writes at destinations is one field, whose value is what travels.  Of the callbacks, each a
    rule over the vertex and fields, define those that are to be other than they are:

    ``pack(vertex, ...)``
        the value that an item carries; it may write.  By default the field's value, of sums what has gathered
    ``unpack(vertex, value, ...)``
        take in the value of an item, and say whether that changed anything; by default the field's ``combine=``
    ``on_send(vertex, is_owned, ...)``
        what becomes of a vertex that a visit has found: `KEEP` it here (to be visited, if it is this device's), `PASS`
        it on, do both (`DUPLICATE`) or neither (`REMOVE`).  By default the device's own are kept and others passed on
    ``on_receive(vertex, value, is_owned, ...)``
        the same of an item that arrives.  One that goes on is taken in first, and goes on only if that changed anything
    ``priority(vertex, ...)``
        a whole number: the lowest go first, and none far above what other devices have done

    ``pack``, ``unpack`` and ``on_receive`` have their vertex alone, and may write there as they like; ``visit`` and
    ``on_send`` may be at a vertex with others, on a GPU, and write by `shoal.atomic` only.

    Results must not depend on the order in which items come, nor on how often: that is the author's word.  A step of
    one's own may `compute` before the advance, and `filter` behind it: `callbacks` has what the advance takes.
    """

    visit: ClassVar[Any] = None
    pack: ClassVar[Any] = None
    unpack: ClassVar[Any] = None
    on_send: ClassVar[Any] = None
    on_receive: ClassVar[Any] = None
    priority: ClassVar[Any] = None

    def step(self, frontier: Any) -> Any:
        """Visit the edges of what waits."""
        if not isinstance(self.visit, Rule):
            raise ProgramError(f"{type(self).__name__} defines no visit: a rule over src and dst")
        return advance(frontier, self.visit, priority=self.priority, callbacks=self.callbacks())

    def callbacks(self) -> dict[str, Rule]:
        """Return the callbacks that are defined, but for the priority, by name."""
        found = {name: getattr(self, name) for name in CALLBACKS}
        return {name: callback for name, callback in found.items() if callback is not None}
