# SPDX-License-Identifier: Apache-2.0
"""Observers are told where a run is, on the caller's thread and in its context only, and can end it."""

import threading
import time
from dataclasses import replace

import numpy as np
import pytest

import shoal
from shoal import Phase, Program, Vertex, advance, atomic, rule
from shoal.commands import display
from shoal.progress import Work

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
    """Keeps what it is told; ends the run with the last report it wants, and not before ``num_further`` supersteps."""

    def __init__(self, num_wanted, num_further=0):
        self.num_wanted, self.num_further, self.reports, self.threads = num_wanted, num_further, [], set()

    def __call__(self, progress):
        self.reports.append(progress)
        self.threads.add(threading.current_thread())
        is_further = progress.superstep - self.reports[0].superstep >= self.num_further
        if len(self.reports) >= self.num_wanted and is_further:
            raise EnoughError


def ring(num_vertices):
    """Every vertex has an edge in and an edge out, so that all are in every frontier."""
    vertices = np.arange(num_vertices)
    return shoal.Graph.from_edges(vertices, np.roll(vertices, 1), directed=True)


@pytest.mark.parametrize("num_vertices", [10, 200_000])
def test_an_observer_sees_the_run_and_can_end_it(num_vertices, way_out):
    """On a busy machine several reports may be of one superstep."""
    observer = Observer(3, num_further=2)
    began = time.monotonic()
    with pytest.raises(EnoughError), shoal.observe(observer):
        shoal.run(Endless(), ring(num_vertices), devices="cpu:1x2")
    taken = time.monotonic() - began
    supersteps, seconds = zip(*((report.superstep, report.seconds) for report in observer.reports), strict=True)
    assert {(report.program, report.step) for report in observer.reports} == {("Endless", "walk")}
    assert {report.frontier_size for report in observer.reports} == {num_vertices}
    assert 0 <= supersteps[0] < supersteps[-1]
    assert list(supersteps) == sorted(supersteps)
    assert 0 < seconds[0] < seconds[-1] <= taken
    assert list(seconds) == sorted(set(seconds))
    assert observer.threads == {threading.main_thread()} == set(threading.enumerate())


def test_an_observer_is_told_how_many_supersteps_there_may_be():
    graph, reports = ring(100_000), []
    shoal.pagerank(graph, iterations=1)
    with shoal.observe(reports.append):
        for _ in range(100):
            shoal.pagerank(graph, iterations=500)
            if reports:
                break
    assert {report.max_supersteps for report in reports} == {500}


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


class TestWork:
    """Files that are read and graphs that are built, for those who want to know."""

    @pytest.fixture(autouse=True)
    def at_once(self, monkeypatch):
        monkeypatch.setattr("shoal.progress.PERIOD_SECONDS", 0.0)

    def test_reading_and_building_are_reported(self, tmp_path, monkeypatch):
        monkeypatch.setattr("shoal.io.text_source.BLOCK_BYTES", 2**16)
        path = tmp_path / "ring.txt"
        shoal.write(ring(50_000), path)
        reports = []
        with shoal.observe(lambda run: None, work=reports.append):
            shoal.read(path)
        size = path.stat().st_size
        read = [report for report in reports if report.name == "read"]
        assert {(report.total, report.unit) for report in read} == {(size, "bytes")}
        assert [report.done for report in read] == sorted({report.done for report in read})
        assert len(read) > 3
        assert read[-1].done == size
        built = [report for report in reports if report.name == "built"]
        assert [(report.done, report.total, report.unit) for report in built] == [
            (50_000, 150_000, "edges"),
            (100_000, 150_000, "edges"),
        ]
        assert all(report.seconds >= 0 for report in reports)

    def test_what_only_decompression_tells(self, tmp_path):
        path = tmp_path / "ring.txt.gz"
        shoal.write(ring(1000), path)
        reports = []
        with shoal.observe(lambda run: None, work=reports.append):
            shoal.read(path)
        assert reports[0].total is None
        assert reports[0].done > path.stat().st_size

    def test_nobody_is_told_who_did_not_ask(self, tmp_path):
        path = tmp_path / "ring.txt"
        shoal.write(ring(1000), path)
        observer = Observer(1)
        with shoal.observe(observer):
            shoal.read(path)
        assert observer.reports == []

    def test_what_is_no_function(self):
        with pytest.raises(shoal.ArgumentError, match="work=3 is not allowed"), shoal.observe(print, work=3):
            pass


def test_rates_and_time_left_are_said():
    half = Work("read", 30_000_000, 60_000_000, "bytes", 2.0)
    assert display.describe_work(half) == "50% read, 15 MB a second, 2 s left"
    assert display.describe_work(replace(half, total=None)) == "30 MB read, 15 MB a second"
    edges = Work("built", 1_000_000, 3_000_000, "edges", 0.5)
    assert display.describe_work(edges) == "33% built, 2,000,000 a second, 1 s left"
    run = shoal.Progress("BFS", "visit", 40, 1234, 0.5)
    assert display.describe_run(run) == "superstep 40, frontier 1,234 vertices, 80 a second"
    shown = display.describe_run(replace(run, max_supersteps=200))
    assert shown == "superstep 40, frontier 1,234 vertices, 80 a second, 2 s left at most"
    assert display.describe_run(replace(run, superstep=0)) == "superstep 0, frontier 1,234 vertices"
