# SPDX-License-Identifier: Apache-2.0
"""Every operator in a small program, against NumPy over sets of vertices and lists of edges."""

import numpy as np
import pytest
from scipy.sparse.csgraph import dijkstra

import shoal
from checks import assert_refused
from graphs import cycle_graph, from_pairs, path_graph, random_graph
from shoal import (
    Constant,
    Phase,
    Program,
    Scalar,
    Vertex,
    add,
    advance,
    atomic,
    compute,
    everything,
    gather,
    maximum,
    minimum,
    reduce,
    rule,
    swap,
    update,
)
from shoal import filter as keep_if
from shoal.backends.cpu import backend, phase_run
from shoal.errors import ArgumentError, ProgramError, ShoalError

THREADS = ["cpu:1x1", "cpu:1x3"]
SUPERSTEPS = 12
NUM_VERTICES = 700  # eleven words of a bitmap: what is left behind in one shows in the frontiers that follow


@pytest.fixture(autouse=True)
def _threads_on_small_graphs(monkeypatch):
    monkeypatch.setattr(backend, "SMALL_EDGES", 0)


@pytest.fixture(scope="module")
def sparse():
    return random_graph(NUM_VERTICES, 1400, seed=5, directed=True, skew=1.0)


@pytest.fixture(scope="module")
def weighted():
    return random_graph(3000, 12000, seed=6, directed=True, skew=1.5, weights="int32")


def edges_of(graph):
    """Sources and destinations of all edges, in the order of ``graph.indices``."""
    return np.repeat(np.arange(graph.num_vertices), np.diff(graph.indptr)), np.asarray(graph.indices)


def placed_on_zeros(graph, devices):
    """Place a graph with buffers full of zeros: a frontier of a wrong length then fails a test, not the process."""
    placed = shoal.place(graph, devices)
    words = (graph.num_vertices + 63) // 64
    queue = np.zeros(8 * graph.num_vertices, graph.indices.dtype)
    bitmaps = np.zeros((2, words), np.uint64)
    placed.shards[0].workspaces.append(backend.Workspace(queue, *bitmaps, np.zeros(64, np.int64)))
    return placed


# Frontiers: the same form of a step is recorded by the operators and carried out on sets.


class Walk(Program):
    """Follow some of the edges of a frontier and note in which supersteps every vertex was in it."""

    history = Vertex("int64")
    touched = Vertex("int64")

    def __init__(self, form, **phase):
        self.form = form
        self.phase = tuple(phase.items())

    def start(self, first):
        return first

    @rule
    def tally(vertex, superstep, history):
        history[vertex] += 1 << superstep

    @rule
    def touch(vertex, superstep, touched):
        touched[vertex] += 1 << superstep

    @rule
    def follow(src, dst, superstep):
        return (3 * src + 5 * dst + superstep) % 4 != 0

    @rule
    def cross(src, dst, superstep):
        return (src + dst + superstep) % 3 != 0

    @rule
    def is_kept(vertex, superstep):
        return (vertex + superstep) % 3 != 0

    @rule
    def is_low(vertex):
        return vertex % 5 != 0

    def step(self, frontier):
        compute(frontier, self.tally)
        return FORMS[self.form](Recorded(self), frontier)

    def phases(self):
        return [Phase(self.step, **{"max_supersteps": SUPERSTEPS, **dict(self.phase)})]


class Recorded:
    """The forms' words as operators of a program."""

    everything = everything

    def __init__(self, program):
        self.program = program

    def advance(self, frontier, **options):
        return advance(frontier, self.program.follow, **options)

    def pull(self, frontier, **options):
        options = {"direction": "pull", "early_exit": False, **options}
        return advance(frontier, self.program.follow, where=self.program.is_low, **options)

    def cross(self, frontier):
        return advance(frontier, self.program.cross)

    def kept(self, frontier):
        return keep_if(frontier, self.program.is_kept)

    def low(self, frontier):
        return keep_if(frontier, self.program.is_low)

    def touch(self, frontier):
        compute(frontier, self.program.touch)


class Simulated:
    """The forms' words on sets: a frontier is an array of booleans."""

    def __init__(self, graph):
        self.vertices = np.arange(graph.num_vertices)
        self.src, self.dst = edges_of(graph)
        self.everything = np.ones(graph.num_vertices, bool)
        self.touched = np.zeros(graph.num_vertices, np.int64)
        self.superstep = 0

    def advance(self, frontier, **options):
        return self._joined(frontier[self.src] & ((3 * self.src + 5 * self.dst + self.superstep) % 4 != 0))

    def pull(self, frontier, **options):
        accepts = (3 * self.src + 5 * self.dst + self.superstep) % 4 != 0
        return self._joined(frontier[self.src] & accepts & (self.dst % 5 != 0))

    def cross(self, frontier):
        return self._joined(frontier[self.src] & ((self.src + self.dst + self.superstep) % 3 != 0))

    def kept(self, frontier):
        return frontier & ((self.vertices + self.superstep) % 3 != 0)

    def low(self, frontier):
        return frontier & (self.vertices % 5 != 0)

    def touch(self, frontier):
        self.touched += frontier.astype(np.int64) << self.superstep

    def _joined(self, is_followed):
        joined = np.zeros(len(self.vertices), bool)
        joined[self.dst[is_followed]] = True
        return joined

    def run(self, form, first):
        frontier = np.zeros(len(self.vertices), bool)
        frontier[first] = True
        history = np.zeros(len(self.vertices), np.int64)
        while frontier.any() and self.superstep < SUPERSTEPS:
            history += frontier.astype(np.int64) << self.superstep
            frontier = form(self, frontier)
            self.superstep += 1
        return history


