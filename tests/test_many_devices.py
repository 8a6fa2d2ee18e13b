# SPDX-License-Identifier: Apache-2.0
"""What devices send one another, counted, against the formulas of the papers."""

import math

import numpy as np
import pytest
from hypothesis import given

import shoal
from graphs import graphs
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
    filter,
    minimum,
    reduce,
    rule,
    update,
)
from shoal.strategies.communication import make_schedule
from shoal.strategies.duplication import build_subgraphs, describe_partition
from shoal.strategies.partition import partition_graph

pytestmark = pytest.mark.host_only("about several devices of the CPU")

GRAPH = shoal.generate.rmat(scale=9, edge_factor=8, seed=3, weights=(1, 9))
SOURCE = int(np.argmax(GRAPH.degree))


def placed(num_devices, partition="random", graph=GRAPH):
    """A graph on devices, with its borders: |B_i|, and the copies that other devices have of each one's vertices."""
    owner = partition_graph(graph, num_devices, partition)
    borders = np.array(describe_partition(graph, owner, num_devices).borders)
    parts = build_subgraphs(graph, owner, num_devices, "all", with_in_edges=True)
    copies = np.array([len(part.copy_here) for part in parts])
    return shoal.place(graph, f"cpu:{num_devices}", partition=owner), borders, copies


def per_device(stats, key):
    """A count of every device over the run."""
    return np.sum([superstep[key] for superstep in stats.to_dict()["supersteps"]], axis=0)


# Messages a level


@pytest.mark.parametrize(
    ("num_devices", "communication", "fanout", "rounds", "messages"),
    [(16, "butterfly", 1, 4, 64), (16, "butterfly", 4, 2, 96), (16, "broadcast", 1, 1, 240), (9, "butterfly", 1, 4, 33),
     (13, "butterfly", 1, 4, 50), (16, "ring", 1, 15, 240), (16, "selective", 1, 1, 240)],
)  # fmt: skip
def test_messages_of_a_level(num_devices, communication, fanout, rounds, messages):
    assert make_schedule(communication, num_devices, fanout).num_rounds == rounds
    how = {"communication": communication, "fanout": fanout, "direction": "push", "devices": f"cpu:{num_devices}"}
    stats = shoal.bfs(GRAPH, SOURCE, **how).stats.to_dict()
    assert stats["num_supersteps"] > 2
    for superstep in stats["supersteps"]:
        assert sum(superstep["messages"]) == messages
    assert stats["messages"] == messages * stats["num_supersteps"]


# Items over the run: the rows of Table I of Gunrock's multi-GPU paper


@pytest.mark.parametrize("partition", ["random", "segment"])
@pytest.mark.parametrize("num_devices", [2, 3, 4, 7])
def test_selective_bfs_sends_at_most_its_border(num_devices, partition):
    graph, borders, _ = placed(num_devices, partition)
    result = shoal.bfs(graph, SOURCE, communication="selective", direction="push")
    sent = per_device(result.stats, "items_sent")
    assert (sent <= borders).all()
    assert sent.sum() > 0


@given(graph=graphs(min_vertices=2))
def test_selective_bfs_sends_at_most_its_border_on_any_graph(graph):
    there, borders, _ = placed(3, graph=graph)
    result = shoal.bfs(there, 0, communication="selective", direction="push")
    if result.stats.num_supersteps:
        assert (per_device(result.stats, "items_sent") <= borders).all()


@pytest.mark.parametrize("num_devices", [2, 3, 4, 7])
@pytest.mark.parametrize("direction", ["auto", "push", "pull"])
def test_broadcast_bfs_sends_every_vertex_to_everybody_at_most_once(num_devices, direction):
    graph, _, _ = placed(num_devices)
    result = shoal.bfs(graph, SOURCE, communication="broadcast", direction=direction)
    sent = per_device(result.stats, "items_sent")
    assert (sent <= (num_devices - 1) * GRAPH.num_vertices).all()
    assert sent.sum() > 0


@pytest.mark.parametrize("num_devices", [2, 3, 4, 7])
def test_pagerank_sends_its_border_every_iteration(num_devices):
    graph, _, copies = placed(num_devices)
    result = shoal.pagerank(graph, communication="selective", iterations=5)
    for superstep in result.stats.to_dict()["supersteps"]:
        assert superstep["items_sent"] == copies.tolist()


