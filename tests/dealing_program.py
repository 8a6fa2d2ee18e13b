# SPDX-License-Identifier: Apache-2.0
"""What every rank runs in tests/test_dealing_on_ranks.py: what devices of CPUs steal from one another, ranks do, too.

    mpiexec -n 2 python tests/dealing_program.py DEVICES FOLDER [EVERY]

FOLDER has skewed-N.shards, the parts of N devices, and skewed.parquet, their graph.  With EVERY only each so-many-th
algorithm is run, from the second on.  The first rank prints a line for each case; whoever finds a difference ends with
an error.
"""

import itertools
import os
import sys

import numpy as np
from mpi4py import MPI

import oracles
import shoal
from shoal import Constant, Program, Vertex, advance, atomic, minimum, rule
from shoal.backends.cpu.many_runs import ManyRuns
from shoal.backends.cpu.phase_run import PhaseRun
from shoal.backends.mpi import dealing
from shoal.backends.mpi.session import RankRuns
from shoal.config import AXES
from test_every_config import ALGORITHMS, LOOKS_FAR, UNDIRECTED_ONLY, assert_same

RANK = MPI.COMM_WORLD.rank
STEALING = {"stealing": "frontier"}
#: A rank gets nearly everything, or as many vertices as all others, of which the first have most edges.
SHARES = {"nearly all": (0.9, "ids"), "most edges": (0.5, "degrees"), "blocks": (None, "ids")}


def partition(graph, num_devices, name):
    """Return a partition that leaves most devices little to do."""
    share, order = SHARES[name]
    count = graph.num_vertices
    place = np.arange(count) if order == "ids" else np.argsort(np.argsort(-graph.degree, kind="stable"))
    if share is None:
        return place * num_devices // count
    first = int(share * count)
    behind = 1 + (place - first) * (num_devices - 1) // max(count - first, 1)
    return np.where(place < first, 0, behind)


def note_thefts(kind):
    """Keep what the runs of a kind say of thefts."""
    noted, original = [], kind.thefts.fget
    kind.thefts = property(lambda runs: noted.append(original(runs)) or noted[-1])
    return noted


def deal_always():
    """Let devices deal small graphs, and between ranks, too, as if it took no time; only this test may do so."""
    PhaseRun.least_dealt, dealing.LEAST_SAVED_EDGES = 1, 0
    dealing.SECONDS_PER_BYTE, dealing.FOUND_ELSEWHERE = 0, 0


def graph_for(*, is_directed):
    return shoal.generate.rmat(11, 12, seed=5, directed=is_directed, weights=(1, 255), shuffle=False)


