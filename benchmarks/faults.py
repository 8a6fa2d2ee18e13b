# SPDX-License-Identifier: Apache-2.0
"""Faults on purpose: processes that die, stop or are asked to end, and checkpoints that are damaged.

    python benchmarks/faults.py --json faults.json

Each time a search with checkpoints is begun on four ranks of an MPI job, something happens to it, and it is resumed on
some other number of ranks; the search compares its result with that of one device (tests/rank_search.py).  What counts
is that the fault is noticed, with a message that names what it should, that nothing is left running, and that the
resumed search has the same result.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from figures import Figure, parser, publish

SEARCH = Path(__file__).resolve().parents[1] / "tests" / "rank_search.py"
NUM_RANKS = 4
NUM_SNAPSHOTS = 40  # that the search writes at least
SILENT_SECONDS = 5.0
PATIENCE_SECONDS = 120.0
Fault = Callable[[Path, np.random.Generator], bool]


def main() -> None:
    """Cause all faults and publish how often something went wrong."""
    options = parser(__doc__)
    options.add_argument("--times", type=int, default=30, help="how often to kill a rank, and to damage a file (30)")
    options.add_argument("--few", type=int, default=5, help="how often to do what takes longer (5)")
    options.add_argument("--seed", type=int, default=1)
    given = options.parse_args()
    generator = np.random.default_rng(given.seed)
    faults: dict[str, tuple[Fault, int]] = {
        "a rank is killed (SIGKILL), and the job is resumed": (kill, given.times),
        "a file of the last snapshot is damaged or cut off": (damage, given.times),
        f"a rank stops for ever (SIGSTOP), noticed within {SILENT_SECONDS:g} s and some more": (stop, given.few),
        "the job is asked to end (SIGTERM): a checkpoint first, exit status 143": (end, given.few),
    }
    figures = []
    for what, (fault, times) in faults.items():
        num_wrong = sum(not tried(fault, generator) for _ in range(times))
        figures.append(Figure(f"{what}: not noticed, or another result", num_wrong, f"of {times}", 0, times))
    publish("faults", f"a search on {NUM_RANKS} ranks, a checkpoint every 3 supersteps", figures, given.json)


def tried(fault: Fault, generator: np.random.Generator) -> bool:
    """Cause a fault in a new folder, and resume; return whether all went as it should."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "kept")
        as_it_should = fault(place, generator)
        as_it_should = as_it_should and not left_running(place)
        ranks = int(generator.integers(1, NUM_RANKS + 1))
        status, output, errors = job(ranks, place, "--resume")
        good = as_it_should and status == 0 and "supersteps" in output and not place.exists()
        if not good:
            print(f"{fault.__name__}: {as_it_should}, {status} on {ranks} ranks: {errors[-1000:]}", file=sys.stderr)
        return good


def kill(place: Path, generator: np.random.Generator) -> bool:
    """Kill a rank before, while or after it writes its part of a snapshot."""
    rank, snapshot, part = (int(generator.integers(high)) for high in (NUM_RANKS, NUM_SNAPSHOTS, 2))
    status, _, errors = job(NUM_RANKS, place, "--leave", rank, snapshot, part, signal.SIGKILL)
    return status == 2 and f"rank {rank} on" in errors and str(place) in errors


def stop(place: Path, generator: np.random.Generator) -> bool:
    """Let a rank stop, so that the others wait for it."""
    rank, snapshot = int(generator.integers(NUM_RANKS)), int(generator.integers(1, NUM_SNAPSHOTS))
    began = time.monotonic()
    status, _, errors = job(NUM_RANKS, place, "--leave", rank, snapshot, 1, signal.SIGSTOP)
    is_soon = time.monotonic() - began < PATIENCE_SECONDS / 2
    return status != 0 and is_soon and f"rank {rank} on" in errors and "was not heard of" in errors


def end(place: Path, generator: np.random.Generator) -> bool:
    """Ask the whole job to end when it has begun to write snapshots."""
    process = start(NUM_RANKS, place, "--slowly")
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not list(place.glob("snapshot-*")) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=PATIENCE_SECONDS)
    return process.returncode == 128 + signal.SIGTERM and bool(list(place.glob("snapshot-*")))


def damage(place: Path, generator: np.random.Generator) -> bool:
    """Flip a bit in a file of the last snapshot, or cut it off."""
    job(NUM_RANKS, place, "--leave", 0, int(generator.integers(2, NUM_SNAPSHOTS)), 0, signal.SIGKILL)
    last = max(place.glob("snapshot-*[0-9]"), key=lambda path: int(path.name.partition("-")[2]))
    files = sorted(last.iterdir())
    spoil(files[generator.integers(len(files))], generator)
    return True


def spoil(path: Path, generator: np.random.Generator) -> None:
    """Flip a bit of a file, or cut it off."""
    content = bytearray(path.read_bytes())
    if generator.random() < 0.5:
        content[generator.integers(len(content))] ^= 1 << int(generator.integers(8))
    else:
        del content[generator.integers(len(content)) :]
    path.write_bytes(content)


def start(ranks: int, place: Path, *words: object) -> subprocess.Popen[str]:
    """Begin a job."""
    command = [sys.executable, "-m", "shoal.cli", "mpi-run", "-n", ranks, "--timeout", SILENT_SECONDS, SEARCH, place]
    pipe = subprocess.PIPE
    return subprocess.Popen([*map(str, command), *map(str, words)], stdout=pipe, stderr=pipe, text=True)


def job(ranks: int, place: Path, *words: object) -> tuple[int, str, str]:
    """Run a job to its end; return its exit status and what it wrote."""
    process = start(ranks, place, *words)
    try:
        output, errors = process.communicate(timeout=PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        return -1, "", f"did not end within {PATIENCE_SECONDS:g} s"
    return process.returncode, output, errors


def left_running(place: Path) -> list[int]:
    """Return the processes of a job that are still there."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if str(place).encode() in words and int(path.parent.name) != os.getpid():
            found.append(int(path.parent.name))
    return found


if __name__ == "__main__":
    main()
