# SPDX-License-Identifier: Apache-2.0
"""Single-source shortest paths by delta-stepping.

Bucket i holds the vertices whose tentative distance lies in [i delta, (i + 1) delta); buckets are emptied in order
(Meyer and Sanders, 2003).  Where distances are whole and every edge adds to them, a word holds a vertex's distance and
its parent, and the least word wins.  Elsewhere parents come from a pass over the edges.  An edge is tight when it
explains its destination's distance: d(u) + w = d(v).  A parent is any u of a tight edge with d(u) < d(v).  Where edges
add nothing (weight 0, or too small for the float) the remaining vertices are joined breadth-first over tight edges, so
the parents have no cycle.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import numpy as np

from shoal.algorithms.arguments import as_list, check_vertices, graph_of, is_batch, kind_of, make_config
from shoal.algorithms.verify_sssp import verify_sssp
from shoal.calls import public_call
from shoal.config import RunConfig
from shoal.errors import ArgumentError, check_number
from shoal.graph import Graph
from shoal.operators import advance, everything, filter, gather, update
from shoal.placement import Placed
from shoal.program import Constant, Phase, Program, Scalar, Vertex, maximum, minimum
from shoal.results import TraversalResult
from shoal.rules import atomic, rule
from shoal.run import run_configured

NO_PARENT = -1
NOBODY = 2**63 - 1
INT_INFINITY = 2**31 - 1
LAST_BUCKET = 2.0**60  # what lies farther shares this bucket
HALF = 32  # bits of a word's upper half, a distance, and of its lower half, a parent
FARTHEST_WORD = 2**63 - 1  # INT_INFINITY, and NO_PARENT


@rule
def _wants_parent(vertex, parent, distance, infinity):
    return parent[vertex] == NO_PARENT and distance[vertex] < infinity


@rule
def _adopt(src, dst, weight, distance, parent):
    if distance[src] < distance[dst] and distance[src] + weight == distance[dst]:
        parent[dst] = src
    return False


@rule
def _candidate(src, dst, weight, distance):
    if distance[src] < distance[dst] and distance[src] + weight == distance[dst]:
        return src
    return NOBODY


@rule
def _keep_smallest(vertex, value, parent):
    if parent[vertex] == NO_PARENT and value != NOBODY:
        parent[vertex] = value


def _find_parents(is_deterministic: bool) -> None:
    """Record the search for a parent of every reached vertex whose distance some edge strictly explains."""
    if is_deterministic:
        gather(everything, _candidate, finish=_keep_smallest, combine=minimum, dtype="int64")
    else:
        advance(everything, _adopt, where=_wants_parent, direction="pull")


class _DeltaStepping(Program):
    """What programs that empty bucket after bucket share; each has its own rules to relax, and of what is settled."""

    inverse_delta = Constant("float64")
    cutoff = Constant("float64")
    targets = Constant("vertex", is_array=True)
    settled_below = Scalar("int64", combine=maximum)  # every vertex of a lower bucket has its final distance
    has_targets: bool

    @rule
    def current_bucket(current_priority):
        return current_priority

    def step(self, frontier):
        improved = advance(frontier, self.relax, priority=self.bucket)
        if self.has_targets:
            update(self.settled_below, self.current_bucket)
        return improved

    def distances(self) -> Phase:
        """Return the phase that finds them."""
        return Phase(self.step, until=self.settled_targets if self.has_targets else None)


class SSSP(_DeltaStepping):
    """Distances from one source, and parents: "none", "any" or the "smallest"."""

    infinity = Constant("float64")

    def __init__(self, dtype: np.dtype, has_targets: bool = False, parents: str = "none") -> None:
        infinity = np.inf if dtype.kind == "f" else INT_INFINITY
        self.distance = Vertex(dtype.name, fill=infinity, combine=minimum)
        self.has_targets, self.parents = has_targets, parents
        if parents != "none":
            self.parent = Vertex("vertex", fill=NO_PARENT)

    def start(self, source: int, delta: float, cutoff: float, targets: Any, infinity: float) -> list[int]:
        self.distance[source] = 0
        if self.parents != "none":
            self.parent[source] = source
        self.inverse_delta = 1.0 / delta
        self.cutoff, self.infinity = cutoff, infinity
        self.targets = targets
        return [source]

    @rule
    def bucket(vertex, distance, inverse_delta):
        return np.int64(min(distance[vertex] * inverse_delta, LAST_BUCKET))

    @rule
    def relax(src, dst, weight, distance, cutoff):
        proposal = distance[src] + weight
        if proposal >= distance[dst] or proposal > cutoff:
            return False
        return atomic.min(distance, dst, proposal)

    @rule
    def settled_targets(targets, distance, inverse_delta, settled_below):
        for i in range(len(targets)):
            if distance[targets[i]] * inverse_delta >= settled_below:
                return False
        return True

    def join_parents(self, frontier):
        _find_parents(self.parents == "smallest")

    def phases(self) -> list[Phase]:
        joining = [] if self.parents == "none" else [Phase(self.join_parents, max_supersteps=1)]
        return [self.distances(), *joining]


class PackedSSSP(_DeltaStepping):
    """Distances and parents as words, the distance in the upper half: the least word has the least distance.

    A vertex that comes nearer tells its neighbours, so a word that stays has its parent's final distance in it.  Every
    edge must add something: then no parents make a cycle.  Where some have weight 0, the lowest bits of a distance
    count those on the way (``flat_bits``).  Neighbours that tell of the same distance come too late, unless the
    smallest of them is asked for.
    """

    word = Vertex("int64", fill=FARTHEST_WORD, combine=minimum)

    def __init__(self, has_targets: bool, is_deterministic: bool, counts_flat: bool = False) -> None:
        self.has_targets = has_targets
        self.relax = self.relax_to_smallest if is_deterministic else self.relax_to_any
        if counts_flat:
            self.unit = Constant("int64")
            self.relax = self.relax_and_count

    def start(self, source: int, delta: float, cutoff: float, targets: Any, flat_bits: int = 0) -> list[int]:
        self.word[source] = source
        unit = 2**flat_bits
        self.inverse_delta = 1.0 / (delta * unit)
        self.cutoff = (np.floor(cutoff) + 1.0) * unit - 1.0  # as far, with every edge of weight 0 on the way
        self.targets = targets
        if unit > 1:
            self.unit = unit
        return [source]

    @rule
    def bucket(vertex, word, inverse_delta):
        return np.int64((word[vertex] >> HALF) * inverse_delta)

    @rule
    def relax_to_any(src, dst, weight, word, cutoff):
        proposal = (word[src] >> HALF) + weight
        if proposal >= word[dst] >> HALF or proposal > cutoff:
            return False
        return atomic.min(word, dst, (proposal << HALF) | src)

    @rule
    def relax_to_smallest(src, dst, weight, word, cutoff):
        proposal = (word[src] >> HALF) + weight
        before = word[dst] >> HALF
        if proposal > before or proposal > cutoff:
            return False
        return atomic.min(word, dst, (proposal << HALF) | src) and proposal < before

    @rule
    def relax_and_count(src, dst, weight, word, cutoff, unit):
        proposal = (word[src] >> HALF) + weight * unit + int(weight == 0)
        if proposal >= word[dst] >> HALF or proposal > cutoff:
            return False
        return atomic.min(word, dst, (proposal << HALF) | src)

    @rule
    def settled_targets(targets, word, inverse_delta, settled_below):
        for i in range(len(targets)):
            if (word[targets[i]] >> HALF) * inverse_delta >= settled_below:
                return False
        return True

    def phases(self) -> list[Phase]:
        return [self.distances()]


class TightParents(Program):
    """Parents for distances that are given: of a search that ended at its targets, where some are not final."""

    parent = Vertex("vertex", fill=NO_PARENT)
    infinity = Constant("float64")

    def __init__(self, dtype: np.dtype, is_deterministic: bool) -> None:
        self.distance = Constant(dtype.name, is_array=True)
        self.is_deterministic = is_deterministic

    def start(self, source: int, distance: np.ndarray, infinity: float) -> None:
        self.distance, self.infinity = distance, infinity
        self.parent[source] = source

    def step(self, frontier):
        _find_parents(self.is_deterministic)

    def phases(self) -> list[Phase]:
        return [Phase(self.step, max_supersteps=1)]


class FlatParents(Program):
    """Parents for the vertices that only edges adding nothing explain: breadth-first, smallest id first."""

    parent = Vertex("vertex", fill=NO_PARENT)
    proposal = Vertex("vertex", fill=0, combine=minimum)

    def __init__(self, dtype: np.dtype) -> None:
        self.distance = Constant(dtype.name, is_array=True)

    def start(self, distance: np.ndarray, parent: np.ndarray, flat: np.ndarray | None) -> np.ndarray:
        self.distance = distance
        self.parent[:] = parent
        self.proposal[:] = self.num_vertices  # type: ignore[attr-defined]
        return np.flatnonzero(parent != NO_PARENT) if flat is None else flat[parent[flat] != NO_PARENT]

    @rule
    def propose(src, dst, weight, distance, parent, proposal):
        if parent[dst] == NO_PARENT and distance[src] == distance[dst] and distance[src] + weight == distance[dst]:
            atomic.min(proposal, dst, src)
            return True
        return False

    @rule
    def accept(vertex, parent, proposal):
        if parent[vertex] == NO_PARENT:
            parent[vertex] = proposal[vertex]
        return True

    def step(self, frontier):
        return filter(advance(frontier, self.propose), self.accept)


@public_call
def sssp(
    graph: Graph | Placed,
    source: Any,
    *,
    delta: float | None = None,
    cutoff: float | None = None,
    targets: Any = None,
    parents: bool = True,
    validate: bool = False,
    **strategies: Any,
) -> TraversalResult:
    """Find the length of a shortest path from ``source`` to every vertex, and a tree of such paths.

    Parameters
    ----------
    source : a vertex, or a list of them: then ``distance`` and ``parent`` have a row for each
    delta : width of a bucket; by default chosen from the weights and the average degree
    cutoff : do not go farther than this distance
    targets : stop when these are settled; what lies farther than the farthest of them counts as unreachable
    parents : False leaves ``parent`` out, which saves a pass over the edges
    validate : check the result's properties (`ValidationError` if one does not hold)
    **strategies : fields of `shoal.RunConfig`, and ``report=`` (see `shoal.report.option`)

    Examples
    --------
    >>> import shoal
    >>> r = shoal.sssp(shoal.Graph.from_edges([0, 1, 0], [1, 2, 2], weights=[1, 2, 9]), source=0)
    >>> r.distance.tolist(), r.parent.tolist()
    ([0.0, 1.0, 3.0], [0, 0, 1])
    """
    plain = graph_of(graph)
    config = make_config(strategies)
    check_weights(plain)
    kind = kind_of(graph, config)
    delta = (
        plain._cached(("delta", kind), lambda: choose_delta(plain, kind))
        if delta is None
        else check_number("delta", delta, 0, open_low=True)
    )
    cutoff = np.inf if cutoff is None else check_number("cutoff", cutoff, 0)
    batch = is_batch(source)
    sources = check_vertices("source", as_list(source), plain.num_vertices)
    wanted = None if targets is None else check_vertices("targets", as_list(targets), plain.num_vertices)
    is_packed = parents and takes_words(
        distance_dtype(plain), plain.vertex_dtype, flat_bits(plain), has_targets=wanted is not None,
        is_deterministic=config.deterministic,
    )  # fmt: skip
    single = _sssp_packed if is_packed else _sssp_by_fields
    runs = [single(graph, plain, int(s), delta, cutoff, wanted, parents, config) for s in sources]
    result = _stack(plain, sources, runs) if batch else runs[0]
    if validate:
        limit = None if cutoff == np.inf else cutoff
        verify_sssp(plain, result.source, result.distance, result.parent, cutoff=limit, targets=targets)
    return result


def check_weights(graph: Graph) -> None:
    """Refuse weights that shortest paths are not defined for here: negative ones."""
    if graph.min_weight is not None and graph.min_weight < 0:
        position = int(np.argmin(graph.weights))
        raise ArgumentError(f"weights[{position}]={graph.min_weight} is negative; sssp needs weights of at least 0")


def distance_dtype(graph: Graph) -> np.dtype:
    """Return the type distances are computed in: int32 where no path can overflow it, else a float."""
    if graph.weights is not None and graph.weights.dtype.kind == "f":
        return graph.weights.dtype
    fits = _longest_path(graph) < INT_INFINITY
    return np.dtype(np.int32 if fits else np.float64)


def _longest_path(graph: Graph) -> int:
    """Return what no shortest path, nor one with an edge more, is longer than: of whole weights, or of none."""
    largest = 1 if graph.max_weight is None else int(graph.max_weight)
    by_vertices = (graph.num_vertices + 1) * largest
    weights = graph.weights
    if by_vertices < INT_INFINITY or weights is None or largest * len(weights) > NOBODY:
        return by_vertices
    # No path has an edge twice: where few weights are far above the others, that says far more.
    return min(by_vertices, graph._cached("sum of weights", lambda: int(weights.sum(dtype=np.int64))) + largest)


def flat_bits(graph: Graph) -> int | None:
    """Return how many bits of a word count the edges of weight 0 on a path; None if it cannot.

    It cannot where others may add nothing, too, nor where distances, moved up by so many bits, reach `INT_INFINITY`.
    """
    if not _may_be_flat(graph):
        return 0
    assert graph.weights is not None
    if graph.weights.dtype.kind == "f":
        return None
    num_bits = graph._cached("flat bits", lambda: int(np.count_nonzero(graph.weights == 0)).bit_length())
    return num_bits if (_longest_path(graph) + 1) << num_bits < INT_INFINITY else None


def takes_words(
    distance: np.dtype, vertex: np.dtype, flat_bits: int | None, *, has_targets: bool, is_deterministic: bool
) -> bool:
    """Whether distances and parents of these types are found together, as words.

    Where words count edges of weight 0 the smallest of all parents is not the one with the least word, and a bucket's
    border may lie between vertices as far from the source.
    """
    if distance != np.int32 or vertex != np.int32 or flat_bits is None:
        return False
    return flat_bits == 0 or not (has_targets or is_deterministic)


def choose_delta(graph: Graph, kind: str = "cpu") -> float:
    """Return a bucket width: the mean weight over the average degree, at least one step of integer weights.

    A vertex then meets about one edge shorter than a bucket, so few vertices are relaxed twice.  A GPU has far more
    threads than such a bucket has vertices: its buckets are wider.  (By the lanes of a warp: Davidson et al., IPDPS
    2014.  With half of them searches on Kronecker graphs are a tenth faster, those on grids a fifth slower; with a
    quarter there is little more to gain, and much to lose.)
    """
    if graph.num_edges == 0 or graph.weights is None:
        return 1.0
    degree = graph.num_edges / graph.num_vertices
    delta = DELTA_FACTORS[kind] * graph._cached("mean weight", lambda: _mean_weight(graph.weights)) / degree
    if graph.weights.dtype.kind == "i":
        return max(delta, 1.0)
    return delta if delta > 0 and np.isfinite(delta) else 1.0


def _mean_weight(weights: np.ndarray) -> float:
    """Return about the mean, of some thousand weights."""
    with np.errstate(over="ignore"):
        return float(weights[:: max(len(weights) // 4096, 1)].mean(dtype=np.float64))


DELTA_FACTORS = {"cpu": 1.0, "mpi": 1.0, "cuda": 16.0}


@functools.cache
def _program(kind: type[Program], *options: Any) -> Program:
    """Return a program made once: calls on tiny graphs would spend a tenth of their time on it."""
    return kind(*options)


def sssp_program(graph: Graph) -> Program:
    """Return the program that a call runs by default."""
    dtype, num_bits = distance_dtype(graph), flat_bits(graph)
    if takes_words(dtype, graph.vertex_dtype, num_bits, has_targets=False, is_deterministic=False):
        return _program(PackedSSSP, False, False, bool(num_bits))
    return _program(SSSP, dtype, False, "any")


def _sssp_by_fields(
    graph, plain: Graph, source: int, delta: float, cutoff: float, targets: Any, parents: bool, config: RunConfig
) -> TraversalResult:
    dtype = distance_dtype(plain)
    infinity = np.inf if dtype.kind == "f" else INT_INFINITY
    if dtype.kind == "i":
        delta = max(delta, 1.0)  # integer distances have no narrower buckets
    joins_parents = parents and targets is None
    kind = ("smallest" if config.deterministic else "any") if joins_parents else "none"
    arguments = {"source": source, "delta": delta, "cutoff": cutoff, "infinity": infinity,
                 "targets": () if targets is None else targets}  # fmt: skip
    outcome = run_configured(_program(SSSP, dtype, targets is not None, kind), graph, config, arguments)
    distance, parent = outcome.state["distance"], outcome.state.get("parent")
    if targets is not None:  # how much farther the search went depends on its buckets
        farthest = distance[targets].max() if len(targets) else 0
        distance[distance > farthest] = infinity
        if parents:
            parent = _tight_parents(graph, source, distance, infinity, config, outcome.stats)
    if parent is not None:
        parent = _with_flat_parents(graph, distance, parent, infinity, config, outcome.stats)
    return TraversalResult(plain, outcome.stats, source, _as_float(distance), parent)


def _sssp_packed(
    graph, plain: Graph, source: int, delta: float, cutoff: float, targets: Any, parents: bool, config: RunConfig
) -> TraversalResult:
    num_bits = flat_bits(plain)
    arguments = {"source": source, "delta": max(delta, 1.0), "cutoff": cutoff, "flat_bits": num_bits,
                 "targets": () if targets is None else targets}  # fmt: skip
    program = _program(PackedSSSP, targets is not None, config.deterministic, bool(num_bits))
    outcome = run_configured(program, graph, config, arguments)
    distance, parent = split_words(outcome.state["word"])
    if num_bits:
        is_far = distance == INT_INFINITY
        distance >>= num_bits
        distance[is_far] = INT_INFINITY
    if targets is not None:
        is_farther = distance > (distance[targets].max() if len(targets) else 0)
        distance[is_farther], parent[is_farther] = INT_INFINITY, NO_PARENT
    return TraversalResult(plain, outcome.stats, source, _as_float(distance), parent)


def split_words(word: Any) -> tuple[Any, Any]:
    """Return the distances that words hold, where they are, and the parents."""
    halves = word.view(np.int32).reshape(-1, 2)
    return halves[:, 1], halves[:, 0].copy()


def _as_float(distance: np.ndarray) -> np.ndarray:
    """Return distances with inf for unreachable; integer ones as float64, which holds them exactly."""
    if distance.dtype.kind == "f":
        return distance
    result = distance.astype(np.float64)
    result[distance == INT_INFINITY] = np.inf
    return result


def _tight_parents(graph, source: int, distance: np.ndarray, infinity: float, config: RunConfig, stats: Any) -> Any:
    program = _program(TightParents, distance.dtype, config.deterministic)
    arguments = {"source": source, "distance": distance, "infinity": infinity}
    # The direction asked for is the search's; parents are always pulled.
    outcome = run_configured(program, graph, replace(config, direction="auto"), arguments)
    stats.including(outcome.stats)
    return outcome.state["parent"]


def _with_flat_parents(
    graph, distance: np.ndarray, parent: np.ndarray, infinity: float, config: RunConfig, stats: Any
) -> np.ndarray:
    """Return the parents with those of vertices that only edges adding nothing explain."""
    if not _may_be_flat(graph_of(graph)) or not np.any((parent == NO_PARENT) & (distance < infinity)):
        return parent
    plain = graph_of(graph)
    flat = plain._cached("flat sources", lambda: _flat_sources(plain))
    arguments = {"distance": distance, "parent": parent, "flat": flat}
    outcome = run_configured(FlatParents(distance.dtype), graph, config.in_supersteps(), arguments)
    stats.including(outcome.stats)
    return outcome.state["parent"]


def _may_be_flat(graph: Graph) -> bool:
    """Whether there may be edges that add nothing."""
    return graph.weights is not None and (graph.weights.dtype.kind == "f" or graph.min_weight == 0)


def _flat_sources(graph: Graph) -> np.ndarray | None:
    """Return the vertices that edges of weight 0 leave, ascending; None if other weights may add nothing, too."""
    assert graph.weights is not None
    if graph.weights.dtype.kind == "f":  # added to a large distance, a small weight is lost
        return None
    return np.unique(np.searchsorted(graph.indptr, np.flatnonzero(graph.weights == 0), side="right") - 1)


def _stack(plain: Graph, sources: np.ndarray, runs: list[TraversalResult]) -> TraversalResult:
    """Return the runs of a batch as one result with a row per source."""
    if not runs:
        raise ArgumentError("source has 0 vertices; a batch needs at least 1")
    stats = runs[0].stats
    for run in runs[1:]:
        stats.including(run.stats)
    parents = [run.parent for run in runs if run.parent is not None]
    return TraversalResult(
        plain, stats, sources, np.stack([run.distance for run in runs]), np.stack(parents) if parents else None
    )
