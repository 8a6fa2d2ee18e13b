# SPDX-License-Identifier: Apache-2.0
"""A call that did not end goes on from its last checkpoint, on any devices, to the same result."""

import errno
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow.parquet
import pytest

import shoal
from crashes import begin_and_crash
from faults import spoil
from processes import SOURCES
from shoal.checkpoint import folder as folder_module
from shoal.checkpoint.record import Record
from shoal.cli import main
from shoal.errors import ArgumentError, ShoalError
from test_every_config import ALGORITHMS, UNDIRECTED_ONLY, assert_same, random_graph

pytestmark = pytest.mark.host_only("about devices that can tell where a run stands")

TURNS = (("cpu", "cpu:3"), ("cpu:3", "cpu"), ("cpu:2", "cpu:4"))
CASES = [
    (name, *turn) for name, turn in zip(ALGORITHMS, itertools.cycle(TURNS), strict=False)
]  # each algorithm on some devices first, and on others then


@pytest.fixture
def place(tmp_path):
    return tmp_path / "checkpoint"


@pytest.mark.parametrize(("name", "first", "then"), CASES, ids=[case[0] for case in CASES])
def test_every_algorithm_goes_on(place, name, first, then):
    for directed in (False,) if name in UNDIRECTED_ONLY else (False, True):
        graph = random_graph(60, 300, seed=3, directed=directed, weights="int32", skew=2.0)
        expected = ALGORITHMS[name](graph, devices="cpu")
        for num_snapshots in (1, 3):
            options = {"checkpoint": place, "checkpoint_every": 1}
            if begin_and_crash(ALGORITHMS[name], num_snapshots, graph=graph, devices=first, **options):
                assert place.exists()
                assert_same(ALGORITHMS[name](graph, devices=then, resume=True, **options), expected)
            assert not place.exists()


@pytest.mark.parametrize("devices", ["cpu", "cpu:1x1", "cpu:3"])
@pytest.mark.parametrize("every", [1, 7, 50, "0.0001s"])
def test_it_goes_on_where_it_was(place, devices, every):
    grid = shoal.generate.grid(60, 60, drop=0.1, seed=2)
    whole = shoal.bfs(grid, 0)
    options = {"devices": devices, "checkpoint": place, "checkpoint_every": every}
    assert begin_and_crash(lambda **given: shoal.bfs(grid, 0, **given), 1, **options)
    (snapshot,) = place.glob("snapshot-*")
    stood = json.loads((snapshot / "manifest.json").read_text())["facts"]["position"]["superstep"]
    rest = shoal.bfs(grid, 0, resume=True, **options)
    assert (rest.distance == whole.distance).all()
    assert stood == every if isinstance(every, int) else stood > 0
    assert rest.stats.num_supersteps == whole.stats.num_supersteps - stood


def test_runs_that_have_ended_are_not_run_again(place):
    grid = shoal.generate.grid(12, 12)
    sources = list(range(130))  # more than two runs have room for
    whole = shoal.bfs(grid, sources)
    options = {"checkpoint": place, "checkpoint_every": 5}
    assert begin_and_crash(lambda **given: shoal.bfs(grid, sources, **given), 8, **options)
    assert [path.name for path in place.glob("run-*")] == ["run-0"]
    rest = shoal.bfs(grid, sources, resume=True, **options)
    assert (rest.distance == whole.distance).all()
    assert 0 < rest.stats.num_supersteps < whole.stats.num_supersteps * 2 / 3


ASYNCHRONOUS = {
    "sssp": lambda graph, **how: shoal.sssp(graph, 0, execution="async", priority="none", **how).distance,
    "pagerank": lambda graph, **how: shoal.pagerank(graph, execution="async", tolerance=1e-10, **how).rank,
}


