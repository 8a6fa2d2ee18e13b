# SPDX-License-Identifier: Apache-2.0
"""Memory schemes on a GPU: outputs have the room their scheme says, it grows in time, limits hold.

Searches run on a GPU that is none, by the serial functions of their kernels (`cuda_stepper`).
"""

import gc
import re

import numpy as np
import pytest

import cuda_stepper
import shoal
from cuda_fake import FakeGPU, array_bytes
from cuda_stepper import Search, run_search
from graphs import grid_graph, path_graph, random_graph, star_graph
from shoal import OutOfMemoryError
from shoal.algorithms.betweenness import Betweenness
from shoal.algorithms.bfs import BFS, BatchBFS
from shoal.algorithms.sssp import SSSP, FlatParents
from shoal.backends.cuda import phase_run
from shoal.backends.cuda.buffers import BufferSizes
from shoal.backends.cuda.device import find_device
from shoal.backends.cuda.growth import OutputRoom
from shoal.backends.cuda.phases import load_phase
from shoal.backends.loops.rooms import Rooms
from shoal.memory import estimate_memory
from shoal.strategies import memory
from shoal.strategies.memory import SCHEMES, Allowance, Budget

pytestmark = pytest.mark.host_only("for machines without a GPU")

GRAPHS = {
    "path": path_graph(300),
    "star": star_graph(500),
    "hubs": random_graph(2000, 12000, seed=1, skew=4.0),
    "grid": grid_graph(30, 40),
    "directed": random_graph(2000, 30000, seed=2, skew=2.0, directed=True),
}
SEARCHES = {
    "push": Search("push", joins=1),
    "auto": Search("auto", joins=1),
    "pull": Search("pull", joins=1),
    "two in turn": Search("push"),
    "two in turn, auto": Search("auto"),
    "kept": Search("push", joins=1, is_kept=True),
    "kept, auto": Search("auto", joins=1, is_kept=True),
    "kept, pull": Search("pull", joins=1, is_kept=True),
    "filtered": Search("push", is_filtered=True),
    "filtered, kept": Search("push", joins=1, is_kept=True, is_filtered=True),
}
TYPES = (np.dtype(np.int32), np.dtype(np.int32), None)


def fresh(graph):
    """The same graph with nothing kept from earlier runs."""
    return shoal.Graph.from_csr(graph.indptr, graph.indices, graph.weights, directed=graph.is_directed)


@pytest.fixture(autouse=True)
def own_factors(tmp_path, monkeypatch):
    """Let no run see the room that runs of other tests needed."""
    monkeypatch.setattr("shoal.execution.bsp.base_folder", lambda: tmp_path)
    yield
    find_device.cache_clear()


@pytest.fixture
def runs(monkeypatch):
    return cuda_stepper.install(monkeypatch)[1]


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("search", SEARCHES)
def test_searches_under_every_scheme(search, scheme, runs, monkeypatch):
    monkeypatch.setattr(memory, "FIRST_FACTOR", 1e-9)
    for graph in GRAPHS.values():
        expected = shoal.bfs(graph, 0).distance
        fused = run_search(fresh(graph), SEARCHES[search])
        found = run_search(fresh(graph), SEARCHES[search], memory=scheme)
        np.testing.assert_array_equal(found.level, expected)
        assert found.stats.num_supersteps == fused.stats.num_supersteps
        assert found.stats.edges_visited == fused.stats.edges_visited
        if SEARCHES[search].is_kept:
            last = expected.max()
            np.testing.assert_array_equal(found.turn, np.where(expected < 0, -1, last - expected))
    for run in runs:
        assert run.nbytes == array_bytes(run)
        assert run.peaks[0] >= run.nbytes


def lengths_of(scheme, graph, program, **how):
    """The room of outputs, before and after a search, and how often it grew."""
    with pytest.MonkeyPatch.context() as patch:
        runs = cuda_stepper.install(patch)[1]
        run_search(fresh(graph), program, memory=scheme, **how)
        return runs[0].output.entries, runs[0].num_grown


