# SPDX-License-Identifier: Apache-2.0
"""Calls that end in the middle, as those of a machine that stops do, but for this process going on."""

from contextlib import contextmanager

import pytest

from shoal.checkpoint.record import Record


class CrashError(BaseException):
    """Not to be caught by what cleans up after errors of its own."""


@contextmanager
def crash_after(num_snapshots):
    """Let a call end, with no word to anybody, when it has written so many snapshots."""

    def save(record, *arguments):
        write(record, *arguments)
        if record.num_written == num_snapshots:
            raise CrashError

    write = Record.save
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Record, "save", save)
        yield


def begin_and_crash(run, num_snapshots, **options):
    """Run until so many snapshots are written; return whether it came to that."""
    try:
        with crash_after(num_snapshots):
            run(**options)
    except CrashError:
        return True
    return False