@pytest.mark.parametrize("num_devices", [2, 3, 4])
def test_sssp_sends_its_border_at_most_twice_for_every_visit(num_devices):
    graph, borders, _ = placed(num_devices)
    result = shoal.sssp(graph, SOURCE, communication="selective", parents=False)
    # b: how often a vertex's edges are looked at, on average
    b = max(1.0, result.stats.edges_visited / GRAPH.num_edges)
    supersteps = result.stats.num_supersteps
    sent = per_device(result.stats, "items_sent")
    assert (sent <= np.minimum(2 * np.ceil(b), supersteps) * borders).all()


@pytest.mark.parametrize("num_devices", [2, 3, 4])
def test_betweenness_sends_a_few_times_its_border_and_its_own_vertices(num_devices):
    graph, borders, copies = placed(num_devices)
    owned = np.bincount(graph.owner, minlength=num_devices)
    result = shoal.betweenness_centrality(graph, [SOURCE], communication="broadcast")
    sent = per_device(result.stats, "items_sent")
    # Forward: proposals to everybody and the frontier twice (what it has seen, and its paths for a pull); backward the
    # level's shares.  The paper counts 5 |B| + 2 (n - 1) |L| values, several to an item.
    assert (sent <= (num_devices - 1) * (5 * borders + 3 * owned)).all()
    assert (copies >= 0).all()


@pytest.mark.parametrize("num_devices", [2, 3, 4, 7])
def test_components_send_every_vertex_twice_at_most(num_devices):
    graph, _, _ = placed(num_devices)
    result = shoal.connected_components(graph, communication="broadcast")
    stats = result.stats.to_dict()
    assert stats["num_supersteps"] == 2
    assert (per_device(result.stats, "items_sent") <= 2 * (num_devices - 1) * GRAPH.num_vertices).all()


@pytest.mark.parametrize("partition", ["random", "segment"])
@pytest.mark.parametrize("num_devices", [2, 3, 7])
def test_pagerank_is_the_same_to_the_last_bit(num_devices, partition):
    graph, _, _ = placed(num_devices, partition)
    one, many = shoal.pagerank(GRAPH, tolerance=1e-9), shoal.pagerank(graph, tolerance=1e-9)
    assert many.iterations == one.iterations
    assert many.error == one.error
    np.testing.assert_array_equal(many.rank, one.rank)


def test_combined_items_are_those_received():
    graph, _, _ = placed(3)
    stats = shoal.bfs(graph, SOURCE, communication="selective", direction="push").stats.to_dict()
    assert stats["items_combined"] == stats["items_sent"]
    itemsize = 4 + 4 + 4  # an id, a distance, a parent
    assert stats["bytes_sent"] == itemsize * stats["items_sent"]


def test_one_device_sends_nothing():
    stats = shoal.bfs(GRAPH, SOURCE).stats.to_dict()
    assert [stats[key] for key in ("messages", "items_sent", "bytes_sent", "items_combined")] == [0, 0, 0, 0]
    assert stats["num_devices"] == 1


def test_statistics_have_a_value_for_every_device():
    stats = shoal.bfs(GRAPH, SOURCE, devices="cpu:3").stats.to_dict()
    assert stats["num_devices"] == 3
    assert stats["config"]["communication"] == "broadcast"
    assert stats["config"]["duplication"] == "all"
    for superstep in stats["supersteps"]:
        assert all(len(values) == 3 for values in superstep.values())
    assert stats["edges_visited"] == sum(sum(row["edges_visited"]) for row in stats["supersteps"])
    assert sum(stats["supersteps"][0]["frontier_size"]) == 1


# Copies


class Peeling(Program):
    """The k-core; what is added to begins with values of its own."""

    edges_left = Vertex("int32", combine=add)
    has_gone = Vertex("bool")
    k = Constant("int64")

    def start(self, k, degree):
        self.k = k
        self.edges_left[:] = degree
        self.has_gone[:] = degree < k
        return np.flatnonzero(degree < k)

    @rule
    def lose_edge(dst, edges_left):
        atomic.add(edges_left, dst, -1)
        return True

    @rule
    def falls(vertex, edges_left, has_gone, k):
        if has_gone[vertex] or edges_left[vertex] >= k:
            return False
        has_gone[vertex] = True
        return True

    def step(self, frontier):
        return filter(advance(frontier, self.lose_edge), self.falls)