def _touched_then_returned(ops, frontier):
    output = ops.advance(frontier)
    ops.touch(output)
    return output


def _touched_and_replaced(ops, frontier):
    ops.touch(ops.advance(frontier))
    return ops.kept(ops.everything)


def _side_by_side(ops, frontier):
    ops.touch(ops.advance(frontier))
    return ops.cross(frontier)


def _pull_that_nobody_takes(ops, frontier):
    ops.pull(frontier)
    return ops.kept(frontier)


FORMS = {
    "advance": lambda ops, frontier: ops.advance(frontier),
    "pull": lambda ops, frontier: ops.pull(frontier),
    "where, push": lambda ops, frontier: ops.pull(frontier, direction="push", early_exit=True),
    "where, push, no early exit": lambda ops, frontier: ops.pull(frontier, direction="push"),
    "where, auto": lambda ops, frontier: ops.pull(frontier, direction="auto", early_exit=True),
    "filter after advance": lambda ops, frontier: ops.kept(ops.advance(frontier)),
    "two filters after advance": lambda ops, frontier: ops.low(ops.kept(ops.advance(frontier))),
    "filter before advance": lambda ops, frontier: ops.advance(ops.low(ops.kept(frontier))),
    "filter after pull": lambda ops, frontier: ops.kept(ops.pull(frontier)),
    "advance, filter, advance": lambda ops, frontier: ops.cross(ops.kept(ops.advance(frontier))),
    "advance from every vertex": lambda ops, frontier: ops.advance(ops.everything),
    "pull from every vertex": lambda ops, frontier: ops.pull(ops.everything),
    "an output touched, then returned": _touched_then_returned,
    "an output touched and replaced": _touched_and_replaced,
    "two advances side by side": _side_by_side,
    "a pull that nobody takes": _pull_that_nobody_takes,
    "every vertex returned": lambda ops, frontier: ops.everything,
    "the input returned": lambda ops, frontier: frontier,
}


@pytest.mark.parametrize("name", FORMS)
def test_frontiers_of_many_supersteps(name, sparse):
    """Threads and forms: nothing is lost, nothing is there twice, superstep after superstep."""
    first = [3, 130, 131, 400]
    simulated = Simulated(sparse)
    expected = simulated.run(FORMS[name], first)
    for devices in THREADS:
        result = shoal.run(Walk(name), placed_on_zeros(sparse, devices), first=first)
        np.testing.assert_array_equal(result.history, expected, err_msg=devices)
        np.testing.assert_array_equal(result.touched, simulated.touched, err_msg=devices)


def test_the_first_frontier_is_a_set(sparse):
    once = shoal.run(Walk("advance"), sparse, first=[3, 130])
    again = shoal.run(Walk("advance"), sparse, first=np.array([130, 3, 3, 130]))
    np.testing.assert_array_equal(once.history, again.history)


def test_no_first_frontier_means_every_vertex(sparse):
    every = shoal.run(Walk("advance"), sparse, first=range(NUM_VERTICES))
    none = shoal.run(Walk("advance"), sparse, first=None)
    np.testing.assert_array_equal(every.history, none.history)


def test_an_empty_first_frontier_ends_at_once(sparse):
    result = shoal.run(Walk("advance"), sparse, first=[])
    assert result.stats.num_supersteps == 0
    assert not result.history.any()


@pytest.mark.parametrize("limit", [0, 1, 5])
def test_max_supersteps(sparse, limit):
    result = shoal.run(Walk("advance", max_supersteps=limit), sparse, first=[3, 130])
    assert result.stats.num_supersteps == limit
    assert result.history.max(initial=0) < 1 << limit


def test_more_joins_than_declared_are_an_error():
    """On a cycle every vertex joins again and again; the buffers hold one frontier membership per vertex."""
    ring = cycle_graph(50, directed=True)
    for _ in range(2):
        assert_refused(
            lambda: shoal.run(Walk("advance", max_supersteps=10**6, joins=1), ring, first=range(50)),
            "Walk",
            "joins=1",
            error=ProgramError,
        )


# Early exit: a rule that counts how often it was asked.