def check_algorithms(devices, num_devices, every):
    """Run all algorithms under all exchanges in turn; who steals on devices of one process steals on ranks."""
    here, there = note_thefts(ManyRuns), note_thefts(RankRuns)
    turns = itertools.count()
    num_stealing = 0
    for algorithm in itertools.islice(ALGORITHMS, every > 1, None, every):
        for duplication in ("auto", "all"):
            turn = next(turns)
            names = AXES["communication"][1:]
            communication = names[turn % len(names)]
            if communication == "selective" and algorithm in LOOKS_FAR:
                communication = "auto"
            graph = graph_for(is_directed=bool(turn // 2 % 2) and algorithm not in UNDIRECTED_ONLY)
            how = {"duplication": duplication, "communication": communication, **STEALING}
            how["partition"] = partition(graph, num_devices, list(SHARES)[turn % 3])
            run = ALGORITHMS[algorithm]
            alone = run(graph, devices="cpu")
            here.clear()
            there.clear()
            assert_same(run(graph, devices=f"cpu:{num_devices}x1", **how), alone)
            assert_same(run(graph, devices=devices, **how), alone)
            stolen = np.sum(here), np.sum(there)
            assert (stolen[0] > 0) == (stolen[1] > 0), (algorithm, how, stolen)
            num_stealing += stolen[1] > 0
            if RANK == 0:
                print(algorithm, duplication, communication, "stole", stolen[1], flush=True)
    if RANK == 0:
        print(num_stealing, "cases stole", flush=True)


def check_search(graph, where, **how):
    """Every edge of a frontier is visited once, and thefts are told as on devices of one process."""
    hub = int(graph.degree.argmax())
    how = {"direction": "push", **how}
    found, plain = (shoal.bfs(where, hub, stealing=name, **how) for name in ("frontier", "none"))
    np.testing.assert_array_equal(found.distance, oracles.bfs_distance(graph, hub))
    stats, others = found.stats.to_dict(), plain.stats.to_dict()
    for row, other in zip(stats["supersteps"], others["supersteps"], strict=True):
        assert sum(row["edges_visited"]) == sum(other["edges_visited"])
    largest = [max(max(row["edges_visited"]) for row in run["supersteps"]) for run in (stats, others)]
    assert largest[0] < 0.9 * largest[1]
    thefts = np.array(stats["thefts"])
    assert thefts.sum() == stats["stolen_edges"] > 0
    assert (np.diag(thefts) == 0).all()
    by_thief = np.sum([row["stolen_edges"] for row in stats["supersteps"]], axis=0)
    np.testing.assert_array_equal(thefts.sum(axis=0), by_thief)
    assert others["stolen_edges"] == 0


def check_paths(graph, where, **how):
    """Buckets are dealt, too."""
    hub = int(graph.degree.argmax())
    found = shoal.sssp(where, hub, **STEALING, **how)
    np.testing.assert_array_equal(found.distance, oracles.sssp_distance(graph, hub))
    assert found.stats.to_dict()["stolen_edges"] > 0


class Tolls(Program):
    """Cheapest ways where edges have a price by their number, and two prices come along with each vertex."""

    cost = Vertex("int64", fill=2**40, combine=minimum)
    pair = Vertex("int32", width=2)
    toll = Constant("int64", is_array=True)

    def start(self, source, toll):
        self.toll = toll
        self.cost[source] = 0
        self.pair[:] = np.arange(len(self.pair) * 2).reshape(-1, 2) % 7
        return [source]

    @rule
    def pay(src, dst, edge, cost, pair, toll):
        return atomic.min(cost, dst, cost[src] + toll[edge] + pair[src, 0] + pair[src, 1])

    def step(self, frontier):
        return advance(frontier, self.pay)


def check_tolls(graph, where, **how):
    """The graph's numbers of edges go along, and rows of values."""
    given = {"source": int(graph.degree.argmax()), "toll": np.random.default_rng(1).integers(0, 50, graph.num_edges)}
    found = shoal.run(Tolls(), where, **STEALING, **how, **given)
    np.testing.assert_array_equal(found.cost, shoal.run(Tolls(), graph, devices="cpu", **given).cost)
    assert found.stats.to_dict()["stolen_edges"] > 0


def check_small_loads(graph, devices, part):
    """What it takes to bring an edge is weighed: where it takes as long as visiting it, nothing is brought."""
    saved = dealing.SECONDS_PER_BYTE, dealing.LEAST_SAVED_EDGES
    how = {"devices": devices, "partition": part, "direction": "push", **STEALING}
    hub = int(graph.degree.argmax())
    for dealing.SECONDS_PER_BYTE, dealing.LEAST_SAVED_EDGES in ((1.0, 0), (0, 1 << 30)):
        assert shoal.bfs(graph, hub, **how).stats.to_dict()["stolen_edges"] == 0
    dealing.SECONDS_PER_BYTE, dealing.LEAST_SAVED_EDGES = saved


if __name__ == "__main__":
    devices, folder = sys.argv[1:3]
    num_devices = shoal.config.parse_devices(devices).num_devices
    deal_always()
    check_algorithms(devices, num_devices, int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    graph = shoal.read(os.path.join(folder, "skewed.parquet"))
    for name in SHARES:
        part = partition(graph, num_devices, name)
        for check in (check_search, check_paths, check_tolls):
            check(graph, graph, devices=devices, partition=part)
    shards = shoal.open_shards(os.path.join(folder, f"skewed-{num_devices}.shards"), devices)
    for communication in AXES["communication"][1:]:
        for check in (check_search, check_paths, check_tolls):
            check(graph, shards, communication=communication)
    if devices == "mpi":
        check_small_loads(graph, devices, part)
    if RANK == 0:
        print("all checks", flush=True)