@pytest.mark.parametrize("name", ASYNCHRONOUS)
@pytest.mark.parametrize(("first", "then"), [("cpu:1x1", "cpu:3"), ("cpu:3", "cpu:1x1"), ("cpu:2", "cpu:4")])
def test_it_goes_on_without_supersteps(place, name, first, then):
    grid = shoal.generate.grid(300, 300, drop=0.1, seed=2, weights=(1, 9))
    options = {"checkpoint": place, "checkpoint_every": "0.01s"}
    assert begin_and_crash(ASYNCHRONOUS[name], 1, graph=grid, devices=first, **options)
    found = ASYNCHRONOUS[name](grid, devices=then, resume=True, **options | {"checkpoint_every": "0.1s"})
    np.testing.assert_allclose(found, ASYNCHRONOUS[name](grid, devices="cpu:1x1"), rtol=1e-5)


def test_without_supersteps_there_are_none_to_count(place):
    with pytest.raises(ArgumentError, match="checkpoint_every=3 counts supersteps"):
        shoal.bfs(shoal.generate.grid(3, 3), 0, execution="async", checkpoint=place, checkpoint_every=3)


def test_two_snapshots_are_kept(place):
    grid = shoal.generate.grid(30, 30)
    assert begin_and_crash(
        lambda **given: shoal.bfs(grid, 0, **given), 9, checkpoint=place, checkpoint_every=2, devices="cpu:2"
    )
    assert sorted(path.name for path in place.glob("snapshot-*")) == ["snapshot-7", "snapshot-8"]
    assert not list(place.glob("*.partial"))


@pytest.mark.parametrize("seed", range(30))
def test_damage_is_noticed_and_the_snapshot_before_is_used(place, caplog, seed):
    generator = np.random.default_rng(seed)
    grid = shoal.generate.grid(25, 25, drop=0.05, seed=seed, weights=(1, 9))
    options = {"checkpoint": place, "checkpoint_every": 5, "devices": "cpu:2"}
    assert begin_and_crash(lambda **given: shoal.sssp(grid, 0, delta=1, **given), 4, **options)
    last = max(place.glob("snapshot-*"))
    files = sorted(last.iterdir())
    spoil(files[seed % len(files)], generator)
    found = shoal.sssp(grid, 0, delta=1, resume=True, **options)
    assert (found.distance == shoal.sssp(grid, 0).distance).all()
    assert str(last) in caplog.text
    assert "is not used" in caplog.text


def test_without_any_whole_snapshot_the_run_begins_anew(place, caplog):
    grid = shoal.generate.grid(25, 25)
    options = {"checkpoint": place, "checkpoint_every": 5}
    assert begin_and_crash(lambda **given: shoal.bfs(grid, 0, **given), 4, **options)
    for path in place.glob("snapshot-*/manifest.json"):
        path.write_text("{}")
    found = shoal.bfs(grid, 0, resume=True, **options)
    assert found.stats.num_supersteps == shoal.bfs(grid, 0).stats.num_supersteps
    assert caplog.text.count("is not used") == 2


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"source": 1}, "its arguments was"),
        ({"graph": shoal.generate.grid(25, 24)}, "its graph was"),
        ({"graph": shoal.generate.grid(25, 25, drop=0.1, seed=1)}, "its graph was"),
    ],
    ids=["arguments", "size", "edges"],
)
def test_only_the_same_call_is_resumed(place, change, words):
    given = {"graph": shoal.generate.grid(25, 25), "source": 0, "checkpoint": place, "checkpoint_every": 5}
    assert begin_and_crash(shoal.bfs, 2, **given)
    with pytest.raises(ArgumentError, match=words):
        shoal.bfs(**{**given, **change}, resume=True)
    with pytest.raises(ArgumentError, match="did not end; resume it, or name another folder"):
        shoal.bfs(**given)
    assert shoal.bfs(**given, resume=True).distance.max() == 48


