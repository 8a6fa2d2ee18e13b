# SPDX-License-Identifier: Apache-2.0
"""Every algorithm under every strategy gives what one device gives; what is refused is refused with its reason.

The strategies are those of the tables in `shoal.config`: a new name is tested here without anyone asking.  In plain
runs every two values of different axes meet, on graphs that hypothesis picks; with SHOAL_TEST_PRODUCT set
(``make test-full``), all combinations, each on one of a few graphs.
"""

import functools
import itertools
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from graphs import WIDTHS, graphs, random_graph
from pairwise import all_pairs, pairs_of
from regrouping import regroup_always
from shoal.backends.cpu.phase_run import PhaseRun
from shoal.config import AXES, NOT_ON, ONLY_ON, REFUSED
from shoal.memory import estimate_memory

pytestmark = pytest.mark.host_only("about several devices of the CPU")

DEVICES = (1, 2, 3, 4, 7, 16)
NOT_WALKED = ("execution", "priority", "direction", "stats", "output")  # not about many devices, or walked elsewhere
# What only GPUs know is walked in tests/gpu.
NOT_ON_CPU = [axis for axis, (kind, _) in ONLY_ON.items() if kind != "cpu"]
STRATEGIES = {axis: names[1:] for axis, names in AXES.items() if axis not in (*NOT_WALKED, *NOT_ON_CPU)}
OPTIONS = {
    "devices": DEVICES,
    **STRATEGIES,
    "fanout": (1, 2, 4),
    "is_directed": (False, True),
    "widths": tuple(WIDTHS),
}
IS_PRODUCT = bool(os.environ.get("SHOAL_TEST_PRODUCT"))
#: Each width is compiled by itself, which takes seconds: it is walked for one call of every algorithm, in plain runs
#: not of those that take longest.
IN_EVERY_WIDTH = ("bfs", "sssp", "components", "pagerank", *(("bfs_batch", "betweenness") if IS_PRODUCT else ()))
#: Programs whose rules look farther than one edge: every device must know every vertex.
LOOKS_FAR = ("components", "forest", "bfs_targets", "sssp_targets", "louvain")
UNDIRECTED_ONLY = ("triangles", "label_propagation", "louvain")
#: Every number of sources is compiled by itself: graphs that have them all need one module.
NUM_SOURCES = 3
FROM_SEVERAL = ("bfs_batch", "betweenness")


def several(graph):
    return np.unique(np.linspace(0, graph.num_vertices - 1, NUM_SOURCES).astype(int))


#: As soon as nothing changes much: which vectors an iteration passes through is the same everywhere.
LOOSE = {"tolerance": 0.05, "validate": True}


def undirected(graph):
    return graph.symmetrized(deduplicate=False) if graph.is_directed else graph


def chosen(forest):
    return np.concatenate([forest.src, forest.dst, *([] if forest.weight is None else [forest.weight])])


def walks(graph, **how):
    alpha = 0.5 / max(graph.max_degree, 1)  # for which they are few, whatever the graph
    return shoal.katz_centrality(graph, alpha, tolerance=1e-12, validate=True, **how)


def authorities(result):
    return np.concatenate([result.hub, result.authority])


