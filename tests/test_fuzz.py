# SPDX-License-Identifier: Apache-2.0
"""Everything that reads files, with spoilt ones: those that were findings once, and some new ones of every kind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path
from random import Random

import numpy as np
import pytest

import shoal
from fuzzing.campaign import REGRESSIONS, Reader, folder_of, regressions_of, spoilt_inputs
from fuzzing.properties import BrokenError, HeardError, Watch, check_graph, check_refusal
from fuzzing.targets import TARGETS
from shoal.errors import FileFormatError, OutOfMemoryError

pytestmark = pytest.mark.host_only("about files: nothing is run")

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
#: For all kinds together: some twenty seconds, the cheap ones with more of them.
EXECUTIONS = 12_000
SHARES = sum(target.share for target in TARGETS.values())


@pytest.fixture(scope="module")
def watch():
    """Hears what is opened and run, for all tests of this module: a hook of the interpreter is never taken off."""
    return Watch()


@pytest.fixture
def reader_of(tmp_path, watch, monkeypatch):
    """Readers of small files in several blocks, where a number that does not fit is an error."""
    monkeypatch.setattr("shoal.io.text_source.BLOCK_BYTES", 4096)
    monkeypatch.chdir(tmp_path)

    def make(name):
        reader = Reader(TARGETS[name], tmp_path)
        reader.watch = watch
        return reader

    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        yield make


@pytest.mark.parametrize("name", TARGETS)
def test_good_files_are_read(name, reader_of):
    reader = reader_of(name)
    outcomes = {reader.execute(files, 0) for files in TARGETS[name].seeds() if not is_hostile(files)}
    assert outcomes == {"read"}


def is_hostile(files):
    """One seed claims 10**15 vertices in its metadata, so that inputs made of it do."""
    return next(iter(files)).startswith("claim")


@pytest.mark.parametrize("name", TARGETS)
def test_what_was_a_finding_is_none_any_more(name, reader_of):
    reader, target = reader_of(name), TARGETS[name]
    inputs = regressions_of(target)
    assert inputs
    for files in inputs:
        for option in range(target.num_options):
            assert reader.execute(files, option) in ("read", "refused"), list(files)


@pytest.mark.parametrize("name", TARGETS)
def test_spoilt_files_are_read_or_refused(name, reader_of):
    reader, target = reader_of(name), TARGETS[name]
    inputs = spoilt_inputs(target, Random(f"{name}-test"))
    outcomes = [reader.execute(*next(inputs)) for _ in range(EXECUTIONS * target.share // SHARES)]
    assert set(outcomes) <= {"read", "refused"}
    assert "refused" in outcomes


def test_the_corpus_is_small_and_belongs_to_targets():
    assert {path.name for path in REGRESSIONS.iterdir()} == {folder_of(name) for name in TARGETS}
    assert sum(path.stat().st_size for path in REGRESSIONS.rglob("*") if path.is_file()) < 200_000


def test_the_same_seed_makes_the_same_inputs():
    first, second = (spoilt_inputs(TARGETS["METIS"], Random("x")) for _ in range(2))
    assert [next(first) for _ in range(50)] == [next(second) for _ in range(50)]


def test_a_refusal_is_one_line_of_shoals_own_that_names_the_file():
    check_refusal(FileFormatError("/here/g.txt: no"), "/here")
    for error, kind in (
        (ValueError("/here/g.txt"), ValueError),
        (FileFormatError("g.txt: no"), BrokenError),
        (OutOfMemoryError("/here/g.txt: no room"), BrokenError),
        (FileFormatError("/here/g.txt: Unable to allocate 8 EiB"), BrokenError),
    ):
        with pytest.raises(kind):
            check_refusal(error, "/here")


@pytest.mark.parametrize(
    "csr",
    [([0, 2, 1], [0, 1]), ([0, 1, 2], [0, 7]), ([0, 1, 2], [0, -1]), ([1, 1, 2], [0, 1]), ([0, 1, 1], [1])],
    ids=["descends", "beyond", "negative", "begins late", "no twin"],
)
def test_graphs_that_are_none_are_told(csr):
    arrays = [np.array(values, np.int32) for values in csr]
    with pytest.raises(BrokenError):
        check_graph(shoal.Graph.from_csr(*arrays, directed=False, check=False))


def test_the_watch_hears_files_elsewhere_and_code(tmp_path, watch):
    (tmp_path / "inside").write_text("")
    for act in (lambda: Path("/etc/hostname").exists() and open("/etc/passwd").close(), lambda: exec("1 + 1")):
        watch.begin(str(tmp_path / "inside"))
        act()
        with pytest.raises(HeardError):
            watch.end()
    watch.begin(str(tmp_path))
    open(tmp_path / "inside").close()
    watch.end()


def test_a_process_of_limited_memory(tmp_path):
    """The script as it is called for the figures: every kind of file has its turn, and nothing is found."""
    path = tmp_path / "fuzz.json"
    command = [
        sys.executable,
        str(BENCHMARKS / "fuzz.py"),
        "--executions",
        "300",
        "--format",
        "METIS",
        "--json",
        str(path),
    ]
    paths = os.pathsep.join([str(Path(shoal.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=os.environ | {"PYTHONPATH": paths})
    assert done.returncode == 0, done.stderr
    row, total = json.loads(path.read_text())["rows"]
    assert (row["target"], row["executions"], row["findings"]) == ("METIS", 300, 0)
    assert row["refused"] + row["read"] == 300 == total["executions"]