def test_fused_and_maximum_never_grow():
    for graph in GRAPHS.values():
        count, num_edges = graph.num_vertices, graph.num_edges
        assert lengths_of("fused", graph, SEARCHES["push"]) == (count, 0)
        assert lengths_of("maximum", graph, SEARCHES["push"]) == (max(count, num_edges), 0)


def test_just_enough_has_room_for_the_edges_of_a_frontier(runs):
    graph = GRAPHS["hubs"]
    result = run_search(fresh(graph), SEARCHES["two in turn"], memory="just-enough")
    edges = [int(graph.degree[result.level == step].sum()) for step in range(result.level.max() + 1)]
    assert max(edges) > graph.num_vertices
    assert runs[0].output.entries == max(edges)


def test_just_enough_need_not_grow_on_a_path():
    assert lengths_of("just-enough", GRAPHS["path"], SEARCHES["two in turn"]) == (300, 0)


def test_fixed_begins_with_what_was_needed(runs, tmp_path):
    graph = fresh(GRAPHS["grid"])
    for _ in range(2):
        run_search(graph, SEARCHES["two in turn"], memory="fixed")
    first, second = runs
    assert first.num_grown == 0  # an eighth of a grid is more than its diagonal
    assert second.output.entries == first.output.entries == 1200 // 8
    assert first.room_factor == 1 / 8


def test_fixed_grows_once_and_then_has_room(runs):
    graph = fresh(GRAPHS["hubs"])
    for _ in range(2):
        run_search(graph, SEARCHES["push"], memory="fixed")
    first, second = runs
    assert first.num_grown > 0
    assert second.num_grown == 0
    assert second.kernel.num_launches == 1
    assert second.peaks[0] < first.peaks[0]
    assert first.output.entries == second.output.entries


def test_a_pull_that_makes_no_list_needs_no_room(monkeypatch):
    monkeypatch.setattr(memory, "FIRST_FACTOR", 1e-9)
    pulled, pushed = (lengths_of("fixed", GRAPHS["directed"], SEARCHES[name])[0] for name in ("auto", "push"))
    assert pulled < pushed / 2


@pytest.mark.parametrize("name", ["fused", "maximum"])
def test_a_queue_that_is_long_enough_has_todays_kernel(name, monkeypatch):
    loads = []
    FakeGPU().install(monkeypatch)
    monkeypatch.setattr(phase_run, "_load", lambda loaded, device: loads.append(loaded))
    shoal.bfs(fresh(GRAPHS["hubs"]), 0, devices="cuda", memory=name)
    shoal.bfs(fresh(GRAPHS["hubs"]), 0, devices="cuda", memory="fixed")
    plain, growing = loads
    assert "count_frontier_edges" not in plain.source.text
    assert "settle_room" not in plain.source.module
    assert growing is plain.growing
    assert growing.source.text.count("count_frontier_edges") == 1


def test_steps_by_priority_are_the_same_under_every_scheme(monkeypatch):
    graph = random_graph(2000, 12000, seed=1, weights="int32")
    found = {}
    for scheme in SCHEMES:
        with pytest.MonkeyPatch.context() as patch:
            said = FakeGPU().install(patch)
            shoal.sssp(fresh(graph), 0, parents=False, devices="cuda", memory=scheme)
            found[scheme] = said
    assert len({tuple(said) for said in found.values()}) == 1


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("search", ["push", "auto", "two in turn", "kept", "filtered"])
def test_a_limit_holds_or_the_error_says_what_is_needed(search, scheme, runs):
    graph = GRAPHS["directed"]
    expected = shoal.bfs(graph, 0).distance
    roomy = run_search(fresh(graph), SEARCHES[search]).stats.device_peaks[0]
    limit, needed, found = 0, 1, None
    while needed > limit:
        limit = needed
        try:
            found = run_search(fresh(graph), SEARCHES[search], memory=scheme, memory_limit=limit)
        except OutOfMemoryError as error:
            pattern = rf"Search: device cuda:0 needs (\d+) bytes beside the graph; memory_limit={limit}"
            needed = int(re.search(pattern, str(error))[1])
    np.testing.assert_array_equal(found.level, expected)
    assert found.stats.device_peaks[0] <= limit <= 1.05 * roomy


