# SPDX-License-Identifier: Apache-2.0
"""A campaign: many spoilt inputs for one target, in one process, and what became of them.

    PYTHONPATH=src:tests python -m fuzzing.campaign --target METIS --executions 1000 --seed 1 --folder /dev/shm/x

An input is in the folder ``input`` before it is read, and a file ``count`` says how many were: if the process dies, its
parent has both.  Findings are kept in the folder ``findings``, one of each kind of failure.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import gc
import json
import os
import re
import resource
import shutil
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

from fuzzing.properties import BrokenError, HeardError, Watch, check_refusal
from fuzzing.seeds import Input
from fuzzing.targets import TARGETS, Target

#: Beyond what the process has when its good files are read: address space for threads and code that is loaded later.
EXTRA_BYTES = 512 * 2**20
#: Far more than any of these files takes, also where it is the first that needs a function compiled.
HANGS_SECONDS = 60
_BETWEEN_ALARMS = 20
#: Functions that one input may be the first to call.
_MOST_LOADED = 20
REGRESSIONS = Path(__file__).resolve().parents[1] / "data" / "fuzz"


class Reader:
    """Reads inputs of one target and says what became of each: ``read``, ``refused``, or what is wrong."""

    def __init__(self, target: Target, folder: Path) -> None:
        self.target, self.folder = target, folder / "input"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.watch: Watch | None = None

    def execute(self, files: Input, option: int) -> str:
        """Read an input; raise what must not happen.

        What opens other files is done again: code that is loaded late is there then, and nothing else may be.
        """
        for _ in range(_MOST_LOADED):
            with contextlib.suppress(HeardError):
                return self._execute(files, option)
        return self._execute(files, option)

    def _execute(self, files: Input, option: int) -> str:
        self._write(files)
        if self.watch is not None:
            self.watch.begin(str(self.folder))
        outcome = "read"
        try:
            self.target.read(str(self.folder), list(files), option)
        except BrokenError:
            raise
        except Exception as error:
            check_refusal(error, str(self.folder))
            outcome = "refused"
        finally:
            if self.watch is not None:
                self.watch.end()
        return outcome

    def _write(self, files: Input) -> None:
        for name in os.listdir(self.folder):
            if name not in files:
                os.unlink(self.folder / name)
        for name, content in files.items():
            with open(self.folder / name, "wb", buffering=0) as file:
                file.write(content)


def regressions_of(target: Target) -> list[Input]:
    """Return the inputs that were findings once: a file, or a folder of files."""
    folder = REGRESSIONS / folder_of(target.name)
    found = sorted(folder.iterdir()) if folder.is_dir() else []
    return [
        {file.name: file.read_bytes() for file in sorted(path.iterdir())}
        if path.is_dir()
        else {path.name: path.read_bytes()}
        for path in found
    ]


def folder_of(name: str) -> str:
    """Return the name of a target's folder."""
    return name.lower().replace(", ", "-").replace(" ", "-")


def spoilt_inputs(target: Target, random: Random) -> Iterator[tuple[Input, int]]:
    """Yield inputs without an end, and how to read each."""
    pool = [*target.seeds(), *regressions_of(target)]
    good = target.seeds()
    while True:
        yield target.mutate(random, random.choice(pool), good), random.randrange(target.num_options)


class Campaign:
    """Runs a target and keeps count."""

    def __init__(self, target: Target, seed: int, folder: Path) -> None:
        self.target, self.folder = target, folder
        self.reader = Reader(target, folder)
        self.inputs = spoilt_inputs(target, Random(f"{target.name}-{seed}"))
        self.outcomes: Counter[str] = Counter()
        self.findings: dict[str, str] = {}

    def warm_up(self) -> None:
        """Load all code: read the good files in all ways."""
        for files in self.target.seeds():
            for option in range(self.target.num_options):
                with contextlib.suppress(Exception):
                    self.reader.execute(files, option)

    def run(self, executions: int, counter: int | None = None) -> None:
        """Read so many spoilt inputs."""
        self.reader.watch = Watch()
        gc.collect()
        gc.freeze()  # what is loaded stays: looking through it again and again would take half of the time
        for number in range(executions):
            files, option = next(self.inputs)
            if counter is not None:
                os.pwrite(counter, b"%12d %3d" % (number + 1, option), 0)
            if number % _BETWEEN_ALARMS == 0:  # for where no handler is run, since no Python is; it takes a thread
                faulthandler.dump_traceback_later(HANGS_SECONDS * _BETWEEN_ALARMS, exit=True)
            self.outcomes[self._outcome(files, option)] += 1
        faulthandler.cancel_dump_traceback_later()

    def _outcome(self, files: Input, option: int) -> str:
        signal.alarm(HANGS_SECONDS)
        try:
            return self.reader.execute(files, option)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            self._keep(files, option, error)
            return "finding"
        finally:
            signal.alarm(0)

    def _keep(self, files: Input, option: int, error: BaseException) -> None:
        """Keep the first input of each kind of failure: of one type, from one line."""
        last = traceback.extract_tb(error.__traceback__)[-1]
        words = re.sub(r"\d+|/dev/\S+|'.*", "", str(error))[:60] if isinstance(error, BrokenError) else ""
        kind = f"{type(error).__name__} {Path(last.filename).name}:{last.lineno} {words}"
        if kind in self.findings:
            return
        self.findings[kind] = "".join(traceback.format_exception(error, limit=-6))[-3000:]
        place = self.folder / "findings" / str(len(self.findings))
        place.mkdir(parents=True)
        for name, content in files.items():
            (place / name).write_bytes(content)
        (place / "WHY").write_text(f"option {option}\n{kind}\n{self.findings[kind]}\n")


def limit_memory() -> None:
    """Let this process have little more memory than it has, so that an allocation by a false claim fails."""
    size = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (size + EXTRA_BYTES, resource.RLIM_INFINITY))


def _ring(*_: Any) -> None:
    raise TimeoutError("reading hangs")


def main() -> None:
    """Run a campaign and print what became of its inputs as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", choices=list(TARGETS), required=True)
    parser.add_argument("--executions", type=int, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, required=True)
    given = parser.parse_args()
    shutil.rmtree(given.folder, ignore_errors=True)
    given.folder.mkdir(parents=True)
    os.chdir(given.folder)
    signal.signal(signal.SIGALRM, _ring)
    warnings.simplefilter("error", RuntimeWarning)  # of NumPy: a number that did not fit
    import shoal.io.text_source

    shoal.io.text_source.BLOCK_BYTES = 4096  # so that small files have several blocks
    campaign = Campaign(TARGETS[given.target], given.seed, given.folder)
    campaign.warm_up()
    limit_memory()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begin = time.perf_counter()
    with open(given.folder / "count", "wb") as counter:
        campaign.run(given.executions, counter.fileno())
    seconds = time.perf_counter() - begin
    growth = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    found = {"outcomes": campaign.outcomes, "findings": campaign.findings, "seconds": seconds, "growth_bytes": growth}
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
