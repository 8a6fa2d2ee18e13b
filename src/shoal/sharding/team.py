# SPDX-License-Identifier: Apache-2.0
"""Team: the processes that make one folder of shards, one alone or the ranks of an MPI job.

All make the same calls in the same order.  What one rank has to tell all others are arrays over vertices and words;
edges go from one to the other in the folder, which all must reach.  Nobody waits for ever: see `backends.mpi.fleet`.
"""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

import numpy as np

from shoal.io.files import making_folder, refuse_path
from shoal.machine import launched_as

#: How long a rank that has failed waits for the others to write no more, before it removes what was written.
_PARTING_SECONDS = 10.0
_SLEEP_SECONDS = 0.01


class Team(Protocol):
    """Processes that work together."""

    rank: int
    size: int

    def gather(self, array: np.ndarray) -> list[np.ndarray]:
        """Return the arrays of all ranks."""
        ...

    def gather_text(self, text: str) -> list[str]:
        """Return the texts of all ranks."""
        ...

    def do(self, work: Callable[[], Any]) -> Any:
        """Do what takes long, and say meanwhile that this rank is alive."""
        ...

    def watched(self, items: Iterable[Any]) -> Iterable[Any]:
        """Yield what there is to do, until another rank has failed."""
        ...

    def making_folder(self, path: str) -> contextlib.AbstractContextManager[str]:
        """Give the name of a new folder; it becomes ``path`` when all ranks have left this context."""
        ...


class Alone:
    """One process."""

    rank, size = 0, 1

    def gather(self, array: np.ndarray) -> list[np.ndarray]:
        """Return what the only one has."""
        return [array]

    def gather_text(self, text: str) -> list[str]:
        """Return what the only one says."""
        return [text]

    def do(self, work: Callable[[], Any]) -> Any:
        """Do it."""
        return work()

    def watched(self, items: Iterable[Any]) -> Iterable[Any]:
        """Yield all."""
        return items

    def making_folder(self, path: str) -> contextlib.AbstractContextManager[str]:
        """Give the name of a new folder."""
        return making_folder(path)


class Ranks:
    """The ranks of this process's MPI job."""

    def __init__(self) -> None:
        from shoal.backends.mpi.fleet import find_fleet

        self.fleet = find_fleet()
        self.rank, self.size = self.fleet.rank, self.fleet.size

    def gather(self, array: np.ndarray) -> list[np.ndarray]:
        """Return the arrays of all ranks."""
        return self.fleet.gather(array)

    def gather_text(self, text: str) -> list[str]:
        """Return the texts of all ranks."""
        return self.fleet.gather_text(text)

    def do(self, work: Callable[[], Any]) -> Any:
        """Do it on a thread of its own."""
        return self.fleet.do(work)

    def watched(self, items: Iterable[Any]) -> Iterator[Any]:
        """Yield what there is to do, until another rank has failed: its reason is raised where this one listens."""
        for item in items:
            if self.fleet.failure is not None:
                return
            yield item

    @contextlib.contextmanager
    def making_folder(self, path: str) -> Iterator[str]:
        """Give the name of the folder that the first rank makes.

        Who fails tells the others.  Then all of them end their work, wait for one another, and remove what there is: a
        launcher may end the other processes as soon as the first one has gone.
        """
        parting, request = self.fleet.comm.Idup()  # what others wait for in vain goes by another way
        self.fleet.wait([request])
        folder = ""
        try:
            with self.fleet.telling():
                with making_folder(path) if self.rank == 0 else contextlib.nullcontext("") as made:
                    folder = self.gather_text(made)[0]
                    try:
                        yield folder
                    except OSError as error:
                        refuse_path(path, "written", error)
                    self.gather_text("written")
                self.gather_text("named")
        except BaseException:
            _wait_for_all(parting)
            if folder:
                shutil.rmtree(folder, ignore_errors=True)
            raise


def _wait_for_all(parting: Any) -> None:
    """Wait until all ranks have stopped, but not for ever: one may be gone."""
    request, began = parting.Ibarrier(), time.monotonic()
    while not request.Test() and time.monotonic() - began < _PARTING_SECONDS:
        time.sleep(_SLEEP_SECONDS)


def find_team() -> Team:
    """Return the ranks of the MPI job that this process was launched in, or the process alone."""
    return Ranks() if launched_as()[1] > 1 else Alone()


def devices_of(team: Team, num_devices: int) -> range:
    """Return the devices whose parts a rank writes: about as many each, one rank's behind the other's."""
    first, last = (rank * num_devices // team.size for rank in (team.rank, team.rank + 1))
    return range(first, last)