class Claim(Program):
    """Hops; ``offers`` counts the calls of the rule at every vertex."""

    level = Vertex("int64", fill=-1)
    offers = Vertex("int64")

    def __init__(self, direction, early_exit):
        self.direction, self.early_exit = direction, early_exit

    def start(self, source):
        self.level[source] = 0
        return [source]

    @rule
    def is_free(vertex, level):
        return level[vertex] < 0

    @rule
    def offer(src, dst, superstep, level, offers):
        atomic.add(offers, dst, 1)
        return atomic.compare_exchange(level, dst, -1, superstep + 1)

    def step(self, frontier):
        options = {"direction": self.direction, "early_exit": self.early_exit}
        return advance(frontier, self.offer, where=self.is_free, unique=True, **options)


def levels_of(graph, source):
    distance = dijkstra(graph.to_scipy(), indices=source, unweighted=True)
    return np.where(np.isinf(distance), -1, distance).astype(np.int64)


def offers_of(graph, level):
    """Edges from one level to the next, by destination."""
    src, dst = edges_of(graph)
    offered = (level[src] >= 0) & (level[dst] == level[src] + 1)
    return np.bincount(dst[offered], minlength=graph.num_vertices)


@pytest.mark.parametrize("devices", THREADS)
def test_a_pull_leaves_early(sparse, devices):
    result = shoal.run(Claim("pull", True), sparse, source=3, devices=devices)
    level = levels_of(sparse, 3)
    np.testing.assert_array_equal(result.level, level)
    np.testing.assert_array_equal(result.offers, level > 0)
    assert result.stats.edges_visited < len(result.stats.trace) * sparse.num_edges


@pytest.mark.parametrize("devices", THREADS)
def test_a_pull_without_early_exit_asks_every_source(sparse, devices):
    result = shoal.run(Claim("pull", False), sparse, source=3, devices=devices)
    level = levels_of(sparse, 3)
    np.testing.assert_array_equal(result.level, level)
    np.testing.assert_array_equal(result.offers, offers_of(sparse, level))


def test_the_trace_tells_the_direction(sparse):
    for direction in ("push", "pull"):
        supersteps = shoal.bfs(sparse, 3, direction=direction).stats.to_dict()["supersteps"]
        assert {row["direction"][0] for row in supersteps} == {direction}


def test_an_author_who_says_unique_must_be_right():
    """Twelve edges to one vertex, and the rule accepts each of them."""
    many = from_pairs([(0, 1)] * 12, directed=True)
    assert_refused(lambda: shoal.run(Twice(), many), "Twice", "unique", error=ProgramError)


class Twice(Program):
    @rule
    def always(src, dst):
        return True

    def step(self, frontier):
        return advance(frontier, self.always, unique=True)


# Parts of the edges


class FewEdges(Program):
    first = Vertex("int64")
    rest = Vertex("int64")
    middle = Vertex("int64")

    @rule
    def count_first(dst, first):
        atomic.add(first, dst, 1)

    @rule
    def count_rest(dst, rest):
        atomic.add(rest, dst, 1)

    @rule
    def count_middle(dst, middle):
        atomic.add(middle, dst, 1)

    def step(self, frontier):
        advance(everything, self.count_first, first_edges=2)
        advance(frontier, self.count_rest, skip_edges=2)
        advance(everything, self.count_middle, skip_edges=1, first_edges=3)

    def phases(self):
        return [Phase(self.step, max_supersteps=1)]


@pytest.mark.parametrize("devices", THREADS)
def test_first_edges_and_skip_edges(weighted, devices):
    result = shoal.run(FewEdges(), weighted, devices=devices)
    src, dst = edges_of(weighted)
    rank = np.arange(len(src)) - np.asarray(weighted.indptr)[src]
    for name, chosen in {"first": rank < 2, "rest": rank >= 2, "middle": (rank >= 1) & (rank < 4)}.items():
        expected = np.bincount(dst[chosen], minlength=weighted.num_vertices)
        np.testing.assert_array_equal(getattr(result, name), expected, err_msg=name)


# Priorities


class Distances(Program):
    """Shortest paths with a bucket for every distance; ``early`` counts visits before a vertex's turn."""

    distance = Vertex("int64", fill=2**60)
    early = Vertex("int64")
    offset = Constant("int64")

    def __init__(self, limit=None):
        self.limit = limit

    def start(self, sources, offset=0):
        for source, distance in sources.items():
            self.distance[source] = distance
        self.offset = offset
        return list(sources)

    @rule
    def bucket(vertex, distance, offset):
        return distance[vertex] + offset

    @rule
    def relax(src, dst, weight, current_priority, distance, early, offset):
        if distance[src] + offset != current_priority:
            atomic.add(early, src, 1)
        return atomic.min(distance, dst, distance[src] + weight)

    def step(self, frontier):
        return advance(frontier, self.relax, priority=self.bucket)

    def phases(self):
        return [Phase(self.step, max_supersteps=self.limit)]


def shortest(graph, sources):
    """Distances from several sources that start at distances of their own."""
    matrix = graph.to_scipy()
    per_source = [dijkstra(matrix, indices=source) + distance for source, distance in sources.items()]
    distance = np.min(per_source, axis=0)
    return np.where(np.isinf(distance), 2**60, distance).astype(np.int64)


