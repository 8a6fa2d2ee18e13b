# SPDX-License-Identifier: Apache-2.0
"""Observers are told where a run is, on the caller's thread and in its context only, and can end it."""

import threading
import time

import numpy as np
import pytest

import shoal
from shoal import Phase, Program, Vertex, advance, atomic, rule

pytestmark = pytest.mark.host_only("observers see runs on the CPU only")


class Endless(Program):
    """Every vertex in every superstep."""

    turn = Vertex("int64")

    @rule
    def visit(src, dst, turn):
        atomic.add(turn, dst, 1)
        return True

    def walk(self, frontier):
        return advance(frontier, self.visit)

    def phases(self):
        return [Phase(self.walk)]


class EnoughError(Exception):
    """What an observer raises that has seen enough."""


class Observer:
    """Keeps what it is told; ends the run with the last report it wants."""

    def __init__(self, num_wanted):
        self.num_wanted, self.reports, self.threads = num_wanted, [], set()

    def __call__(self, progress):
        self.reports.append(progress)
        self.threads.add(threading.current_thread())
        if len(self.reports) == self.num_wanted:
            raise EnoughError


def ring(num_vertices):
    """Every vertex has an edge in and an edge out, so that all are in every frontier."""
    vertices = np.arange(num_vertices)
    return shoal.Graph.from_edges(vertices, np.roll(vertices, 1), directed=True)


@pytest.mark.parametrize("num_vertices", [10, 200_000])
def test_an_observer_sees_the_run_and_can_end_it(num_vertices):
    observer = Observer(3)
    began = time.monotonic()
    with pytest.raises(EnoughError), shoal.observe(observer):
        shoal.run(Endless(), ring(num_vertices), devices="cpu:1x2")
    taken = time.monotonic() - began
    first, second, third = observer.reports
    assert {(report.program, report.step) for report in observer.reports} == {("Endless", "walk")}
    assert {report.frontier_size for report in observer.reports} == {num_vertices}
    assert 0 <= first.superstep < second.superstep < third.superstep
    assert 0 < first.seconds < second.seconds < third.seconds <= taken
    assert observer.threads == {threading.main_thread()} == set(threading.enumerate())


def test_many_short_runs_are_reported():
    observer = Observer(2)
    graph = ring(10)
    shoal.bfs(graph, 0)
    with pytest.raises(EnoughError), shoal.observe(observer):
        search_for_seconds(60, graph)
    assert {report.program for report in observer.reports} == {"BFS"}


def test_observers_are_of_their_context_and_end_with_it():
    graph, outer, inner = ring(10), Observer(1), Observer(1)
    with shoal.observe(outer):
        with pytest.raises(EnoughError), shoal.observe(inner):
            shoal.run(Endless(), graph)
        other = threading.Thread(target=search_for_seconds, args=(0.3, graph))
        other.start()
        other.join()
        assert (len(outer.reports), len(inner.reports)) == (0, 1)
        with pytest.raises(EnoughError):
            shoal.run(Endless(), graph)
    search_for_seconds(0.3, graph)
    assert (len(outer.reports), len(inner.reports)) == (1, 1)


def search_for_seconds(seconds, graph):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        shoal.bfs(graph, 0)


def test_a_callback_must_be_a_function():
    with pytest.raises(shoal.ArgumentError, match=r"callback=3 is not allowed; .* a function of one Progress"):
        shoal.observe(3).__enter__()