def test_a_limit_takes_room_from_a_scheme_that_wants_more(runs):
    graph = GRAPHS["hubs"]
    roomy = run_search(fresh(graph), SEARCHES["push"]).stats.device_peaks[0]
    wanted = run_search(fresh(graph), SEARCHES["push"], memory="maximum").stats.device_peaks[0]
    assert wanted - roomy == 4 * (graph.num_edges - graph.num_vertices)
    limit = (roomy + wanted) // 2
    found = run_search(fresh(graph), SEARCHES["push"], memory="maximum", memory_limit=limit)
    np.testing.assert_array_equal(found.level, shoal.bfs(graph, 0).distance)
    assert found.stats.device_peaks[0] <= limit


def make_room(scheme, factor=1.0, limit=None, program=None, num_vertices=1000, num_edges=20_000):
    program = program or BFS()
    phase = program.phases()[0]
    source = load_phase(program, phase, TYPES, "push" if isinstance(program, BFS) else "auto").source
    rooms = Rooms(source.flow, phase, num_vertices, num_edges, SCHEMES[scheme])
    sizes = BufferSizes(source, phase, num_vertices, 4, 132, 0)
    return OutputRoom(rooms, sizes, Allowance(SCHEMES[scheme], factor, Budget(limit, "BFS", "device cuda:0")), 8)


class Makes:
    """Makes queues up to some length, and notes those that were asked for."""

    def __init__(self, longest):
        self.longest, self.asked = longest, []

    def __call__(self, length):
        self.asked.append(length)
        if length > self.longest:
            raise OutOfMemoryError("no")
        return length


@pytest.mark.parametrize(
    ("scheme", "factor", "first"), [("fused", 1.0, 1000), ("maximum", 1.0, 20_000), ("just-enough", 1.0, 1000),
                                    ("fixed", 0.125, 125), ("fixed", 1.0, 1000)],
)  # fmt: skip
def test_room_before_a_run(scheme, factor, first):
    room = make_room(scheme, factor)
    room.begin(1, lambda: 10)
    assert room.entries == first
    assert room.may_grow == (first < (20_000 if scheme in ("just-enough", "maximum") else 1000))
    assert room.peak_bytes == room.num_bytes == room.sizes.num_bytes + 8


def test_a_first_frontier_has_room_for_its_edges():
    room = make_room("fixed", 1e-9)
    room.begin(3, lambda: 100)
    assert room.entries == 103  # behind the frontier itself
    room = make_room("just-enough")
    room.begin(1000, lambda: 20_000)
    assert room.entries == 20_000
    assert not room.may_grow


def test_room_at_least_doubles():
    room = make_room("fixed", 0.125)
    room.begin(1, lambda: 10)
    assert room.grow(120, 5, Makes(10**9)) is None
    assert room.grow(120, 10, Makes(10**9)) == 250
    assert room.grow(600, 300, Makes(10**9)) == 900
    assert room.grow(900, 500, Makes(10**9)) == 1000  # no more vertices there are
    assert not room.may_grow
    assert room.factor == 1.0
    assert room.peak_bytes == room.num_bytes + 4 * 900


def test_memory_that_is_short_is_no_error_if_less_will_do():
    room = make_room("just-enough")
    room.begin(1, lambda: 10)
    makes = Makes(1500)
    assert room.grow(1, 5000, makes) is None  # all vertices have room
    assert makes.asked == [5001]
    room = make_room("fixed", 0.125)
    room.begin(1, lambda: 10)
    makes = Makes(200)
    assert room.grow(120, 10, makes) == 130
    assert makes.asked == [250, 130]
    with pytest.raises(OutOfMemoryError, match="no"):
        room.grow(120, 500, makes)
    assert room.entries == 130