@pytest.fixture(scope="module")
def far_apart():
    """Weights from 1 to two millions: thousands of times more buckets than are within reach at once."""
    graph = random_graph(2000, 9000, seed=8, directed=True, skew=1.2)
    weights = np.random.default_rng(8).integers(0, 21, graph.num_edges)
    weights = (2.0**weights).astype(np.int32)
    return shoal.Graph.from_csr(graph.indptr, graph.indices, weights)


@pytest.fixture
def _tiny_arena(monkeypatch):
    monkeypatch.setattr(phase_run, "NUM_NEAR", 0)


@pytest.mark.parametrize("devices", THREADS)
def test_the_lowest_priority_goes_first(far_apart, devices):
    result = shoal.run(Distances(), far_apart, sources={0: 0}, devices=devices)
    np.testing.assert_array_equal(result.distance, shortest(far_apart, {0: 0}))
    assert not result.early.any()


@pytest.mark.usefixtures("_tiny_arena")
@pytest.mark.parametrize("devices", [*THREADS, "cpu:1x4"])
def test_a_full_arena_grows_and_loses_nothing(far_apart, devices):
    first = dict.fromkeys(range(0, 2000, 3), 0)
    expected = shortest(far_apart, {0: 0})
    for _ in range(3):
        np.testing.assert_array_equal(
            shoal.run(Distances(), far_apart, sources={0: 0}, devices=devices).distance, expected
        )
    many = shoal.run(Distances(), far_apart, sources=first, devices=devices)
    np.testing.assert_array_equal(many.distance, shortest(far_apart, first))


@pytest.mark.usefixtures("_tiny_arena")
def test_a_full_arena_does_not_add_a_superstep(far_apart):
    for limit in range(1, 9):
        result = shoal.run(Distances(limit), far_apart, sources={0: 0}, devices="cpu:1x1")
        assert result.stats.num_supersteps == limit


def test_first_vertices_of_different_priority_wait_their_turn(far_apart):
    sources = {0: 5000, 7: 0, 9: 10**7}
    result = shoal.run(Distances(), far_apart, sources=sources)
    np.testing.assert_array_equal(result.distance, shortest(far_apart, sources))
    assert not result.early.any()


@pytest.mark.parametrize("offset", [-1000, -(10**9)])
def test_a_priority_may_be_negative(far_apart, offset):
    result = shoal.run(Distances(), far_apart, sources={0: 0}, offset=offset)
    np.testing.assert_array_equal(result.distance, shortest(far_apart, {0: 0}))


class BestFirst(Program):
    """Visit what can be reached, in the order of ranks that do not change."""

    seen = Vertex("int64")
    rank = Constant("int64", is_array=True)

    def start(self, source, rank):
        self.rank = rank
        self.seen[source] = 1
        return [source]

    @rule
    def visit(dst, seen):
        return atomic.compare_exchange(seen, dst, 0, 1)

    @rule
    def rank_of(vertex, rank):
        return rank[vertex]

    def step(self, frontier):
        return advance(frontier, self.visit, priority=self.rank_of)


def test_a_priority_that_does_not_change(far_apart):
    """A vertex that the rule lets in waits, whether or not its priority moved."""
    rank = np.random.default_rng(3).integers(0, 10**6, far_apart.num_vertices)
    result = shoal.run(BestFirst(), far_apart, source=0, rank=rank)
    np.testing.assert_array_equal(result.seen == 1, levels_of(far_apart, 0) >= 0)


# Reductions


class Sums(Program):
    number = Vertex("float64")
    key = Vertex("int64")
    total = Scalar("float64")
    least = Scalar("float64", combine=minimum)
    most = Scalar("float64", combine=maximum)
    chosen = Scalar("float64")
    key_sum = Scalar("int64")
    least_key = Scalar("int64", combine=minimum)
    most_key = Scalar("int64", combine=maximum)
    least_of_none = Scalar("int32", combine=minimum)
    most_of_none = Scalar("float64", combine=maximum)
    sum_of_none = Scalar("int64", fill=7)
    twice = Scalar("float64")

    def start(self, number, key):
        self.number[:] = number
        self.key[:] = key

    @rule
    def three(vertex, number):
        return number[vertex], number[vertex], number[vertex]

    @rule
    def number_of(vertex, number):
        return number[vertex]

    @rule
    def three_keys(vertex, key):
        return key[vertex], key[vertex], key[vertex]

    @rule
    def is_even(vertex):
        return vertex % 2 == 0

    @rule
    def is_third(vertex):
        return vertex % 3 == 0

    @rule
    def never(vertex):
        return False

    @rule
    def doubled(total):
        return 2 * total

    def step(self, frontier):
        reduce(everything, self.three, into=(self.total, self.least, self.most))
        reduce(frontier, self.three_keys, into=[self.key_sum, self.least_key, self.most_key])
        chosen = keep_if(keep_if(everything, self.is_even), self.is_third)
        reduce(chosen, self.number_of, into=self.chosen)
        none = keep_if(chosen, self.never)
        reduce(none, self.three, into=(self.least_of_none, self.most_of_none, self.sum_of_none))
        update(self.twice, self.doubled)

    def phases(self):
        return [Phase(self.step, max_supersteps=1)]


