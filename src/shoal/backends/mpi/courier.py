# SPDX-License-Identifier: Apache-2.0
"""Courier: who comes to the meetings of a rank's devices for the devices of all other ranks.

It comes last: when all devices of its rank are there it looks in ``control[TELLS]`` what the meeting is for, exchanges
that with the other ranks, and lets the devices go on.  While they meet nobody writes what it sends, and they have read
what it overwrites, as they read mail before they come to the next meeting.  A header, by persistent requests, says how
many items are in each place; the items follow, as many messages as there are arrays.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np

from shoal.backends.base import Reason
from shoal.backends.cpu.border import Shared
from shoal.backends.cpu.kernels.meeting import CAME, WAITING, await_devices, end_meeting
from shoal.backends.loops import control as slot
from shoal.backends.mpi.dealing import Dealing
from shoal.backends.mpi.fleet import Fleet
from shoal.backends.mpi.legs import Leg, Place, find_legs
from shoal.progress import PERIOD_SECONDS

#: So long compiled code waits for devices without looking whether Ctrl-C was pressed or another rank has failed.
_SLICE_NANOSECONDS = 2_000_000


class Courier:
    """Carries what a phase's devices tell one another between the ranks."""

    def __init__(
        self, fleet: Fleet, shared: Shared, control: np.ndarray, rank_of: Sequence[int],
        carried: Sequence[tuple[int, ...]], dealing: Dealing | None = None,
    ) -> None:  # fmt: skip
        self.fleet, self.shared, self.control, self.carried = fleet, shared, control, carried
        self.dealing = dealing  # where devices give vertices to one another
        self.counts = np.bincount(rank_of, minlength=fleet.size).tolist()  # devices of each rank
        count = len(rank_of)
        begin = slot.WORLD_ROWS
        self.lines = shared.world[begin : begin + count * slot.LINE].reshape(count, slot.LINE)
        self.items = shared.world[begin + count * slot.LINE :][: count * count].reshape(count, count)
        schedule = shared.schedule
        mail_at = shared.mail_at.reshape(count, count)
        self.mail = [
            _Round(fleet, self, leg_list, lambda place: int(mail_at[place]))
            for leg_list in find_legs(schedule, rank_of, fleet.rank, is_routed=schedule.is_routed)
        ]
        words = len(shared.mail_bits) // count
        self.bits: list[_Round] = []
        if words:
            legs = find_legs(schedule, rank_of, fleet.rank, is_routed=False)
            self.bits = [_Round(fleet, self, leg_list, lambda place: place[0] * words, words) for leg_list in legs]

    def serve(self, on_wait: Callable[[], None] | None = None) -> None:
        """Take part in all meetings until the devices have come back from their loops."""
        world, told = self.shared.world, time.monotonic()
        while True:
            came = await_devices(world, _SLICE_NANOSECONDS)
            if came == CAME:
                self._tell(int(self.control[slot.TELLS]), int(self.control[slot.ROUND]))
                end_meeting(world)
            elif came != WAITING:
                return
            else:
                self.fleet.look()
            if on_wait is not None and time.monotonic() - told > PERIOD_SECONDS:
                told = time.monotonic()
                on_wait()

    def _tell(self, what: int, round_number: int) -> None:
        """Exchange what a meeting is for."""
        if what == slot.TELLS_POSTED:
            self.fleet.share_in_place(self.lines, self.counts)
        elif what == slot.TELLS_TOTALS:
            for posted in self.shared.posted:
                self.fleet.share_in_place(posted, self.counts)
        elif what == slot.TELLS_BITS:
            self.bits[round_number].carry([self.shared.mail_bits])
        elif what in (slot.TELLS_LOADS, slot.TELLS_DEALT):
            assert self.dealing is not None
            self.dealing.tell(what)
        elif what >= slot.TELLS_MAIL:
            arrays = [self.shared.mail[number] for number in self.carried[what - slot.TELLS_MAIL]]
            self.mail[round_number].carry([self.shared.mail_ids, *arrays])

    def agree(self, reason: Reason) -> Reason:
        """Return the reason: devices that meet have agreed on it."""
        return reason

    def close(self) -> None:
        """Give back what MPI keeps for the headers, now that the run has ended."""
        if self.dealing is not None:
            self.dealing.pace.learn()
        for each in (*self.mail, *self.bits):
            each.close()


class _Round:
    """The legs of one round, and the headers that go before their items: how many, and how many of them are listed."""

    def __init__(
        self, fleet: Fleet, courier: Courier, legs: list[Leg], begin_of: Callable[[Place], int],
        length: int | None = None,
    ) -> None:  # fmt: skip
        self.fleet, self.courier, self.legs, self.begin_of, self.length = fleet, courier, legs, begin_of, length
        self.sent = [np.zeros((len(leg.sent), 2), np.int64) for leg in legs]
        self.received = [np.zeros((len(leg.received), 2), np.int64) for leg in legs]
        self.headers = [fleet.prepare_receiving(header, leg.rank)
                        for leg, header in zip(legs, self.received, strict=True) if leg.received]  # fmt: skip
        self.headers += [fleet.prepare_sending(header, leg.rank)
                         for leg, header in zip(legs, self.sent, strict=True) if leg.sent]  # fmt: skip

    def carry(self, arrays: Sequence[np.ndarray]) -> None:
        """Send and receive the items of all legs."""
        if not self.legs:
            return
        courier = self.courier
        for leg, header in zip(self.legs, self.sent, strict=True):
            for row, (sender, receiver) in enumerate(leg.sent):
                header[row] = courier.items[sender, receiver], courier.lines[sender, slot.POSTED_LISTED]
        self.fleet.mpi.Prequest.Startall(self.headers)
        requests = [
            self.fleet.send(span, leg.rank)
            for leg, header in zip(self.legs, self.sent, strict=True)
            for span in self._spans(leg.sent, header, arrays)
        ]
        self.fleet.wait(self.headers)
        for leg, header in zip(self.legs, self.received, strict=True):
            for row, (sender, receiver) in enumerate(leg.received):
                courier.items[sender, receiver] = header[row, 0]
                courier.lines[sender, slot.POSTED_LISTED] = header[row, 1]
            requests += [self.fleet.receive(span, leg.rank) for span in self._spans(leg.received, header, arrays)]
        self.fleet.wait(requests)

    def _spans(self, places: list[Place], header: np.ndarray, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return the parts of the arrays in which the items of some places lie, but empty ones."""
        spans = []
        for place, (count, _) in zip(places, header.tolist(), strict=True):
            begin, length = self.begin_of(place), count if self.length is None else self.length
            spans += [array[begin : begin + length] for array in arrays if length]
        return spans

    def close(self) -> None:
        """Give the headers' requests back; one that was not completed is given up."""
        for request in self.headers:
            request.Free()