def test_a_limit_counts_both_queues_while_one_is_copied():
    room = make_room("fixed", 0.125)
    room.begin(1, lambda: 10)
    before = room.num_bytes
    others = before - 4 * 125
    for spare, expected in ((250, 250), (249, 130), (130, 130)):
        room = make_room("fixed", 0.125, limit=before + 4 * spare)
        room.begin(1, lambda: 10)
        assert room.grow(120, 10, Makes(10**9)) == expected
        assert room.peak_bytes == others + 4 * (125 + expected)
    room = make_room("fixed", 0.125, limit=before + 4 * 129)
    room.begin(1, lambda: 10)
    with pytest.raises(OutOfMemoryError, match=rf"BFS: device cuda:0 needs {before + 4 * 130} bytes"):
        room.grow(120, 10, Makes(10**9))


def test_by_priority_every_vertex_has_its_place():
    for scheme in SCHEMES:
        room = make_room(scheme, 0.125, program=SSSP(np.dtype(np.int32)))
        room.begin(1, lambda: 10)
        assert (room.entries, room.may_grow, room.factor) == (1000, False, 0.125)


@pytest.mark.parametrize("is_directed", [False, True])
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("search", ["push", "auto", "kept", "filtered"])
def test_a_search_takes_no_more_than_was_estimated(search, scheme, is_directed, monkeypatch):
    graph = random_graph(60_000, 300_000, skew=1.0, directed=is_directed)
    gpu, _ = cuda_stepper.install(monkeypatch, keeps_runs=False)
    run_search(fresh(graph), SEARCHES[search], memory=scheme)
    estimate = estimate_memory(graph, SEARCHES[search], devices="cuda", memory=scheme).gpu
    assert gpu.peak <= estimate.total_bytes
    if scheme != "just-enough":  # of which the most is estimated that it may come to
        assert estimate.total_bytes <= 1.6 * gpu.peak


def test_estimates_by_scheme():
    count, num_edges = 2**20, 2**25
    need = {name: estimate_memory((count, num_edges), "bfs", direction="push", devices="cuda", memory=name).gpu
            for name in SCHEMES}  # fmt: skip
    buffers = {name: found.buffer_bytes for name, found in need.items()}
    assert buffers["fixed"] == buffers["fused"]
    assert buffers["maximum"] - buffers["fused"] == 4 * (num_edges - count)
    assert buffers["just-enough"] == buffers["maximum"]
    assert need["fused"] == estimate_memory((count, num_edges), "bfs", direction="push", devices="cuda").gpu
    sssp = {
        name: estimate_memory((count, num_edges, True), "sssp", devices="cuda", memory=name).gpu for name in SCHEMES
    }
    assert sssp["fused"].buffer_bytes == sssp["maximum"].buffer_bytes


def test_a_scheme_that_cannot_fit_is_refused_and_others_run(monkeypatch):
    graph = random_graph(2000, 500_000, skew=1.0)
    total = estimate_memory(graph, SEARCHES["push"], devices="cuda").gpu.total_bytes
    cuda_stepper.install(monkeypatch, keeps_runs=False, total=int(1.1 * total))
    with pytest.raises(OutOfMemoryError, match=r"Search: device cuda:0 needs .*buffers .*such GPUs would have room"):
        run_search(fresh(graph), SEARCHES["push"], memory="maximum")
    for scheme in ("fused", "fixed", "just-enough"):
        gc.collect()  # the graph before
        found = run_search(fresh(graph), SEARCHES["push"], memory=scheme)
        np.testing.assert_array_equal(found.level, shoal.bfs(graph, 0).distance)


GROWING = {
    "bfs": BFS(),
    "bfs of a batch": BatchBFS(3),
    "betweenness": Betweenness(1),
    "flat parents": FlatParents(np.dtype(np.float32)),
}


@pytest.mark.parametrize("name", GROWING)
def test_kernels_that_grow_compile(name):
    program = GROWING[name]
    types = (*TYPES[:2], np.dtype(np.float32))
    assert load_phase(program, program.phases()[0], types, "auto").growing.cubin("sm_90")[:4] == b"\x7fELF"


def test_only_phases_with_open_outputs_have_two_kernels():
    program = SSSP(np.dtype(np.int32), parents="any")
    types = (*TYPES[:2], np.dtype(np.int32))
    assert [len(load_phase(program, phase, types, "auto").variants) for phase in program.phases()] == [1, 1]
    assert len(load_phase(BFS(), BFS().phases()[0], TYPES, "auto").variants) == 2