@pytest.fixture(scope="module")
def numbers():
    generator = np.random.default_rng(11)
    return generator.standard_normal(3000) * 10.0 ** generator.integers(-9, 9, 3000)


@pytest.fixture(scope="module")
def keys():
    """Odd numbers beyond the reach of a double."""
    return np.random.default_rng(12).integers(2**54, 2**55, 3000) * 2 + 1


@pytest.fixture
def sums(weighted, numbers, keys):
    return [
        shoal.run(Sums(), weighted, number=numbers, key=keys, devices=f"cpu:1x{threads}") for threads in (1, 2, 5)
    ]


def test_reduce_by_every_combiner(sums, numbers):
    for result in sums:
        assert result.total == pytest.approx(numbers.sum())
        assert (result.least, result.most) == (numbers.min(), numbers.max())
        assert result.chosen == pytest.approx(numbers[::6].sum())
        assert result.twice == 2 * result.total


def test_a_reduction_does_not_depend_on_the_number_of_threads(sums):
    assert {result.stats.num_threads for result in sums} == {1, 2, 5}
    assert len({result.total.tobytes() for result in sums}) == 1
    assert len({result.chosen.tobytes() for result in sums}) == 1


def test_whole_numbers_are_reduced_exactly(sums, keys):
    for result in sums:
        assert (result.least_key, result.most_key) == (keys.min(), keys.max())
        assert result.key_sum == keys.sum()


def test_a_reduction_over_no_vertex_gives_what_changes_nothing(sums):
    for result in sums:
        assert result.sum_of_none == 0
        assert result.least_of_none == np.iinfo(np.int32).max
        assert result.most_of_none in (-np.inf, np.finfo(np.float64).min)


class Gathered(Program):
    total = Vertex("float64")
    least = Vertex("float64")
    most = Vertex("float64")
    part = Vertex("float64")
    own = Vertex("float64")
    all_weights = Scalar("float64")
    heaviest = Scalar("float64", combine=maximum)
    edge_value = Constant("float64", is_array=True)

    def start(self, edge_value):
        self.edge_value = edge_value

    @rule
    def weight_of(weight):
        return weight

    @rule
    def product(src, dst, weight):
        return weight * (src - dst)

    @rule
    def own_value(edge, edge_value):
        return edge_value[edge]

    @rule
    def store_total(vertex, value, total):
        total[vertex] = value
        return value, value

    @rule
    def store_least(vertex, value, least):
        least[vertex] = value

    @rule
    def store_most(vertex, value, most):
        most[vertex] = value

    @rule
    def store_part(vertex, value, part):
        part[vertex] = value

    @rule
    def store_own(vertex, value, own):
        own[vertex] = value

    @rule
    def is_odd(vertex):
        return vertex % 2 == 1

    def step(self, frontier):
        gather(everything, self.weight_of, finish=self.store_total, into=(self.all_weights, self.heaviest))
        gather(frontier, self.product, finish=self.store_least, combine=minimum)
        gather(everything, self.product, finish=self.store_most, combine=maximum)
        gather(keep_if(everything, self.is_odd), self.product, finish=self.store_part, combine=add)
        gather(everything, self.own_value, finish=self.store_own)

    def phases(self):
        return [Phase(self.step, max_supersteps=1)]


@pytest.fixture(params=THREADS)
def gathered(request, weighted):
    values = np.arange(weighted.num_edges) ** 2.0
    return shoal.run(Gathered(), weighted, edge_value=values, devices=request.param)


def test_gather_by_every_combiner(gathered, weighted):
    src, dst = edges_of(weighted)
    product = weighted.weights * (src - dst).astype(np.float64)
    count = weighted.num_vertices
    least, most = np.full(count, np.inf), np.full(count, -np.inf)
    np.minimum.at(least, dst, product)
    np.maximum.at(most, dst, product)
    total = np.bincount(dst, weighted.weights, count)
    np.testing.assert_array_equal(gathered.least, least)
    np.testing.assert_array_equal(gathered.most, most)
    np.testing.assert_array_equal(gathered.total, total)
    np.testing.assert_array_equal(gathered.part, np.where(np.arange(count) % 2, np.bincount(dst, product, count), 0))
    assert gathered.all_weights == weighted.weights.sum()
    assert gathered.heaviest == total.max()


def test_an_edge_has_one_number_whoever_looks_at_it(gathered, weighted):
    """``edge`` finds an author's own values also when edges are looked at from their destination."""
    _, dst = edges_of(weighted)
    expected = np.bincount(dst, np.arange(weighted.num_edges) ** 2.0, weighted.num_vertices)
    np.testing.assert_array_equal(gathered.own, expected)


