# SPDX-License-Identifier: Apache-2.0
"""PageRank by power iteration: every vertex gathers the shares of its in-neighbours.

rank(v) = (1 - d) p(v) + d (sum over u -> v of rank(u) w(u, v) / W(u) + D p(v)), with p the personalization (uniform by
default), W the out-weights and D the rank of vertices without out-edges, which spread theirs by p, as in NetworkX.
A superstep reads ``share`` (rank over out-weight) and writes ``next_share``: results do not depend on the order.  The
ranks themselves are not kept: a share times the out-weight is the rank, and of memory there is the least to move.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from shoal.algorithms.arguments import check_vertices, graph_of, make_config
from shoal.algorithms.verify_pagerank import verify_pagerank
from shoal.calls import public_call
from shoal.config import RunConfig
from shoal.errors import ArgumentError, ConvergenceError, check_choice, check_integer, check_number
from shoal.graph import Graph
from shoal.operators import advance, compute, everything, filter, gather, swap
from shoal.placement import Placed
from shoal.program import Constant, Phase, Program, Scalar, Vertex, add
from shoal.results import RankResult
from shoal.rules import atomic, rule
from shoal.run import run_configured

DTYPES = ("float64", "float32")
# A change of ranks is counted in whole numbers of 2^-61: their sum is exact in any order, and as ranks sum to one, the
# change of all of them is at most 2 and fits.
UNITS = 2.0**61


class PageRank(Program):
    """Rank of every vertex; sums are float64 whatever ``dtype`` the state has."""

    error = Scalar("int64", fill=2**63 - 1, combine=add)  # in 1 / UNITS
    dangling = Scalar("float64", combine=add)
    damping = Constant("float64")
    tolerance = Constant("float64")
    personalization = Constant("float64", is_array=True)

    def __init__(self, dtype: str, max_iterations: int, is_weighted: bool, is_personal: bool) -> None:
        self.share = Vertex(dtype)
        self.next_share = Vertex(dtype)
        self.inverse_weight = Vertex(dtype)
        self.max_iterations = max_iterations
        self.is_weighted = is_weighted
        self.is_personal = is_personal

    def start(self, out_weight: np.ndarray, personalization: np.ndarray | None, damping: float, tolerance: float):
        first = 1.0 / max(len(out_weight), 1)
        is_sink = out_weight == 0
        self.inverse_weight[:] = -1.0  # a sink's share is its rank: nobody reads it
        np.divide(1.0, out_weight, out=self.inverse_weight, where=~is_sink)
        np.abs(self.inverse_weight, out=self.share)
        self.share *= first
        self.dangling[0] = first * np.count_nonzero(is_sink)
        self.personalization = () if personalization is None else personalization
        self.damping, self.tolerance = damping, tolerance

    @rule
    def incoming(src, share):
        return share[src]

    @rule
    def weighted_incoming(src, weight, share):
        return share[src] * weight

    @rule
    def spread_evenly(vertex, value, share, next_share, inverse_weight, dangling, damping, num_vertices):
        new = (1.0 - damping + damping * dangling) / num_vertices + damping * value
        signed = inverse_weight[vertex]
        scale = abs(signed)
        change = new - share[vertex] * 1.0 / scale  # in float64, whatever a share is
        next_share[vertex] = new * scale
        return int(abs(change) * UNITS), new if signed < 0.0 else 0.0

    @rule
    def spread_personally(vertex, value, share, next_share, inverse_weight, dangling, damping, personalization):
        new = (1.0 - damping + damping * dangling) * personalization[vertex] + damping * value
        signed = inverse_weight[vertex]
        scale = abs(signed)
        change = new - share[vertex] * 1.0 / scale  # in float64, whatever a share is
        next_share[vertex] = new * scale
        return int(abs(change) * UNITS), new if signed < 0.0 else 0.0

    @rule
    def has_converged(error, tolerance):
        return error < tolerance * UNITS

    def step(self, frontier):
        incoming = self.weighted_incoming if self.is_weighted else self.incoming
        spread = self.spread_personally if self.is_personal else self.spread_evenly
        gather(everything, incoming, finish=spread, into=(self.error, self.dangling))
        swap(self.share, self.next_share)

    def phases(self) -> list[Phase]:
        return [Phase(self.step, until=self.has_converged, max_supersteps=self.max_iterations)]


class ResidualPageRank(Program):
    """Ranks by passing on what has come: a vertex adds its residual to its rank and hands it to its neighbours.

    It needs no supersteps.  Ranks are short of what sinks would spread: as that goes where a surfer starts again, all
    ranks are short by one factor, and dividing by their sum makes up for it.  (Whang et al., Euro-Par 2015)
    """

    least = Constant("float64")

    def __init__(self, dtype: str, is_weighted: bool) -> None:
        self.rank = Vertex(dtype)
        self.residual = Vertex(dtype, combine=add)
        self.passed = Vertex(dtype)
        self.scale = Vertex(dtype)
        self.is_weighted = is_weighted

    def start(self, out_weight: np.ndarray, personalization: np.ndarray | None, damping: float, least: float) -> Any:
        np.divide(damping, out_weight, out=self.scale, where=out_weight != 0)
        self.least = least
        if personalization is None:
            self.residual[:] = (1.0 - damping) / max(len(out_weight), 1)
            return None
        np.multiply(personalization, 1.0 - damping, out=self.residual)
        return np.flatnonzero(personalization)

    @rule
    def take(vertex, rank, residual, passed, scale):
        rank[vertex] += residual[vertex]
        passed[vertex] = residual[vertex] * scale[vertex]
        residual[vertex] = 0.0

    @rule
    def pass_on(src, dst, passed, residual):
        atomic.add(residual, dst, passed[src])
        return True

    @rule
    def weighted_pass_on(src, dst, weight, passed, residual):
        atomic.add(residual, dst, passed[src] * weight)
        return True

    @rule
    def is_large(vertex, residual, least):
        return residual[vertex] >= least

    def step(self, frontier):
        compute(frontier, self.take)
        touched = advance(frontier, self.weighted_pass_on if self.is_weighted else self.pass_on)
        return filter(touched, self.is_large)


@public_call
def pagerank(
    graph: Graph | Placed,
    damping: float = 0.85,
    tolerance: float = 1e-6,
    max_iterations: int = 100,
    *,
    iterations: int | None = None,
    personalization: Any = None,
    weighted: bool = False,
    dtype: str = "float64",
    validate: bool = False,
    **strategies: Any,
) -> RankResult:
    """Rank the vertices by a random surfer's visits; the ranks sum to one.

    Parameters
    ----------
    damping : probability of following an edge rather than starting again
    tolerance : stop when the ranks' change (the sum of the absolute differences) falls below it
    max_iterations : give up after so many (`ConvergenceError`); without supersteps there are none to count
    iterations : do exactly so many instead
    personalization : where a surfer starts again: a value per vertex, or a mapping from vertex to value
    weighted : follow edges in proportion to their weights
    dtype : ``"float32"`` halves the memory traffic
    validate : check the result's properties (`ValidationError` if one does not hold)
    **strategies : fields of `shoal.RunConfig`, and ``report=`` (see `shoal.report.option`)

    Examples
    --------
    >>> import shoal
    >>> shoal.pagerank(shoal.Graph.from_edges([0, 1], [1, 2])).rank.round(3).tolist()
    [0.257, 0.486, 0.257]
    """
    plain = graph_of(graph)
    config = make_config(strategies)
    damping = check_number("damping", damping, 0, 1)
    tolerance = check_number("tolerance", tolerance, 0)
    limit = check_integer("max_iterations", max_iterations, 0)
    check_choice("dtype", dtype, DTYPES)
    if iterations is not None:
        limit, tolerance = check_integer("iterations", iterations, 0), 0.0
    start = _start_distribution(personalization, plain.num_vertices)
    out_weight = _out_weight(plain, weighted, dtype)
    if config.execution == "async":
        if iterations is not None or damping == 1 or tolerance == 0:
            raise ArgumentError(
                "execution='async' does not go with iterations=, damping=1 or tolerance=0: without supersteps nothing "
                "but the tolerance ends the passing on"
            )
        result = _pagerank_by_residuals(graph, plain, out_weight, start, damping, tolerance, weighted, dtype, config)
        if validate:
            verify_pagerank(plain, result.rank, damping=damping, tolerance=tolerance, personalization=personalization,
                            weighted=weighted)  # fmt: skip
        return result
    program = PageRank(dtype, limit, weighted and plain.is_weighted, start is not None)
    arguments = {"out_weight": out_weight, "personalization": start, "damping": damping, "tolerance": tolerance}
    outcome = run_configured(program, graph, config, arguments)
    state = outcome.state
    rank, error = state["share"], int(state["error"][0]) / UNITS if limit else np.inf
    rank /= np.abs(state["inverse_weight"], out=state["inverse_weight"])
    if iterations is None and plain.num_vertices and not error < tolerance:
        raise ConvergenceError(
            f"pagerank did not converge: after max_iterations={limit} the change is {error:g}, "
            f"not below tolerance={tolerance:g}"
        )
    if validate:
        bound = error if iterations is not None else tolerance
        verify_pagerank(plain, rank, damping=damping, tolerance=bound, personalization=personalization,
                        weighted=weighted)  # fmt: skip
    return RankResult(plain, outcome.stats, rank, outcome.stats.num_supersteps, error)


def _pagerank_by_residuals(
    graph: Graph | Placed, plain: Graph, out_weight: np.ndarray, start: np.ndarray | None, damping: float,
    tolerance: float, weighted: bool, dtype: str, config: RunConfig,
) -> RankResult:  # fmt: skip
    """Return ranks whose equation holds but for ``tolerance``, as a sum over all vertices.

    The residuals that are left are what it does not hold by; ranks sum to 1 - damping at least before they are scaled.
    """
    least = tolerance * (1.0 - damping) / max(plain.num_vertices, 1)
    arguments = {"out_weight": out_weight, "personalization": start, "damping": damping, "least": least}
    program = ResidualPageRank(dtype, weighted and plain.is_weighted)
    outcome = run_configured(program, graph, config, arguments)
    rank, residual = outcome.state["rank"], outcome.state["residual"]
    rank += residual
    total = rank.sum(dtype=np.float64)
    rank /= total if plain.num_vertices else 1.0
    error = float(residual.sum(dtype=np.float64)) / total if plain.num_vertices else 0.0
    return RankResult(plain, outcome.stats, rank, outcome.stats.num_supersteps, error)


def _out_weight(graph: Graph, weighted: bool, dtype: str) -> np.ndarray:
    """Return what each vertex's rank is divided by: its out-degree, or the sum of its out-weights."""
    if not weighted or graph.weights is None:
        return graph.degree
    for weight in (graph.min_weight, graph.max_weight):
        if weight is not None and not 0 <= weight < np.inf:
            raise ArgumentError(f"weighted=True needs finite weights of at least 0; the graph has weight {weight}")
    total = graph.to_scipy().astype(np.float64).sum(axis=1)
    # A share, of 1 / num_vertices too, must be a number of its type, and so must what it is multiplied by.
    least = float(np.finfo(dtype).tiny)
    most = 1.0 / (least * graph.num_vertices)
    wrong = np.flatnonzero((total > 0) & ((total < least) | (total > most)))
    if len(wrong):
        raise ArgumentError(f"weighted=True: the out-weights of vertex {wrong[0]} sum to {total[wrong[0]]:g}; with "
                            f"dtype={dtype!r} they must sum to 0, or from {least:g} to {most:g}")  # fmt: skip
    return total


def _start_distribution(personalization: Any, num_vertices: int) -> np.ndarray | None:
    """Return the personalization as an array that sums to one."""
    if personalization is None:
        return None
    if isinstance(personalization, Mapping):
        vertices = check_vertices("personalization", list(personalization), num_vertices)
        values = np.zeros(num_vertices)
        values[vertices] = _as_numbers(list(personalization.values()))
    else:
        values = _as_numbers(personalization)
    if values.shape != (num_vertices,):
        raise ArgumentError(f"personalization has shape {values.shape}; it must have one value for each of the "
                            f"{num_vertices} vertices")  # fmt: skip
    total = values.sum()
    if not np.isfinite(total) or np.any(values < 0) or total <= 0:
        raise ArgumentError("personalization must hold finite numbers of at least 0 with a positive sum; "
                            f"the smallest is {values.min():g}, the sum {total:g}")  # fmt: skip
    return values / total


def _as_numbers(values: Any) -> np.ndarray:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ArgumentError(f"personalization={values!r} is not allowed; it must be numbers, one for each vertex, "
                            "or a mapping from vertex to number") from None  # fmt: skip
