# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C ends a run within a second, leaves no thread behind, and the process goes on working."""

import json
import signal
import subprocess
import threading
import time

import pytest

from processes import interrupt, run_script, start_script
from shoal.backends.cpu.threads import run_threads

pytestmark = pytest.mark.host_only("about the CPU's threads")

LIMIT_SECONDS = 1.5  # the promise is one second; the rest is for a machine that does something else, too

PROGRAM = """\
import json, sys, threading, time
import numpy as np
import shoal
from shoal import Phase, Program, Vertex, advance, atomic, rule

class Endless(Program):
    turn = Vertex("int64")

    def __init__(self, form, limit=None):
        self.form, self.limit = form, limit

    @rule
    def always(src, dst, turn):
        atomic.add(turn, dst, 1)
        return True

    @rule
    def slowly(src, dst, turn):
        for i in range(30):
            atomic.add(turn, dst, i)
        return True

    @rule
    def later(src, dst, turn):
        return atomic.max(turn, dst, turn[src] + 1)

    @rule
    def in_turn(vertex, turn):
        return turn[vertex]

    @rule
    def badly(src, dst, turn):
        assert src != 7, "seven"
        return True

    @rule
    def is_over(superstep):
        assert superstep != 3
        return False

    def step(self, frontier):
        priority = self.in_turn if self.form == "later" else None
        return advance(frontier, getattr(self, self.form, self.always), priority=priority)

    def phases(self):
        until = self.is_over if self.form == "until" else None
        return [Phase(self.step, max_supersteps=self.limit, until=until)]

def random_graph(num_vertices, num_edges):
    src, dst = np.random.default_rng(1).integers(0, num_vertices, (2, num_edges))
    return shoal.Graph.from_edges(src, dst, directed=True, num_vertices=num_vertices)

form, devices, num_vertices, num_edges = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
graph = random_graph(num_vertices, num_edges)
"""

INTERRUPTED = """\
def interrupted_run(form, graph, devices):
    shoal.run(Endless(form, limit=1), graph, devices=devices)
    print("running")
    try:
        shoal.run(Endless(form), graph, devices=devices)
    except KeyboardInterrupt:
        print("interrupted")
    return [thread.name for thread in threading.enumerate()]

threads = interrupted_run(form, graph, devices)
after = shoal.bfs(graph, 0, devices=devices).distance
fresh = shoal.bfs(random_graph(num_vertices, num_edges), 0, devices="cpu:1x1").distance
print(json.dumps({"threads": threads, "is_right": bool((after == fresh).all())}))
"""

FAILING = """\
try:
    shoal.run(Endless(form), graph, devices=devices)
except shoal.ProgramError as error:
    print(repr(error.__cause__), error)
print([thread.name for thread in threading.enumerate()], shoal.bfs(graph, 0, devices=devices).distance[0])
"""

UNSTARTED = """\
started, start = [], threading.Thread.start

def start_some(thread):
    if len(started) == 2:
        raise failure
    started.append(start(thread))

threading.Thread.start = start_some
for failure in (RuntimeError("can't start new thread"), KeyboardInterrupt("pressed")):
    started.clear()
    try:
        shoal.run(Endless(form), graph, devices=devices)
    except (shoal.ShoalError, KeyboardInterrupt) as error:
        print(type(error).__name__, error)
print([thread.name for thread in threading.enumerate()])
"""

RUNS = {
    "threads": ["always", "cpu:1x2", "20000", "200000"],
    "more threads than cores": ["always", "cpu:1x5", "20000", "200000"],
    "by priority": ["later", "cpu:1x2", "20000", "200000"],
    "a tiny graph": ["always", "auto", "10", "40"],
    "a tiny graph by priority": ["later", "auto", "10", "40"],
    "one thread, long supersteps": ["slowly", "cpu:1x1", "100000", "1000000"],
    "a small graph, long supersteps": ["slowly", "auto", "1000", "100000"],
}


@pytest.fixture
def write_script(tmp_path):
    def write(part):
        path = tmp_path / "endless.py"
        path.write_text(PROGRAM + part)
        return path

    return write


@pytest.mark.parametrize("name", RUNS)
def test_a_run_ends_when_told(write_script, name):
    process = start_script(write_script(INTERRUPTED), *RUNS[name])
    try:
        seconds = interrupt(process)
        output, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert seconds < LIMIT_SECONDS
    assert process.returncode == 0, errors
    assert json.loads(output) == {"threads": ["MainThread"], "is_right": True}


class AlarmError(Exception):
    """What the alarm raises."""


def _ring(*_):
    raise AlarmError


@pytest.fixture
def ring(request):
    """Let an exception reach the main thread, again and again."""
    before = signal.signal(signal.SIGALRM, _ring)
    yield lambda first, period: signal.setitimer(signal.ITIMER_REAL, first, period)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("num_threads", [1, 3])
@pytest.mark.parametrize("period", [0, 0.05])
def test_the_caller_waits_for_every_thread(ring, num_threads, period):
    """A thread still running would write to buffers that the next run has."""
    is_told, begun, ended = threading.Event(), [], []

    def kernel(thread, num_threads):
        begun.append(thread)
        if len(begun) == num_threads:
            ring(0.01, period)
        is_told.wait()
        time.sleep(0.3)
        ended.append(thread)

    with pytest.raises(AlarmError):
        run_threads(kernel, num_threads, on_interrupt=is_told.set)
    assert sorted(ended) == list(range(num_threads))


def test_the_caller_looks_around_while_it_waits():
    looks = []
    run_threads(lambda *_: time.sleep(0.35), 2, on_interrupt=lambda: None, on_wait=lambda: looks.append(1))
    assert 1 <= len(looks) <= 3


FAILURES = {
    "several threads": ["badly", "cpu:1x2", "20000", "200000"],
    "one thread": ["badly", "cpu:1x1", "20000", "200000"],
    "a small graph": ["badly", "auto", "10", "40"],
    "the serial part": ["until", "cpu:1x3", "20000", "200000"],
}


def run_to_the_end(path, *arguments):
    try:
        status, output, errors = run_script(path, *arguments, timeout_seconds=60)
    except subprocess.TimeoutExpired:
        pytest.fail("the run hangs")
    assert status == 0, errors
    return output.splitlines()


@pytest.mark.parametrize("name", FAILURES)
def test_a_rule_that_fails_ends_the_run(write_script, name):
    """One thread stops at the failure; the others must not wait for it."""
    failure, after = run_to_the_end(write_script(FAILING), *FAILURES[name])
    if name == "the serial part":
        assert failure.startswith("AssertionError() Endless: rule 'is_over' (")
        assert failure.endswith("failed in superstep 3: AssertionError")
    else:
        assert failure.startswith("AssertionError('seven') Endless: rule 'badly' (")
        assert failure.endswith("failed in superstep 0: AssertionError: seven")
    assert after == "['MainThread'] 0"


def test_threads_that_cannot_start_end_the_run(write_script):
    """Those that did start must not wait at a barrier for the others."""
    refused, pressed, threads = run_to_the_end(write_script(UNSTARTED), "always", "cpu:1x4", "20000", "200000")
    assert refused == (
        "ShoalError only 2 of 4 threads could be started (can't start new thread); "
        "ask for fewer, as in devices='cpu:1x2'"
    )
    assert pressed == "KeyboardInterrupt pressed"
    assert threads == "['MainThread']"