@pytest.mark.parametrize("communication", ["selective", "broadcast", "butterfly", "ring"])
@pytest.mark.parametrize("num_devices", [2, 3])
def test_initial_values_of_sums_are_the_owners_alone(num_devices, communication):
    expected = shoal.run(Peeling(), GRAPH, k=6, degree=GRAPH.degree)
    how = {"devices": f"cpu:{num_devices}", "communication": communication}
    found = shoal.run(Peeling(), GRAPH, k=6, degree=GRAPH.degree, **how)
    assert 0 < np.count_nonzero(expected.has_gone) < GRAPH.num_vertices
    np.testing.assert_array_equal(found.has_gone, expected.has_gone)
    np.testing.assert_array_equal(found.edges_left, expected.edges_left)


class Looking(Program):
    """Hops by a push that writes nothing: who is reached is decided by a filter, at the owner."""

    level = Vertex("int32", fill=-1)

    def start(self, source):
        self.level[source] = 0
        return [source]

    @rule
    def look(dst, level):
        return level[dst] == -1

    @rule
    def settle(vertex, superstep, level):
        if level[vertex] != -1:
            return False
        level[vertex] = superstep + 1
        return True

    def step(self, frontier):
        return filter(advance(frontier, self.look), self.settle)


@rule
def _divide(vertex, value, divisor):
    while True:
        old = divisor[vertex]
        new = math.gcd(old, value)
        if new == old:
            return False
        if atomic.compare_exchange(divisor, vertex, old, new):
            return True


class Divisors(Program):
    """The greatest common divisor of a component's numbers, by a combining rule that also pushes."""

    divisor = Vertex("int64", combine=_divide)

    def start(self, numbers):
        self.divisor[:] = numbers
        return np.flatnonzero(numbers)

    @rule
    def offer(src, dst, divisor):
        return _divide(dst, divisor[src], divisor)

    def step(self, frontier):
        return advance(frontier, self.offer)


@pytest.mark.parametrize("communication", ["broadcast", "butterfly", "ring"])
@pytest.mark.parametrize("num_devices", [2, 3, 4])
def test_vertices_join_though_no_value_is_sent_to_their_owners(num_devices, communication):
    how = {"devices": f"cpu:{num_devices}", "communication": communication}
    grid = shoal.generate.grid(9, 9)
    np.testing.assert_array_equal(shoal.run(Looking(), grid, source=0, **how).level, shoal.bfs(grid, 0).distance)
    numbers = np.zeros(81, np.int64)
    numbers[[0, 40, 80]] = 84, 126, 210
    assert set(shoal.run(Divisors(), grid, numbers=numbers, **how).divisor) == {42}


class Reached(Program):
    """Every vertex reached, again and again: the rule's True does not look at what it writes."""

    least = Vertex("int64", fill=9, combine=minimum)
    visits = Vertex("int64", fill=0)

    def start(self, source):
        return [source]

    @rule
    def count(vertex, visits):
        visits[vertex] += 1

    @rule
    def propose(src, dst, least):
        atomic.min(least, dst, 5)
        return True

    def step(self, frontier):
        compute(frontier, self.count)
        return advance(frontier, self.propose)

    def phases(self):
        return [Phase(self.step, max_supersteps=6)]


@pytest.mark.parametrize("communication", ["selective", "broadcast", "butterfly", "ring"])
@pytest.mark.parametrize("num_devices", [2, 3, 4])
def test_a_rule_that_does_not_look_is_taken_at_its_word(num_devices, communication):
    for graph in (GRAPH, shoal.generate.grid(9, 9)):
        expected = shoal.run(Reached(), graph, source=SOURCE % graph.num_vertices)
        how = {"devices": f"cpu:{num_devices}", "communication": communication, "partition": "random"}
        found = shoal.run(Reached(), graph, source=SOURCE % graph.num_vertices, **how)
        np.testing.assert_array_equal(found.visits, expected.visits)
        np.testing.assert_array_equal(found.least, expected.least)