ALGORITHMS = {
    "bfs": lambda graph, **how: shoal.bfs(graph, 0, validate=True, **how).distance,
    "bfs_push": lambda graph, **how: shoal.bfs(graph, 0, validate=True, **{"direction": "push", **how}).distance,
    "bfs_pull": lambda graph, **how: shoal.bfs(graph, 0, validate=True, **{"direction": "pull", **how}).distance,
    "bfs_batch": lambda graph, **how: shoal.bfs(graph, several(graph), validate=True, **how).distance,
    "bfs_targets": lambda graph, **how: shoal.bfs(graph, 0, targets=[graph.num_vertices - 1], **how).distance,
    "bfs_parents": lambda graph, **how: shoal.bfs(graph, 0, deterministic=True, **how).parent,
    "sssp": lambda graph, **how: shoal.sssp(graph, 0, validate=True, **how).distance,
    "sssp_parents": lambda graph, **how: shoal.sssp(graph, 0, deterministic=True, **how).parent,
    "sssp_targets": lambda graph, **how: shoal.sssp(graph, 0, targets=[graph.num_vertices - 1], **how).distance,
    "components": lambda graph, **how: shoal.connected_components(graph, validate=True, **how).label,
    "betweenness": lambda graph, **how: shoal.betweenness_centrality(graph, several(graph), **how).centrality,
    "pagerank": lambda graph, **how: shoal.pagerank(graph, tolerance=1e-12, max_iterations=1000, **how).rank,
    "triangles": lambda graph, **how: shoal.triangles(graph, validate=True, **how).triangles,
    "label_propagation": lambda graph, **how: shoal.label_propagation(graph, validate=True, **how).label,
    "louvain": lambda graph, **how: shoal.louvain_communities(graph, validate=True, **how).label,
    "eigenvector": lambda graph, **how: shoal.eigenvector_centrality(graph, **LOOSE, **how).centrality,
    "katz": lambda graph, **how: walks(graph, **how).centrality,
    "hits": lambda graph, **how: authorities(shoal.hits(graph, **LOOSE, **how)),
    "strong": lambda graph, **how: shoal.strongly_connected_components(graph, validate=True, **how).label,
    "forest": lambda graph, **how: chosen(shoal.minimum_spanning_forest(undirected(graph), validate=True, **how)),
    "cores": lambda graph, **how: shoal.core_number(graph.without_self_loops(), validate=True, **how).core,
}
OPTIONS = {"algorithm": tuple(ALGORITHMS), **OPTIONS}


@pytest.fixture(autouse=True)
def _always_deals(monkeypatch):
    """Let devices that steal do so on small graphs, too, and hand their parts over after every superstep."""
    monkeypatch.setattr(PhaseRun, "least_dealt", 1)
    regroup_always(monkeypatch)


def refusal(case):
    """Why some or all values of a case are refused together, or None."""
    for pair, reason in REFUSED.items():
        if all(case.get(axis) == name for axis, name in pair):
            return reason
    looks_far = case.get("algorithm") in LOOKS_FAR and case.get("devices", 2) > 1
    if looks_far and (case.get("duplication") == "one-hop" or case.get("communication") == "selective"):
        return "every device must know every vertex"
    return None


def is_allowed(case):
    is_wide = case.get("widths", WIDTHS[0]) != WIDTHS[0]
    is_butterfly = case.get("communication", "butterfly") == "butterfly" and case.get("duplication") != "one-hop"
    if case.get("fanout", 1) != 1 and not is_butterfly:
        return False  # only a butterfly has one
    if case.get("is_directed") and case.get("algorithm") in UNDIRECTED_ONLY:
        return False
    return refusal(case) is None and not (is_wide and case.get("algorithm", "bfs") not in IN_EVERY_WIDTH)


if IS_PRODUCT:
    CASES = [dict(zip(OPTIONS, values, strict=True)) for values in itertools.product(*OPTIONS.values())]
    CASES = [case for case in CASES if is_allowed(case)]
else:
    CASES = all_pairs(OPTIONS, is_allowed)


def strategies_of(case):
    chosen = {axis: case[axis] for axis in STRATEGIES}
    count = case["devices"]
    return {**chosen, "devices": f"cpu:{count}", "fanout": min(case["fanout"], count)}


def described(case):
    return "-".join("/".join(value) if isinstance(value, tuple) else str(value) for value in case.values())


def with_widths(graph, widths):
    vertex_dtype, edge_dtype = widths
    arrays = graph.indptr.astype(edge_dtype), graph.indices.astype(vertex_dtype)
    return shoal.Graph.from_csr(*arrays, graph.weights, directed=graph.is_directed, vertex_dtype=vertex_dtype,
                                edge_dtype=edge_dtype)  # fmt: skip


#: Vertices, edges and skew of the graphs for all combinations.
SHAPES = [(1, 1, 1.0), (9, 12, 1.0), (23, 90, 2.0), (40, 60, 1.0), (65, 300, 3.0)]


@functools.cache
def graph_of_shape(number, is_directed, widths):
    num_vertices, num_edges, skew = SHAPES[number]
    drawn = random_graph(num_vertices, num_edges, seed=number, directed=is_directed, weights="int32", skew=skew)
    return with_widths(drawn, widths)