def test_another_version_is_refused(place):
    grid = shoal.generate.grid(25, 25)
    options = {"checkpoint": place, "checkpoint_every": 5}
    assert begin_and_crash(lambda **given: shoal.bfs(grid, 0, **given), 2, **options)
    call = json.loads((place / "call.json").read_text())
    (place / "call.json").write_text(json.dumps(call | {"version": 99}))
    with pytest.raises(ShoalError, match="is of version 99; this shoal reads version"):
        shoal.bfs(grid, 0, resume=True, **options)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"checkpoint_every": 3}, "checkpoint_every=3 needs checkpoint="),
        ({"resume": True}, "resume=True needs checkpoint="),
        ({"checkpoint": "new", "resume": 1}, "resume=1 is not allowed"),
        ({"checkpoint": "new", "resume": True}, "has nothing to resume"),
        ({"checkpoint": "new", "checkpoint_every": "soon"}, "checkpoint_every='soon' is not known"),
        ({"checkpoint": "new", "checkpoint_every": 0}, "checkpoint_every=0 is out of range"),
        ({"checkpoint": 7}, "checkpoint=7 is not allowed; it must be the path"),
        ({"checkpoint": "file/new"}, "checkpoint='file/new' cannot be written"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path, monkeypatch, options, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(ArgumentError, match=words):
        shoal.bfs(shoal.generate.grid(3, 3), 0, **options)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file"]


def test_a_folder_serves_one_call_at_a_time(place):
    grid = shoal.generate.grid(25, 25)
    options = {"checkpoint": place, "checkpoint_every": 5}
    with pytest.raises(ArgumentError, match="is used by another call at this moment"):
        nest(lambda: shoal.bfs(grid, 0, **options), inner=lambda: shoal.bfs(grid, 0, resume=True, **options))


def nest(outer, inner):
    """Make a call while another one writes its snapshot."""
    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(1) as threads:
        patch.setattr(Record, "save", lambda *_: threads.submit(inner).result(60))
        outer()


def test_a_full_disk_leaves_the_last_snapshot(place, monkeypatch):
    grid = shoal.generate.grid(25, 25)
    options = {"checkpoint": place, "checkpoint_every": 5}
    write, num_calls = folder_module.write_arrays, itertools.count()

    def fill(*arguments):
        if next(num_calls) == 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(*arguments)

    monkeypatch.setattr(folder_module, "write_arrays", fill)
    with pytest.raises(ShoalError, match=r"checkpoint='.*' cannot be written: No space left on device"):
        shoal.bfs(grid, 0, **options)
    monkeypatch.undo()
    assert not list(place.glob("*.partial"))
    rest = shoal.bfs(grid, 0, resume=True, **options)
    assert (rest.distance == shoal.bfs(grid, 0).distance).all()
    assert rest.stats.num_supersteps == shoal.bfs(grid, 0).stats.num_supersteps - 15


SHOAL = [sys.executable, "-m", "shoal.cli"]


def start(*words, **options):
    environment = {**os.environ, "PYTHONPATH": str(SOURCES)}
    return subprocess.Popen([*SHOAL, *map(str, words)], env=environment, text=True, stderr=subprocess.PIPE, **options)


def wait_for(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_command_that_was_ended_goes_on(tmp_path, monkeypatch, how):
    monkeypatch.chdir(tmp_path)
    shoal.io.write(shoal.generate.grid(1500, 1500, drop=0.1, seed=1), "g.shoal")
    words = ("bfs", "g.shoal", "--source", "0", "--devices", "cpu:1x1", "--output", "out.parquet")
    process = start(*words, "--checkpoint", "kept", "--checkpoint-every", "0.05s")
    wait_for(lambda: list((tmp_path / "kept").glob("snapshot-*")) or process.poll() is not None)
    process.send_signal(how)
    _, errors = process.communicate(timeout=60)
    if how == signal.SIGTERM:
        assert process.returncode == 143
        assert f"shoal resume {tmp_path / 'kept'}" in errors
    assert not (tmp_path / "out.parquet").exists()
    monkeypatch.chdir(tmp_path.parent)  # paths are as they were seen from the command's folder
    assert main(["resume", str(tmp_path / "kept"), "--devices", "cpu:2"]) == 0
    found = pyarrow.parquet.read_table(tmp_path / "out.parquet")["distance"].to_numpy()
    assert (found == shoal.bfs(shoal.read(tmp_path / "g.shoal"), 0).distance).all()
    assert not (tmp_path / "kept").exists()