def test_a_placed_graph_says_what_fanout_and_partition_fit():
    graph = shoal.place(GRAPH, "cpu:4")
    expected = shoal.bfs(GRAPH, SOURCE).distance
    found = shoal.bfs(graph, SOURCE, communication="butterfly", fanout=4, partition="segment")
    np.testing.assert_array_equal(found.distance, expected)
    with pytest.raises(shoal.ArgumentError, match=r"fanout=5 .* from 1 to 4"):
        shoal.bfs(graph, SOURCE, fanout=5)
    with pytest.raises(shoal.ArgumentError, match=r"fanout=2 .* from 1 to 1"):
        shoal.bfs(GRAPH, SOURCE, fanout=2)
    with pytest.raises(shoal.ArgumentError, match="partition='random' does not fit"):
        shoal.bfs(graph, SOURCE, partition="random")


class ReducedTwice(Program):
    """Two sums into one scalar, with a look between them that counts what is wrong."""

    total = Scalar("int64")
    seen = Scalar("int64")
    wrong = Scalar("int64")

    @rule
    def one(vertex):
        return 1

    @rule
    def thousand(vertex):
        return 1000

    @rule
    def look(total):
        return total

    @rule
    def count_wrong(wrong, seen, num_vertices):
        return wrong + (seen != num_vertices)

    def step(self, frontier):
        reduce(everything, self.one, into=self.total)
        update(self.seen, self.look)
        update(self.wrong, self.count_wrong)
        reduce(everything, self.thousand, into=self.total)

    def phases(self):
        return [Phase(self.step, max_supersteps=2000)]


@pytest.mark.parametrize("devices", ["cpu:2x1", "cpu:4x1"])
def test_nobody_sums_over_a_sum_that_others_still_read(devices):
    found = shoal.run(ReducedTwice(), shoal.generate.grid(4, 4), devices=devices)
    assert (found.wrong, found.seen, found.total) == (0, 16, 16_000)


class TooOften(Program):
    """Every vertex joins again and again, which the phase does not allow."""

    visits = Vertex("int64")

    def start(self):
        return [0]

    @rule
    def always(src, dst):
        return True

    @rule
    def count(vertex, visits):
        visits[vertex] += 1

    def forward(self, frontier):
        return advance(frontier, self.always)

    def backward(self, frontier):
        compute(frontier, self.count)

    def phases(self):
        return [Phase(self.forward, keep=True, joins=1, max_supersteps=60), Phase(self.backward, begin="replay")]


@pytest.mark.parametrize("devices", ["cpu:1x1", "cpu:4x1"])
def test_a_vertex_that_joins_too_often_is_refused(devices):
    ring = shoal.Graph.from_edges(np.arange(16), np.roll(np.arange(16), -1), directed=True)
    with pytest.raises(shoal.ProgramError, match="joins=1"):
        shoal.run(TooOften(), ring, devices=devices, duplication="all", communication="broadcast")


class Falling(Program):
    """Every vertex counts down by itself and leaves: devices have nothing to send but how many are left."""

    left = Vertex("int64")
    rounds = Vertex("int64", fill=0)

    def start(self, left):
        self.left[:] = left

    @rule
    def count(vertex, left, rounds):
        rounds[vertex] += 1
        left[vertex] -= 1
        return left[vertex] > 0

    def step(self, frontier):
        return filter(frontier, self.count)


@pytest.mark.parametrize("devices", ["cpu:2x1", "cpu:4x1", "cpu:3x2"])
def test_supersteps_in_which_nothing_is_sent(devices):
    left = np.random.default_rng(5).integers(1, 4000, GRAPH.num_vertices)
    found = shoal.run(Falling(), GRAPH, left=left, devices=devices)
    np.testing.assert_array_equal(found.rounds, left)
    assert found.stats.num_supersteps == left.max()
    assert found.stats.to_dict()["messages"] == 0


def test_vertices_join_where_neighbours_are_enough():
    grid = shoal.generate.grid(9, 9)
    found = shoal.run(Looking(), grid, source=0, devices="cpu:3", communication="selective")
    np.testing.assert_array_equal(found.level, shoal.bfs(grid, 0).distance)


@given(graph=graphs(min_vertices=1, max_vertices=10, max_edges=14))
def test_components_of_small_graphs(graph):
    """What joins the tree of vertex 0 gets the value that its label had at first: it must be sent all the same."""
    expected = shoal.connected_components(graph)
    for communication in ("broadcast", "butterfly", "ring"):
        found = shoal.connected_components(graph, devices="cpu:3", partition="random", communication=communication)
        np.testing.assert_array_equal(found.label, expected.label)
        assert found.count == expected.count
