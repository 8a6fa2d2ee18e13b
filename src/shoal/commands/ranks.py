# SPDX-License-Identifier: Apache-2.0
"""Commands on the ranks of an MPI job: one prints, all write, and of an error there is one line."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import time
from typing import Any

import numpy as np

from shoal.errors import ShoalError
from shoal.io.files import making_folder
from shoal.machine import launched_as
from shoal.placement import Placed
from shoal.results import Result
from shoal.tables import write_columns

#: What a rank waits to hear whether one before it has failed alike; news take far less.
_LISTENING_SECONDS = 0.5


def is_first() -> bool:
    """Whether this process speaks for its job; one alone does."""
    return launched_as()[0] == 0


def telling() -> Any:
    """Return a context in which a failure is told to the other ranks."""
    if launched_as()[1] == 1:
        return contextlib.nullcontext()
    from shoal.backends.mpi.fleet import find_fleet

    return find_fleet().telling()


def writes_dataset(path: str | None, is_gathered: bool) -> bool:
    """Whether a result becomes a folder with a file of each rank."""
    return path is not None and not is_gathered and launched_as()[1] > 1 and path.lower().endswith(".parquet")


def write_dataset(result: Result, path: str, placed: Placed) -> None:
    """Write the rows of this rank's vertices into a folder, which appears when all ranks have written theirs."""
    from shoal.backends.mpi.fleet import find_fleet

    fleet = find_fleet()
    here = [number for number, device in enumerate(placed.make_devices()) if device.is_here]
    rows = np.flatnonzero(np.isin(placed.owner, here))
    making = making_folder(path) if fleet.rank == 0 else contextlib.nullcontext("")
    with making as made:
        folder = fleet.gather_text(made)[0]
        columns = {name: column.take(rows) for name, column in result.named_columns().items()}
        write_columns(columns, os.path.join(folder, f"part-{fleet.rank:05d}.parquet"), ".parquet")
        fleet.gather_text("written")
    fleet.gather_text("named")


def should_complain(error: ShoalError) -> bool:
    """Whether this rank is to print an error: the one that failed does; of several that failed alike, the first."""
    rank, size = launched_as()
    module = sys.modules.get("shoal.backends.mpi.fleet")
    if size == 1 or module is None or not module.find_fleet.cache_info().currsize:
        return rank == 0  # whatever was wrong until then is wrong on all ranks
    if isinstance(error, module.RankError):
        return rank == 0 and re.search(r"rank \d+ on \S+ failed: ", str(error)) is None  # who failed says so
    return rank == 0 or not _has_failed_before(module, rank, str(error))


def _has_failed_before(module: Any, rank: int, text: str) -> bool:
    """Whether a rank before this one tells of the same failure."""
    deadline = time.monotonic() + _LISTENING_SECONDS
    while time.monotonic() < deadline:
        try:
            module.find_fleet().look()
        except module.RankError as error:
            told = re.match(r"rank (\d+) on \S+ failed: ", str(error))
            if told is not None and int(told[1]) < rank and str(error)[told.end() :] == text:
                return True
        time.sleep(1e-3)
    return False
