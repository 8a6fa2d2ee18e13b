# SPDX-License-Identifier: Apache-2.0
"""The verifiers of labels, centralities and ranks accept what SciPy and igraph compute, and catch what is wrong."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import oracles
from corruption import both, cast, corruptions, put
from graphs import LARGER, SPECIAL, cycle_graph, from_pairs, graphs, path_graph
from shoal.algorithms.verify_centrality import verify_betweenness
from shoal.algorithms.verify_components import verify_components
from shoal.algorithms.verify_pagerank import verify_pagerank
from shoal.errors import ValidationError

pytestmark = pytest.mark.host_only("results are verified on the host")


class TestComponents:
    @given(graphs(min_vertices=0))
    def test_accepts_right_results(self, graph):
        label = oracles.component_labels(graph)
        verify_components(graph, label, len(set(label.tolist())))

    @pytest.mark.parametrize("name", [*SPECIAL, *LARGER])
    def test_accepts_right_results_on_named_graphs(self, name):
        graph = {**SPECIAL, **LARGER}[name]()
        verify_components(graph, oracles.component_labels(graph))

    @corruptions(
        ("split", put("label", 4, 4), "joins labels 0 and 4"),
        ("split in halves", put("label", slice(2, 6, 2), 2), "joins labels 0 and 2"),
        ("merged", cast("label", np.zeros_like), "no path joins 1 and 0"),
        ("an isolated vertex merged", put("label", 6, 0), "no path joins 6 and 0"),
        ("not the smallest id", put("label", slice(0, 6, 2), 4), "smallest"),
        ("label of another component's vertex", put("label", slice(1, 6, 2), 0), "no path joins 1 and 0"),
        ("label that does not name itself", put("label", 4, 2), "must name itself"),
        ("no vertex", put("label", 6, 7), "label[6]=7 is no vertex"),
        ("negative", put("label", 6, -1), "label[6]=-1 is no vertex"),
        ("wrong count", put("count", (), 4), "count=4"),
        ("shape", cast("label", lambda a: a[:, None]), "shape"),
        ("dtype", cast("label", lambda a: a.astype(float)), "dtype"),
    )
    def test_catches(self, corrupt, words):
        graph = from_pairs([(0, 2), (2, 4), (1, 3), (3, 5)], num_vertices=7)
        found = {"label": oracles.component_labels(graph), "count": np.array(3)}
        verify_components(graph, **found)
        corrupt(found)
        with pytest.raises(ValidationError) as caught:
            verify_components(graph, **found)
        assert words in str(caught.value)

    @given(graphs(min_vertices=1), st.data())
    def test_catches_any_changed_label(self, graph, data):
        label = oracles.component_labels(graph)
        vertex, value = (data.draw(st.integers(0, graph.num_vertices - 1)) for _ in range(2))
        assume(label[vertex] != value)
        label[vertex] = value
        with pytest.raises(ValidationError):
            verify_components(graph, label)


class TestBetweenness:
    @given(graphs(min_vertices=0), st.booleans(), st.booleans(), st.data())
    def test_accepts_right_results(self, graph, normalized, endpoints, data):
        options = {"normalized": normalized, "endpoints": endpoints}
        verify_betweenness(graph, oracles.betweenness(graph, **options), **options)
        if graph.num_vertices:
            vertices = st.integers(0, graph.num_vertices - 1)
            options["sources"] = data.draw(st.lists(vertices, min_size=1, unique=True))
            verify_betweenness(graph, oracles.betweenness(graph, **options), **options)

    @pytest.mark.parametrize("name", SPECIAL)
    def test_accepts_right_results_on_special_graphs(self, name):
        graph = SPECIAL[name]()
        verify_betweenness(graph, oracles.betweenness(graph))

    @pytest.mark.parametrize("name", LARGER)
    def test_accepts_right_results_on_larger_graphs(self, name):
        graph, sources = LARGER[name](), [0, 7, 11]
        verify_betweenness(graph, oracles.betweenness(graph, sources), sources=sources)

    @corruptions(
        ("negative", put("centrality", 0, -0.1), "centrality[0]=-0.1"),
        ("not a number", put("centrality", 3, np.nan), "centrality[3]=nan"),
        ("infinite", put("centrality", 3, np.inf), "centrality[3]=inf"),
        ("one value off", put("centrality", 3, 0.2), "sum"),
        ("all values off", cast("centrality", lambda a: a * 1.001), "sum"),
        ("all zero", cast("centrality", np.zeros_like), "sum"),
        ("two vertices swapped", cast("centrality", lambda a: a[[1, 0, 2, 3, 4, 5, 6, 7]]), "recomputed"),
        ("an isolated vertex passed", put("centrality", 7, 0.1), "no path passes"),
        ("shape", cast("centrality", lambda a: a[1:]), "shape"),
        ("dtype", cast("centrality", lambda a: a.astype(int)), "dtype"),
    )
    def test_catches(self, corrupt, words):
        graph = from_pairs([(0, 1), (1, 2), (1, 3), (3, 4), (4, 5), (5, 6), (2, 4)], num_vertices=8)
        found = {"centrality": oracles.betweenness(graph)}
        verify_betweenness(graph, **found)
        corrupt(found)
        with pytest.raises(ValidationError) as caught:
            verify_betweenness(graph, **found)
        assert words in str(caught.value)

    @pytest.mark.parametrize("option", [{"normalized": False}, {"endpoints": True}, {"sources": [0, 1, 4]}])
    def test_catches_another_scale(self, option):
        graph = cycle_graph(9)
        with pytest.raises(ValidationError, match="sum"):
            verify_betweenness(graph, oracles.betweenness(graph, **option))
        with pytest.raises(ValidationError, match=r"sum|recomputed"):
            verify_betweenness(graph, oracles.betweenness(graph), **option)

    def test_catches_parallel_edges_counted_as_one_path(self):
        graph = SPECIAL["parallel edges, directed"]()
        with pytest.raises(ValidationError, match="recomputed"):
            verify_betweenness(graph, oracles.betweenness_networkx(graph))

    def test_catches_a_wrong_sum_where_nothing_is_recomputed(self):
        graph = LARGER["hubs"]()
        centrality = oracles.betweenness(graph, [3, 4])
        centrality[int(np.argmax(centrality))] *= 1.01
        with pytest.raises(ValidationError, match="sum"):
            verify_betweenness(graph, centrality, sources=[3, 4])


class TestPageRank:
    @given(graphs(weights="any"), st.booleans(), st.booleans())
    def test_accepts_right_results(self, graph, weighted, is_personal):
        start = np.arange(1, graph.num_vertices + 1) if is_personal else None
        options = {"weighted": weighted, "personalization": start}
        rank = oracles.pagerank(graph, **options)
        verify_pagerank(graph, rank, **options, tolerance=1e-9)
        verify_pagerank(graph, rank.astype("float32"), **options)

    @pytest.mark.parametrize("name", [*SPECIAL, *LARGER])
    def test_accepts_right_results_on_named_graphs(self, name):
        graph = {**SPECIAL, **LARGER}[name]()
        verify_pagerank(graph, oracles.pagerank(graph))
        for iterations in (0, 1, 20):
            verify_pagerank(graph, oracles.pagerank_iterated(graph, iterations), iterations=iterations)

    def test_accepts_a_mapping_as_personalization(self):
        graph = path_graph(4)
        rank = oracles.pagerank(graph, personalization=[0, 3, 0, 1])
        verify_pagerank(graph, rank, personalization={1: 0.75, 3: 0.25})

    @corruptions(
        ("negative", put("rank", 0, -0.1), "rank[0]=-0.1"),
        ("not a number", put("rank", 2, np.nan), "rank[2]=nan"),
        ("does not sum to one", cast("rank", lambda a: a * 1.001), "sum to 1.00"),
        ("uniform", cast("rank", lambda a: np.full(len(a), 1 / len(a))), "most at vertex"),
        ("two vertices swapped", cast("rank", lambda a: a[[1, 0, 2, 3, 4]]), "most at vertex"),
        ("slightly moved", both(put("rank", 0, 0.2), cast("rank", lambda a: a / a.sum())), "most at vertex"),
        ("shape", cast("rank", lambda a: a[None]), "shape"),
        ("dtype", cast("rank", lambda a: np.ones(len(a), int)), "dtype"),
    )
    def test_catches(self, corrupt, words):
        graph = from_pairs([(0, 1), (0, 1), (0, 2), (2, 3), (3, 0)], num_vertices=5, directed=True)
        found = {"rank": oracles.pagerank(graph)}
        verify_pagerank(graph, **found)
        corrupt(found)
        with pytest.raises(ValidationError) as caught:
            verify_pagerank(graph, **found)
        assert words in str(caught.value)

    def test_catches_lost_dangling_mass(self):
        graph = from_pairs([(0, 1), (1, 2), (0, 3)], directed=True)
        closed = from_pairs([(0, 1), (1, 2), (0, 3), (2, 2), (3, 3)], directed=True)
        with pytest.raises(ValidationError, match="most at vertex"):
            verify_pagerank(graph, oracles.pagerank(closed))

    @pytest.mark.parametrize("option", [{"damping": 0.8}, {"personalization": [1, 0, 0, 0]}, {"weighted": True}])
    def test_catches_another_question(self, option):
        graph = from_pairs([(0, 1), (0, 2), (2, 3)], weights=[1, 5, 2])
        with pytest.raises(ValidationError):
            verify_pagerank(graph, oracles.pagerank(graph, **option))

    def test_catches_too_few_iterations(self):
        graph = LARGER["hubs, directed"]()
        with pytest.raises(ValidationError, match="one more iteration"):
            verify_pagerank(graph, oracles.pagerank_iterated(graph, 3), iterations=30)
