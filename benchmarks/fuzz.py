# SPDX-License-Identifier: Apache-2.0
"""Spoilt files of every kind that shoal reads, as many as one likes, and what became of them.

    python benchmarks/fuzz.py --executions 1000000 --seed 1 --jobs 2 --json benchmarks/results/fuzz.json

What must hold is in `tests/fuzzing`.  Inputs are read in processes of limited memory, some thousands in each.  If one
ends as it should not, the input it had is kept among the findings, and the next process goes on behind it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import shoal
from figures import parser, print_rows, to_dict
from fuzz_table import TABLE, cells_of
from shoal.bench.report import write_whole

TESTS = Path(__file__).resolve().parents[1] / "tests"
sys.path.insert(0, str(TESTS))

from fuzzing.campaign import EXTRA_BYTES, folder_of, regressions_of  # noqa: E402
from fuzzing.targets import TARGETS  # noqa: E402

#: Of one process: enough that starting it is little of its time, few enough that all kinds have their turn soon.
CHUNK = 10_000
#: More than a chunk takes on a machine with much else to do.
PATIENCE_SECONDS = 1800
#: Few arenas, since memory is limited by its addresses; and what was freed is kept, not asked for again each time.
ALLOCATOR = {"MALLOC_ARENA_MAX": "2", "MALLOC_MMAP_THRESHOLD_": str(2**26), "MALLOC_TRIM_THRESHOLD_": str(2**28)}


@dataclass
class Tally:
    """What became of the inputs of all targets."""

    outcomes: dict[str, Counter[str]] = field(default_factory=lambda: {name: Counter() for name in TARGETS})
    findings: dict[str, set[str]] = field(default_factory=lambda: {name: set() for name in TARGETS})
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, rows: list[dict[str, Any]]) -> None:
        """Add what an earlier run has counted."""
        for row in rows:
            self.outcomes[row["target"]].update({key: row[key] for key in ("refused", "read")})
            self.outcomes[row["target"]]["finding"] += row["executions"] - row["refused"] - row["read"]
            self.findings[row["target"]] |= {f"earlier finding {number}" for number in range(row["findings"])}

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each target that had inputs, and one for all."""
        rows = []
        for name, outcomes in self.outcomes.items():
            if outcomes:
                counts = {"executions": outcomes.total(), "refused": outcomes["refused"], "read": outcomes["read"]}
                rows.append({"target": name, **counts, "findings": len(self.findings[name]),
                             "mended": len(regressions_of(TARGETS[name]))})  # fmt: skip
        sums = {key: sum(row[key] for row in rows) for key in ("executions", "refused", "read", "findings", "mended")}
        return [*rows, {"target": "all", **sums}]


def main() -> None:
    """Run campaigns and publish what became of the inputs."""
    options = parser(__doc__)
    options.add_argument("--executions", type=int, default=20_000, help="inputs in all, or of the one format (20000)")
    options.add_argument("--seed", type=int, default=1, help="the same seed makes the same inputs (1)")
    options.add_argument("--format", choices=list(TARGETS), help="one kind of file instead of all")
    options.add_argument("--jobs", type=int, default=1, help="processes at a time (1)")
    options.add_argument("--add", action="store_true", help="to what the file of --json has: with another seed")
    options.add_argument("--findings", type=Path, help="keep inputs that were findings in this folder")
    given = options.parse_args()
    tally = Tally()
    if given.add:
        tally.add(json.loads(Path(given.json).read_text(encoding="utf-8"))["rows"][:-1])
    names = list(TARGETS) if given.format is None else [given.format]
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with (
        tempfile.TemporaryDirectory(dir=memory, prefix="shoal-fuzz-") as folder,
        ThreadPoolExecutor(given.jobs) as pool,
    ):

        def run(chunk: tuple[str, int, int]) -> None:
            run_chunk(*chunk, Path(folder), tally, given.findings)
            if given.json is not None:
                publish(tally, given.json)

        list(pool.map(run, chunks(names, given.executions, given.seed)))
    print_rows(f"fuzz: {TABLE.title}", TABLE.header, cells_of(tally.rows()), TABLE.right)
    for name, kinds in tally.findings.items():
        for kind in sorted(kinds):
            print(f"{name}: {kind}")


def chunks(names: list[str], executions: int, seed: int) -> Iterator[tuple[str, int, int]]:
    """Yield target, executions and seed of each process, the targets by turns."""
    shares = {name: TARGETS[name].share for name in names}
    left = {name: -(-executions * share // sum(shares.values())) for name, share in shares.items()}
    turn = 0
    while any(left.values()):
        for name in names:
            count = min(left[name], CHUNK)
            left[name] -= count
            if count:
                yield name, count, 1000 * seed + turn
        turn += 1


def run_chunk(name: str, executions: int, seed: int, folder: Path, tally: Tally, keep: Path | None) -> None:
    """Run so many inputs of a target, in another process after one that died."""
    begun = 0
    while executions > 0:
        place = folder / f"{folder_of(name)}-{seed}-{begun}"
        found = run_process(name, executions, seed + 1_000_000 * begun, place)
        with tally.lock:
            tally.outcomes[name].update(found["outcomes"])
            tally.findings[name].update(found["findings"])
        if found["findings"] and keep is not None:
            shutil.copytree(place / "findings", keep / place.name, dirs_exist_ok=True)
        executions -= sum(found["outcomes"].values())
        begun += 1


def run_process(name: str, executions: int, seed: int, place: Path) -> dict[str, Any]:
    """Return what became of the inputs; of a process that died, those that it counted and its last one as a finding."""
    command = [sys.executable, "-m", "fuzzing.campaign", "--target", name, "--executions", str(executions)]
    command += ["--seed", str(seed), "--folder", str(place)]
    paths = os.pathsep.join([str(Path(shoal.__file__).parents[1]), str(TESTS)])
    variables = os.environ | {"PYTHONPATH": paths, **ALLOCATOR}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, env=variables)
    except subprocess.TimeoutExpired:
        return died(place, "did not end")
    return (
        json.loads(done.stdout) if done.returncode == 0 else died(place, f"ended with {done.returncode}", done.stderr)
    )


def died(place: Path, how: str, said: str = "") -> dict[str, Any]:
    """Keep the input that a process died of."""
    counter = place / "count"
    if not counter.exists() or not counter.read_bytes():
        raise RuntimeError(f"a campaign {how} before it began: {said[-1000:]}")
    count = int(counter.read_bytes().split()[0])
    subprocess.run(["cp", "-r", str(place / "input"), str(place / "findings" / "died")], check=False, timeout=60)
    return {"outcomes": {"died": count}, "findings": {f"the process {how}: {said[-300:]}": said}}


def publish(tally: Tally, path: str) -> None:
    """Write what there is so far."""
    with tally.lock:
        setting = f"a process may take {EXTRA_BYTES >> 20} MiB more than it has when the good files are read"
        result = to_dict("fuzz", setting, []) | {"kind": "fuzz", "rows": tally.rows()}
        write_whole(Path(path), json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