# Swap, update, until


class Turns(Program):
    """Two arrays change places every superstep."""

    old = Vertex("int64")
    new = Vertex("int64", fill=100)
    num_turns = Scalar("int64", fill=1)
    last_superstep = Scalar("int64", fill=-1)
    limit = Constant("int64")

    def __init__(self, max_supersteps=None):
        self.max_supersteps = max_supersteps

    def start(self, limit=2**40):
        self.limit = limit

    @rule
    def grow(vertex, old, new):
        new[vertex] = old[vertex] + 1

    @rule
    def one_more(num_turns):
        return num_turns + 1

    @rule
    def this_superstep(superstep):
        return superstep

    @rule
    def is_over(num_turns, limit):
        return num_turns >= limit

    def step(self, frontier):
        update(self.last_superstep, self.this_superstep)
        compute(everything, self.grow)
        swap(self.old, self.new)
        update(self.num_turns, self.one_more)

    def phases(self):
        return [Phase(self.step, until=self.is_over, max_supersteps=self.max_supersteps)]


# 256 and 4096 supersteps fill the trace of one thread and of several: the loop comes back to Python in between.
@pytest.mark.parametrize("count", [1, 2, 3, 256, 257, 4096, 4097])
@pytest.mark.parametrize("devices", THREADS)
def test_swapped_fields_end_in_their_places(sparse, count, devices):
    result = shoal.run(Turns(count), sparse, devices=devices)
    assert (set(result.old), set(result.new)) == ({count}, {count - 1 if count > 1 else 0})
    assert (result.num_turns, result.last_superstep) == (count + 1, count - 1)
    assert result.stats.num_supersteps == count


def test_until_ends_a_phase(sparse):
    result = shoal.run(Turns(), sparse, limit=6)
    assert result.num_turns == 6
    assert result.stats.num_supersteps == 5


# Phases


class Stages(Program):
    """Hops, then the frontiers once more from the last to the first, then every vertex."""

    level = Vertex("int64", fill=-1)
    replayed = Vertex("int64", fill=-1)
    odd = Vertex("int64", fill=-1)
    reached = Scalar("int64")

    def __init__(self, replay="plain", joins=1, keep=True):
        self.replay, self.joins, self.keep = replay, joins, keep

    def start(self, sources):
        self.level[sources] = 0
        return sources

    @rule
    def discover(src, dst, level):
        return atomic.compare_exchange(level, dst, -1, level[src] + 1)

    @rule
    def stamp(vertex, superstep, replayed):
        replayed[vertex] = superstep

    @rule
    def stamp_odd(vertex, superstep, odd):
        odd[vertex] = superstep

    @rule
    def is_odd(vertex):
        return vertex % 2 == 1

    @rule
    def always(src, dst):
        return True

    @rule
    def is_reached(vertex, level):
        return level[vertex] >= 0

    def forward(self, frontier):
        return advance(frontier, self.discover, unique=True)

    def backward(self, frontier):
        compute(frontier, self.stamp)
        if self.replay == "filtered":
            compute(keep_if(frontier, self.is_odd), self.stamp_odd)
        return advance(frontier, self.always) if self.replay == "returning" else None

    def count(self, frontier):
        reduce(frontier, self.is_reached, into=self.reached)

    def phases(self):
        return [
            Phase(self.forward, keep=self.keep, joins=self.joins),
            Phase(self.backward, begin="replay"),
            Phase(self.count, begin="all", max_supersteps=1),
        ]


def check_stages(result, graph, source):
    level = levels_of(graph, source)
    np.testing.assert_array_equal(result.level, level)
    np.testing.assert_array_equal(result.replayed, np.where(level >= 0, level.max() - level, -1))
    assert result.reached == np.count_nonzero(level >= 0)


@pytest.mark.parametrize("devices", THREADS)
@pytest.mark.parametrize("replay", ["plain", "filtered"])
def test_replay_goes_through_the_frontiers_backwards(sparse, devices, replay):
    result = shoal.run(Stages(replay), placed_on_zeros(sparse, devices), sources=[3])
    check_stages(result, sparse, 3)
    if replay == "filtered":
        is_odd = np.arange(NUM_VERTICES) % 2 == 1
        np.testing.assert_array_equal(result.odd, np.where(is_odd, result.replayed, -1))


def test_a_replay_keeps_its_frontiers_whatever_its_step_returns(sparse):
    try:
        result = shoal.run(Stages("returning"), placed_on_zeros(sparse, "cpu:1x1"), sources=[3])
    except ProgramError as error:
        assert "replay" in str(error)  # noqa: PT017 - to refuse it is as good as to do it right
    else:
        check_stages(result, sparse, 3)


def test_a_replay_after_nothing_was_kept_replays_nothing(sparse):
    placed = placed_on_zeros(sparse, "cpu:1x1")
    shoal.run(Stages(), placed, sources=[3])
    result = shoal.run(Stages(), placed, sources=[])
    assert set(result.replayed) == {-1}