@functools.cache
def expected_of_shape(algorithm, *shape):
    return ALGORITHMS[algorithm](graph_of_shape(*shape))


@pytest.mark.parametrize("case", CASES if not IS_PRODUCT else all_pairs(OPTIONS, is_allowed), ids=described)
def test_every_config(case):
    run, how = ALGORITHMS[case["algorithm"]], strategies_of(case)
    fewest = NUM_SOURCES if case["algorithm"] in FROM_SEVERAL else 1

    @settings(max_examples=6)
    @given(data=st.data())
    def check(data):
        drawn = data.draw(graphs(weights="int32", directed=case["is_directed"], min_vertices=fewest, max_vertices=40))
        graph = with_widths(drawn, case["widths"])
        assert_same(run(graph, **how), run(graph))

    check()


if IS_PRODUCT:

    @pytest.mark.parametrize(("number", "case"), list(enumerate(CASES)), ids=lambda value: "")
    def test_every_combination(number, case):
        shape = (number % len(SHAPES), case["is_directed"], case["widths"])
        found = ALGORITHMS[case["algorithm"]](graph_of_shape(*shape), **strategies_of(case))
        assert_same(found, expected_of_shape(case["algorithm"], *shape))


def assert_same(found, expected):
    assert found.dtype == expected.dtype
    if found.dtype.kind == "f":
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-12)
    else:
        np.testing.assert_array_equal(found, expected)


def test_the_cases_cover_every_pair():
    seen = {frozenset(pair) for case in CASES for pair in itertools.combinations(case.items(), 2)}
    assert pairs_of(OPTIONS, is_allowed) <= seen


PATH = shoal.Graph.from_edges([0, 1, 2], [1, 2, 3], weights=np.ones(3, np.int32))


@pytest.mark.parametrize(("pair", "reason"), REFUSED.items(), ids=str)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_strategies_that_do_not_go_together_are_refused(algorithm, pair, reason):
    with pytest.raises(shoal.ArgumentError, match=reason) as refused:
        ALGORITHMS[algorithm](PATH, devices="cpu:2", **dict(pair))
    assert all(f"{axis}={name!r}" in str(refused.value) for axis, name in pair)


@pytest.mark.parametrize("devices", ["auto", "cpu", "cpu:2", "cpu:2x1"])
@pytest.mark.parametrize("axis", NOT_ON_CPU)
def test_what_a_cpu_does_not_know_is_refused(axis, devices):
    _, reason = ONLY_ON[axis]
    for name, run in itertools.product(AXES[axis][1:], ALGORITHMS.values()):
        with pytest.raises(shoal.ArgumentError, match=f"^{axis}='{name}' is not possible on cpu: {reason}; .*: auto$"):
            run(PATH, devices=devices, **{axis: name})
    with pytest.raises(shoal.ArgumentError, match="is not possible on cpu"):
        shoal.bfs(shoal.place(PATH, "cpu"), 0, **{axis: AXES[axis][-1]})
    with pytest.raises(shoal.ArgumentError, match="is not possible on cpu"):
        estimate_memory(PATH, "bfs", devices=devices, **{axis: AXES[axis][-1]})


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_what_gpus_cannot_do_is_refused(algorithm):
    for (axis, name), (kinds, reason) in NOT_ON.items():
        if "cuda" in kinds:
            with pytest.raises(
                shoal.ArgumentError, match=f"^{axis}='{name}' is not possible on cuda: {reason}; allowed: "
            ):
                ALGORITHMS[algorithm](PATH, devices="cuda:0*2", **{axis: name})


@pytest.mark.parametrize("strategy", [("duplication", "one-hop"), ("communication", "selective")], ids=str)
@pytest.mark.parametrize("algorithm", LOOKS_FAR)
def test_programs_that_look_far_need_all_vertices(algorithm, strategy):
    axis, name = strategy
    with pytest.raises(shoal.ArgumentError, match="every device must know every vertex") as refused:
        ALGORITHMS[algorithm](PATH, devices="cpu:2", **{axis: name})
    assert f"{axis}={name!r}" in str(refused.value)
