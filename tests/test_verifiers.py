# SPDX-License-Identifier: Apache-2.0
"""The verifiers of paths accept what SciPy computes, and catch every way tried here of being wrong."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import oracles
from corruption import both, cast, corruptions, put
from graphs import LARGER, SPECIAL, from_pairs, graphs, path_graph, random_graph
from shoal.algorithms.verification import edge_chunks
from shoal.algorithms.verify_bfs import verify_bfs
from shoal.algorithms.verify_sssp import verify_sssp
from shoal.errors import ValidationError

pytestmark = pytest.mark.host_only("results are verified on the host")


@given(graphs(weights="any", any_width=True), st.integers(1, 9))
def test_edge_chunks_give_every_edge_once(graph, size):
    chunks = list(edge_chunks(graph, size))
    src, dst = oracles.edge_arrays(graph)
    assert all(len(chunk.src) <= size for chunk in chunks)
    if chunks:
        np.testing.assert_array_equal(np.concatenate([chunk.src for chunk in chunks]), src)
        np.testing.assert_array_equal(np.concatenate([chunk.dst for chunk in chunks]), dst)
        np.testing.assert_array_equal(np.concatenate([chunk.weight for chunk in chunks]), graph.weights)
    else:
        assert graph.num_edges == 0


class TestBFS:
    @staticmethod
    def search(graph, source=0):
        return {
            "distance": oracles.bfs_distance(graph, source),
            "parent": oracles.breadth_first_parents(graph, source),
        }

    @staticmethod
    def example():
        pairs = [(0, 1), (0, 2), (1, 3), (2, 3), (3, 4), (1, 7), (5, 6), (3, 3)]
        return from_pairs(pairs, num_vertices=9)

    @given(graphs(), st.data())
    def test_accepts_right_results(self, graph, data):
        source = data.draw(st.integers(0, graph.num_vertices - 1))
        found = self.search(graph, source)
        verify_bfs(graph, source, **found)
        verify_bfs(graph, source, found["distance"])
        cutoff = data.draw(st.integers(0, 5))
        near = {name: np.where(found["distance"] > cutoff, -1, values) for name, values in found.items()}
        verify_bfs(graph, source, **near, cutoff=cutoff)

    @pytest.mark.parametrize("name", [*SPECIAL, *LARGER])
    def test_accepts_right_results_on_named_graphs(self, name):
        graph = {**SPECIAL, **LARGER}[name]()
        verify_bfs(graph, graph.num_vertices - 1, **self.search(graph, graph.num_vertices - 1))

    def test_accepts_a_batch_and_names_the_bad_row(self):
        graph = self.example()
        rows = [self.search(graph, source) for source in (0, 4, 8)]
        distance, parent = (np.stack([row[name] for row in rows]) for name in ("distance", "parent"))
        verify_bfs(graph, [0, 4, 8], distance, parent)
        distance[1, 3] = 5
        with pytest.raises(ValidationError, match=r"row 1, source 4: .* vertex 1 is 2"):
            verify_bfs(graph, [0, 4, 8], distance, parent)
        with pytest.raises(ValidationError, match="3 rows, but there are 2 sources"):
            verify_bfs(graph, [0, 4], distance, parent)

    def test_accepts_a_search_that_stopped_at_its_targets(self):
        graph = path_graph(6)
        distance, parent = np.array([0, 1, 2, -1, -1, -1]), np.array([0, 0, 1, -1, -1, -1])
        verify_bfs(graph, 0, distance, parent, targets=[1, 2])
        with pytest.raises(ValidationError, match="vertex 3 is unreachable"):
            verify_bfs(graph, 0, distance, parent, targets=[1, 4])
        with pytest.raises(ValidationError, match="vertex 3 is unreachable"):
            verify_bfs(graph, 0, distance, parent)

    @corruptions(
        ("source not at level 0", put("distance", 0, 1), "source"),
        ("source without itself as parent", put("parent", 0, 1), "own parent"),
        ("source reported unreachable", both(put("distance", 0, -1), put("parent", 0, -1)), "source"),
        ("too far", put("distance", 4, 4), "differ by one"),
        ("too near", put("distance", 4, 2), "differ by one"),
        ("too far, with its subtree", both(put("distance", 3, 3), put("distance", 4, 4), put("parent", 3, 7)), "level"),
        ("parent is no neighbour", put("parent", 4, 7), "no edge 7 -> 4"),
        ("parent on the same level", put("parent", 3, 7), "differ by one"),
        ("its own parent", put("parent", 4, 4), "differ by one"),
        ("own parent by a self-loop", put("parent", 3, 3), "differ by one"),
        ("reachable vertex left out", both(put("distance", 4, -1), put("parent", 4, -1)), "vertex 4 is unreachable"),
        ("unreachable vertex reached", both(put("distance", 8, 1), put("parent", 8, 0)), "no edge 0 -> 8"),
        ("foreign cycle", both(put("distance", slice(5, 7), 1), put("parent", 5, 6), put("parent", 6, 5)), "differ"),
        ("reached without parent", put("parent", 4, -1), "vertex 4 is reached"),
        ("parent without distance", put("parent", 8, 0), "vertex 8 is unreachable"),
        ("parent is no vertex", put("parent", 4, 9), "parent[4]=9 is no vertex"),
        ("parent far below -1", put("parent", 4, -7), "parent[4]=-7 is no vertex"),
        ("level below -1", put("distance", 8, -2), "distance[8]=-2"),
        ("too few values", cast("distance", lambda a: a[:-1]), "shape"),
        ("floating-point levels", cast("distance", lambda a: a.astype(float)), "dtype"),
    )
    def test_catches(self, corrupt, words):
        graph, found = self.example(), self.search(self.example())
        verify_bfs(graph, 0, **found)
        corrupt(found)
        with pytest.raises(ValidationError) as caught:
            verify_bfs(graph, 0, **found)
        assert words in str(caught.value)

    @pytest.mark.parametrize(
        ("vertex", "value", "words"),
        [
            (4, 2, "no edge from a vertex"),
            (4, 4, "more than one level"),
            (8, 0, "vertex 8"),
            (3, -1, "vertex 3"),
        ],
    )
    def test_catches_wrong_levels_without_parents(self, vertex, value, words):
        distance = self.search(self.example())["distance"]
        distance[vertex] = value
        with pytest.raises(ValidationError, match=words):
            verify_bfs(self.example(), 0, distance)

    def test_catches_vertices_beyond_the_cutoff_and_missing_before_it(self):
        graph, found = self.example(), self.search(self.example())
        with pytest.raises(ValidationError, match="beyond the cutoff 2"):
            verify_bfs(graph, 0, **found, cutoff=2)
        near = {name: np.where(found["distance"] > 1, -1, values) for name, values in found.items()}
        with pytest.raises(ValidationError, match="unreachable"):
            verify_bfs(graph, 0, **near, cutoff=2)

    @given(graphs(), st.data())
    def test_catches_any_changed_level(self, graph, data):
        source, vertex = (data.draw(st.integers(0, graph.num_vertices - 1)) for _ in range(2))
        found = self.search(graph, source)
        change = data.draw(st.integers(-3, 3).filter(bool))
        found["distance"][vertex] += change
        for parent in (found["parent"], None):
            with pytest.raises(ValidationError):
                verify_bfs(graph, source, found["distance"], parent)


class TestSSSP:
    @staticmethod
    def search(graph, source=0):
        return {
            "distance": oracles.sssp_distance(graph, source),
            "parent": oracles.shortest_path_parents(graph, source),
        }

    @staticmethod
    def example():
        pairs = [(0, 1), (0, 2), (1, 2), (2, 3), (0, 4), (1, 4), (3, 4), (5, 6), (3, 3)]
        return from_pairs(pairs, weights=[4, 1, 2, 7, 20, 6, 1, 1, 0], num_vertices=8)

    @given(graphs(weights="any"), st.data())
    def test_accepts_right_results(self, graph, data):
        source = data.draw(st.integers(0, graph.num_vertices - 1))
        found = self.search(graph, source)
        verify_sssp(graph, source, **found)
        verify_sssp(graph, source, found["distance"])
        verify_sssp(graph, source, found["distance"].astype("float32"), found["parent"])
        cutoff = data.draw(st.floats(0, 10))
        is_far = found["distance"] > cutoff
        near = np.where(is_far, np.inf, found["distance"]), np.where(is_far, -1, found["parent"])
        verify_sssp(graph, source, *near, cutoff=cutoff)
        verify_sssp(graph, source, near[0], cutoff=cutoff)

    @pytest.mark.parametrize("name", [*SPECIAL, *LARGER])
    def test_accepts_right_results_on_named_graphs(self, name):
        graph = {**SPECIAL, **LARGER}[name]()
        verify_sssp(graph, 0, **self.search(graph))

    @pytest.mark.parametrize("weights", ["int32", "float32", "float64"])
    def test_accepts_right_results_on_a_larger_weighted_graph(self, weights):
        graph = random_graph(weights=weights, directed=True)
        found = self.search(graph, 17)
        verify_sssp(graph, 17, **found)
        verify_sssp(graph, 17, found["distance"])

    def test_accepts_a_batch(self):
        graph = self.example()
        rows = [self.search(graph, source) for source in (0, 5)]
        verify_sssp(graph, [0, 5], *(np.stack([row[name] for row in rows]) for name in ("distance", "parent")))

    def test_accepts_a_search_that_stopped_at_its_targets(self):
        graph = path_graph(5, weights=[1, 2, 3, 4])
        distance, parent = np.array([0, 1, 3, np.inf, np.inf]), np.array([0, 0, 1, -1, -1])
        verify_sssp(graph, 0, distance, parent, targets=[2])
        with pytest.raises(ValidationError, match=r"distance\[3\]=inf"):
            verify_sssp(graph, 0, distance, parent, targets=[2, 4])
        skipped = np.array([0, np.inf, 3, np.inf, np.inf])
        with pytest.raises(ValidationError, match=r"distance\[1\]=inf"):
            verify_sssp(graph, 0, skipped, targets=[2])

    @corruptions(
        ("source not at 0", put("distance", 0, 1), "source"),
        ("source without itself as parent", put("parent", 0, 2), "own parent"),
        ("too far", put("distance", 4, 10), "gives a path of length 9"),
        ("too near", put("distance", 4, 8), "no sum"),
        ("a whole subtree too near", both(put("distance", 3, 7), put("distance", 4, 8)), "no sum"),
        ("negative", put("distance", 1, -1), "negative"),
        ("not a number", put("distance", 1, np.nan), "not a number"),
        ("parent edge not tight", put("parent", 4, 0), "no sum"),
        ("parent is no neighbour", put("parent", 3, 0), "no edge 0 -> 3"),
        ("parents in a cycle", both(put("parent", 3, 4), put("parent", 4, 3)), "no sum"),
        ("its own parent by a zero-weight loop", put("parent", 3, 3), "cycle"),
        ("reachable vertex left out", both(put("distance", 3, np.inf), put("parent", 3, -1)), "distance[3]=inf"),
        ("unreachable vertex reached", both(put("distance", 7, 3), put("parent", 7, 0)), "no edge 0 -> 7"),
        (
            "unreachable component",
            both(put("distance", slice(5, 7), 1), put("parent", 5, 6), put("parent", 6, 5)),
            "no",
        ),
        ("reached without parent", put("parent", 4, -1), "vertex 4 is reached"),
        ("parent without distance", put("parent", 7, 0), "vertex 7 is unreachable"),
        ("parent is no vertex", put("parent", 4, 8), "parent[4]=8 is no vertex"),
        ("too many values", cast("distance", lambda a: np.append(a, 0)), "shape"),
        ("integer distances", cast("distance", lambda a: np.zeros(len(a), int)), "dtype"),
    )
    def test_catches(self, corrupt, words):
        graph, found = self.example(), self.search(self.example())
        verify_sssp(graph, 0, **found)
        corrupt(found)
        with pytest.raises(ValidationError) as caught:
            verify_sssp(graph, 0, **found)
        assert words in str(caught.value)

    def test_catches_parents_round_a_zero_weight_cycle(self):
        graph = SPECIAL["zero-weight cycle, directed"]()
        distance = np.array([0.0, 5, 5, 5, 7])
        verify_sssp(graph, 0, distance, np.array([0, 0, 1, 2, 3]))
        with pytest.raises(ValidationError, match="run in a cycle"):
            verify_sssp(graph, 0, distance, np.array([0, 3, 1, 2, 3]))

    def test_catches_a_zero_weight_cycle_that_is_too_near_without_parents(self):
        graph = SPECIAL["zero-weight cycle, directed"]()
        verify_sssp(graph, 0, np.array([0.0, 5, 5, 5, 7]))
        with pytest.raises(ValidationError, match="no chain of tight edges"):
            verify_sssp(graph, 0, np.array([0.0, 3, 3, 3, 5]))

    @pytest.mark.parametrize(("dtype", "accepted", "caught"), [("float64", 1e-13, 1e-10), ("float32", 2e-7, 1e-5)])
    def test_rounding_is_accepted_and_more_is_not(self, dtype, accepted, caught):
        graph = path_graph(4, weights=np.array([0.1, 0.2, 0.3], dtype=dtype))
        distance, parent = np.array([0, 0.1, 0.3, 0.6]), np.array([0, 0, 1, 2])
        verify_sssp(graph, 0, (distance * [1, 1, 1, 1 + accepted]).astype(dtype), parent)
        for sign in (1, -1):
            with pytest.raises(ValidationError):
                verify_sssp(graph, 0, (distance * [1, 1, 1, 1 + sign * caught]).astype(dtype), parent)

    @given(graphs(weights="int32"), st.data())
    def test_catches_any_changed_distance(self, graph, data):
        source, vertex = (data.draw(st.integers(0, graph.num_vertices - 1)) for _ in range(2))
        found = self.search(graph, source)
        value = data.draw(st.sampled_from([np.inf, 0.0, 1.0]) | st.floats(0, 5000))
        assume(value != found["distance"][vertex])
        found["distance"][vertex] = value
        for parent in (found["parent"], None):
            with pytest.raises(ValidationError):
                verify_sssp(graph, source, found["distance"], parent)