def test_keep_without_a_bound_on_joins(sparse):
    """It may be refused; it may not replay frontiers that were overwritten."""
    try:
        result = shoal.run(Stages(joins=None), placed_on_zeros(sparse, "cpu:1x1"), sources=[3])
    except ProgramError as error:
        assert "joins" in str(error)  # noqa: PT017
    else:
        check_stages(result, sparse, 3)


def test_a_replay_needs_a_phase_that_keeps(sparse):
    placed = placed_on_zeros(sparse, "cpu:1x1")
    assert_refused(lambda: shoal.run(Stages(keep=False), placed, sources=[3]), "replay", "keep", error=ProgramError)


# Names of fields


class Crowded(Program):
    """Fields under names that also mean something in compiled loops."""

    visited = Vertex("int64")
    pending = Vertex("int64")
    first = Vertex("int64")
    total = Scalar("int64")
    total_value = Vertex("int64")
    load = Vertex("int64")
    flush = Vertex("int64")
    np = Vertex("int64")

    @rule
    def see(src, dst, visited, pending, first, load, flush, np):
        atomic.add(visited, dst, 1)
        atomic.add(pending, dst, 2)
        atomic.add(first, dst, 3)
        atomic.add(load, dst, 4)
        atomic.add(flush, dst, 5)
        atomic.add(np, dst, 6)

    @rule
    def count(vertex, visited, total, total_value):
        total_value[vertex] = visited[vertex] + total
        return 1

    def step(self, frontier):
        advance(everything, self.see)
        reduce(everything, self.count, into=self.total)

    def phases(self):
        return [Phase(self.step, max_supersteps=1)]


def test_a_field_may_have_any_name(sparse):
    result = shoal.run(Crowded(), sparse)
    _, dst = edges_of(sparse)
    in_degree = np.bincount(dst, minlength=NUM_VERTICES)
    for factor, name in enumerate(["visited", "pending", "first", "load", "flush", "np"], 1):
        np.testing.assert_array_equal(getattr(result, name), factor * in_degree, err_msg=name)
    np.testing.assert_array_equal(result.total_value, in_degree)
    assert result.total == NUM_VERTICES


class Loops(Program):
    """Fields named as the parameters of every loop."""

    queue = Vertex("int64")
    levels = Vertex("int64", fill=3)
    thread = Scalar("int64", fill=2)
    weights = Constant("float64", is_array=True)

    def start(self):
        self.weights = [0.5]

    @rule
    def combine(vertex, queue, levels, thread, weights):
        queue[vertex] = levels[vertex] * thread + 2 * weights[0]

    def step(self, frontier):
        compute(frontier, self.combine)

    def phases(self):
        return [Phase(self.step, max_supersteps=1)]


def test_a_field_may_be_named_as_a_buffer(sparse):
    assert set(shoal.run(Loops(), sparse).queue) == {7}


# The same rule from both sides


class Reached(Program):
    """Hops over everything: unreached sources propose a number that does not fit."""

    level = Vertex("int32", fill=2**31 - 1, combine=minimum)

    def __init__(self, direction):
        self.direction = direction

    def start(self, source):
        self.level[source] = 0

    @rule
    def propose(src, dst, level):
        return atomic.min(level, dst, level[src] + 1)

    @rule
    def anywhere(vertex):
        return True

    def step(self, frontier):
        advance(everything, self.propose, where=self.anywhere, direction=self.direction)

    def phases(self):
        return [Phase(self.step, max_supersteps=3)]


@pytest.mark.parametrize("direction", ["push", "pull"])
def test_a_proposal_too_large_for_the_field_is_not_taken(direction):
    graph = path_graph(6)
    assert shoal.run(Reached(direction), graph, source=0).level[:2].tolist() == [0, 1]


# What a step may not do


def recorded(step):
    """Run a program of one step, with the rules below."""
    fields = {"level": Vertex("int64"), "total": Scalar("float64")}
    phases = lambda self: [Phase(self.step, max_supersteps=1)]  # noqa: E731
    program = type("Small", (Program,), {**fields, "step": step, "phases": phases})
    return lambda: shoal.run(program(), path_graph(3))


@rule
def on_edge(src, dst):
    return True


@rule
def on_vertex(vertex):
    return True


@rule
def all_over():
    return True


STEPS = {
    "nothing recorded": (lambda self, frontier: None, ["Small", "no operator"]),
    "junk returned": (lambda self, frontier: compute(frontier, on_vertex) or 42, ["Small", "42", "frontier"]),
    "no rule": (lambda self, frontier: advance(frontier, len), ["advance", "rule", "@rule"]),
    "no frontier": (lambda self, frontier: advance([1, 2], on_edge), ["advance", "[1, 2]", "frontier"]),
    "unknown direction": (lambda self, frontier: advance(frontier, on_edge, direction="up"), ["direction", "'up'"]),
    "pull without where": (lambda self, frontier: advance(frontier, on_edge, direction="pull"), ["pull", "where"]),
    "auto without where": (lambda self, frontier: advance(frontier, on_edge, direction="auto"), ["where"]),
    "where of an edge": (lambda self, frontier: advance(frontier, on_edge, where=on_edge), ["on_edge", "'src'"]),
    "negative first_edges": (lambda self, frontier: advance(frontier, on_edge, first_edges=-1), ["first_edges", "-1"]),
    "fractional skip_edges": (lambda self, frontier: advance(frontier, on_edge, skip_edges=1.5), ["skip_edges"]),
    "part of the edges in a pull": (
        lambda self, frontier: advance(frontier, on_edge, where=on_vertex, direction="pull", first_edges=2),
        ["first_edges", "pull"],
    ),
    "part of the edges by priority": (
        lambda self, frontier: advance(frontier, on_edge, priority=on_vertex, skip_edges=2),
        ["skip_edges", "priority"],
    ),
    "pull by priority": (
        lambda self, frontier: advance(frontier, on_edge, where=on_vertex, priority=on_vertex, direction="pull"),
        ["direction", "priority"],
    ),
    "advance after advance": (
        lambda self, frontier: advance(advance(frontier, on_edge), on_edge),
        ["on_edge", "filter"],
    ),
    "edge rule in a filter": (lambda self, frontier: keep_if(frontier, on_edge), ["on_edge", "'src'", "filter"]),
    "vertex rule in an advance": (lambda self, frontier: advance(frontier, on_vertex), ["on_vertex", "'vertex'"]),
    "vertex rule in an update": (lambda self, frontier: update(self.total, on_vertex), ["on_vertex", "'vertex'"]),
    "into no field": (
        lambda self, frontier: reduce(frontier, on_vertex, into=Scalar("float64", fill=3)),
        ["Scalar", "not a field", "Small"],
    ),
    "into a vertex field": (lambda self, frontier: reduce(frontier, on_vertex, into=self.level), ["level", "Scalar"]),
    "update of a vertex field": (lambda self, frontier: update(self.level, all_over), ["level", "Scalar"]),
    "swap of unlike fields": (lambda self, frontier: swap(self.level, self.total), ["level", "total", "types"]),
    "swap of no fields": (lambda self, frontier: swap(1, 2), ["not a field"]),
    "unknown combiner": (
        lambda self, frontier: gather(frontier, on_edge, finish=on_vertex, combine="add"),
        ["combine", "'add'"],
    ),
    "a frontier from elsewhere": (
        lambda self, frontier: compute(type(frontier)("output"), on_vertex),
        ["compute", "frontier"],
    ),
}


@pytest.mark.parametrize("name", STEPS)
def test_a_step_is_refused(name):
    step, words = STEPS[name]
    assert_refused(recorded(step), *words, error=ShoalError)


OUTSIDE = {
    "advance": lambda: advance(everything, on_edge),
    "gather": lambda: gather(everything, on_edge, finish=on_vertex),
    "filter": lambda: keep_if(everything, on_vertex),
    "compute": lambda: compute(everything, on_vertex),
    "reduce": lambda: reduce(everything, on_vertex, into=Sums.total),
    "update": lambda: update(Sums.total, all_over),
    "swap": lambda: swap(Turns.old, Turns.new),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_operators_are_for_steps_only(name):
    assert_refused(OUTSIDE[name], f"{name}()", "step", error=ProgramError)


def test_a_failed_step_leaves_no_recording_behind():
    with pytest.raises(ZeroDivisionError):
        recorded(lambda self, frontier: 1 // 0)()
    assert_refused(OUTSIDE["compute"], "compute()", error=ProgramError)


PHASES = {
    "unknown begin": ({"begin": "strat"}, ["begin", "'strat'", "start, all, replay"]),
    "negative limit": ({"max_supersteps": -1}, ["max_supersteps", "-1"]),
    "fractional limit": ({"max_supersteps": 1.5}, ["max_supersteps", "1.5"]),
    "no joins": ({"joins": 0}, ["joins", "0"]),
    "until no rule": ({"until": len}, ["until", "rule"]),
    "until of a vertex": ({"until": on_vertex}, ["on_vertex", "'vertex'"]),
}


@pytest.mark.parametrize("name", PHASES)
def test_a_phase_is_refused(name, sparse):
    options, words = PHASES[name]
    assert_refused(lambda: shoal.run(Walk("advance", **options), sparse, first=[0]), *words, error=ShoalError)


def test_a_pull_is_refused_where_there_is_none(sparse):
    assert_refused(
        lambda: shoal.run(Walk("advance"), sparse, first=[0], direction="pull"), "'pull'", "Walk", error=ArgumentError
    )


def test_a_push_is_refused_where_there_is_none(sparse):
    assert_refused(
        lambda: shoal.run(Walk("pull"), sparse, first=[0], direction="push"), "'push'", "Walk", error=ArgumentError
    )
