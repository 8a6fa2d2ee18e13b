# SPDX-License-Identifier: Apache-2.0
"""Every phase of the algorithms compiles for GPUs, on a machine that has none, and its rules are put in place."""

import re
import sys

import numpy as np
import pytest

import shoal
from shoal import (
    Constant,
    Phase,
    Program,
    ProgramError,
    Scalar,
    Vertex,
    add,
    advance,
    atomic,
    compute,
    everything,
    filter,
    maximum,
    minimum,
    reduce,
    rule,
    update,
)
from shoal.algorithms.betweenness import Betweenness
from shoal.algorithms.bfs import BFS, BatchBFS, SmallestParents
from shoal.algorithms.components import Components
from shoal.algorithms.cores import CoreNumbers
from shoal.algorithms.eigenvector import Eigenvector
from shoal.algorithms.forest import Forest
from shoal.algorithms.hits import Hits
from shoal.algorithms.katz import Katz
from shoal.algorithms.pagerank import PageRank
from shoal.algorithms.sssp import SSSP, FlatParents, PackedSSSP, TightParents
from shoal.algorithms.strong_components import Spread, Trim
from shoal.backends.cuda.compiler import compile_parts, link
from shoal.backends.cuda.device import find_device
from shoal.backends.cuda.phases import load_phase
from shoal.config import AXES
from shoal.dataflow.examples import Distances
from test_operators import Gathered

pytestmark = pytest.mark.host_only("compiles, and runs nothing")

INT32, INT64, FLOAT32, FLOAT64 = (np.dtype(name) for name in ("int32", "int64", "float32", "float64"))
#: Types of ids, offsets and weights.
TYPES = [(INT32, INT32, INT32), (INT32, INT64, None), (INT64, INT64, FLOAT32)]
ARCHITECTURES = ("sm_80", "sm_90", "sm_100")
READ_ARCH = "sm_90"  # whose text is read; inlining comes before there are instructions of an architecture


class EveryAtomic(Program):
    """All atomics on all types of elements, in a push that others may make at once."""

    flag = Vertex("bool")
    small = Vertex("uint8")
    short = Vertex("int16")
    whole = Vertex("int64")
    word = Vertex("uint64")
    single = Vertex("float32")
    double = Vertex("float64")
    rows = Vertex("float64", width=3)
    largest = Scalar("float64", combine=maximum)
    least = Scalar("uint8", combine=minimum)
    total = Scalar("float32", combine=add)
    table = Constant("int32", is_array=True)
    limit = Constant("float64")

    @rule
    def touch(src, dst, edge, weight, superstep, flag, small, short, whole, word, single, double, rows, table, limit):
        atomic.bit_or(flag, dst, True)
        atomic.bit_and(small, dst, 7)
        atomic.add(short, dst, 1)
        atomic.max(whole, dst, edge)
        atomic.min(word, dst, src)
        atomic.exchange(single, dst, weight)
        atomic.add_row(rows, dst, rows[src], 5, 3)
        if double[dst] > limit and len(table) > superstep:
            return atomic.compare_exchange(double, dst, 0, table[superstep])
        return atomic.min(small, dst, 3)

    @rule
    def is_large(vertex, whole, num_vertices):
        return whole[vertex] > num_vertices

    @rule
    def values(vertex, double, small, single):
        return double[vertex], small[vertex], single[vertex]

    @rule
    def half(total):
        return total / 2

    @rule
    def clear(vertex, short):
        short[vertex] = 0

    def step(self, frontier):
        found = filter(advance(frontier, self.touch), self.is_large)
        reduce(found, self.values, into=(self.largest, self.least, self.total))
        update(self.total, self.half)
        compute(everything, self.clear)
        return found


PROGRAMS = {
    "bfs": BFS(),
    "bfs with targets": BFS(None, has_targets=True),
    "bfs of a batch": BatchBFS(3),
    "smallest parents": SmallestParents(),
    "sssp": SSSP(INT32, parents="any"),
    "sssp with targets": SSSP(FLOAT32, has_targets=True, parents="smallest"),
    "tight parents": TightParents(FLOAT64, is_deterministic=True),
    "flat parents": FlatParents(FLOAT32),
    "components": Components(can_skip=True),
    "weak components": Components(can_skip=False),
    "pagerank": PageRank("float64", 20, is_weighted=False, is_personal=False),
    "personal pagerank": PageRank("float32", 20, is_weighted=True, is_personal=True),
    "betweenness": Betweenness(1),
    "betweenness of a batch": Betweenness(4),
    "every atomic": EveryAtomic(),
    "sssp by words": PackedSSSP(has_targets=False, is_deterministic=False),
    "sssp by words, smallest parents": PackedSSSP(has_targets=True, is_deterministic=True),
    "sssp by words that count": PackedSSSP(has_targets=False, is_deterministic=False, counts_flat=True),
}


def distinct_phases(programs):
    """The phases by program and number; of several with the same step the first."""
    found = []
    for name, program in programs.items():
        steps = [phase.step for phase in program.phases()]
        found += [(name, number) for number, step in enumerate(steps) if step not in steps[:number]]
    return found


PHASES = distinct_phases(PROGRAMS)
#: Programs whose operators those above have, too: compiled for one architecture.
ALIKE = {
    "core numbers": CoreNumbers(),
    "forest": Forest(is_packed=True),
    "forest by floats": Forest(is_packed=False),
    "trim": Trim(),
    "spread": Spread(),
    "eigenvector": Eigenvector(20, is_weighted=True),
    "katz": Katz(20, is_weighted=False, has_betas=True),
    "hits": Hits(20, is_weighted=True, is_directed=False),
    "hits, directed": Hits(20, is_weighted=False, is_directed=True),
}
PHASES_ALIKE = distinct_phases(ALIKE)


def load(name, number, types, direction="auto", load_balance="auto"):
    program = (PROGRAMS | ALIKE)[name]
    return load_phase(program, program.phases()[number], types, direction, load_balance=load_balance)


#: For several devices those phases are compiled that have every kind of exchange between them.
DIVIDED = [
    ("bfs", 0, "all"),
    ("bfs of a batch", 0, "one-hop"),
    ("sssp", 0, "one-hop"),
    ("components", 0, "all"),
    ("pagerank", 0, "one-hop"),
    ("betweenness", 0, "one-hop"),
    ("betweenness", 1, "all"),
]


@pytest.mark.parametrize(("name", "number", "duplication"), DIVIDED)
def test_phases_of_several_devices_compile_and_rules_are_inlined(name, number, duplication):
    program = PROGRAMS[name]
    loaded = load_phase(program, program.phases()[number], TYPES[0], "auto", duplication)
    parts = compile_parts(loaded.source.text, READ_ARCH, loaded.functions())
    assert_inlined(parts)


#: Programs whose frontiers devices deal: of an unordered push and one by priority, with and without what sources have.
DEALT = [("bfs", 0, TYPES[1]), ("spread", 0, TYPES[2]), ("sssp", 0, TYPES[0]), ("sssp by words", 0, TYPES[1])]


@pytest.mark.parametrize(("name", "number", "types"), DEALT)
def test_phases_whose_frontiers_are_dealt_compile_for_every_architecture(name, number, types):
    program = (PROGRAMS | ALIKE)[name]
    loaded = load_phase(program, program.phases()[number], types, "auto", "all", stealing="frontier")
    assert loaded.source.deals
    assert "take_stolen(" in loaded.source.text or not loaded.source.dealt_fields
    parts = compile_parts(loaded.source.text, ARCHITECTURES[0], loaded.functions())
    for arch in ARCHITECTURES:
        assert link(parts, arch, caches_in_l1=loaded.source.caches_in_l1)[:4] == b"\x7fELF"
    assert_inlined(parts)


@pytest.mark.parametrize("name", PROGRAMS | ALIKE)
def test_kernels_know_nothing_of_dealing_where_there_is_none(name):
    program = (PROGRAMS | ALIKE)[name]
    for phase in program.phases():
        for duplication in (None, "all"):
            if name == "every atomic" and duplication:  # which several devices refuse
                continue
            source = load_phase(program, phase, TYPES[0], "auto", duplication).source
            assert not source.deals
            assert "deal" not in source.text
            asked = load_phase(program, phase, TYPES[0], "auto", duplication, stealing="frontier").source
            assert asked.deals or asked.text == source.text


@pytest.mark.parametrize("duplication", [None, "all"])
def test_callbacks_compile_and_are_inlined(duplication):
    program = Distances()
    loaded = load_phase(program, program.phases()[0], TYPES[0], "auto", duplication, priority="soft")
    assert "receive_in_turn" in loaded.source.text or duplication is None
    assert_inlined(compile_parts(loaded.source.text, READ_ARCH, loaded.functions()))


def types_of(i):
    """Some types for every phase; words are of whole weights only."""
    return TYPES[i % (2 if "by words" in PHASES[i][0] else 3)]


@pytest.mark.parametrize(("name", "number", "types"), [(*PHASES[i], types_of(i)) for i in range(len(PHASES))])
def test_phases_compile_for_every_architecture_and_rules_are_inlined(name, number, types):
    loaded = load(name, number, types)
    parts = compile_parts(loaded.source.text, ARCHITECTURES[0], loaded.functions())  # what the others link, too
    for arch in ARCHITECTURES:
        assert link(parts, arch, caches_in_l1=loaded.source.caches_in_l1)[:4] == b"\x7fELF"
    assert_inlined(parts)


@pytest.mark.parametrize(("name", "number"), PHASES_ALIKE)
def test_phases_of_programs_that_are_alike_compile(name, number):
    loaded = load(name, number, TYPES[0])
    assert_inlined(compile_parts(loaded.source.text, READ_ARCH, loaded.functions()))


def assert_inlined(parts):
    text = link(parts, READ_ARCH, form="ptx").decode()
    assert re.findall(r"\.entry (\w+)", text) == ["phase"]
    assert not re.findall(r"\bcall\b", text)


@pytest.mark.parametrize(
    ("name", "duplication"), [*((name, None) for name in PROGRAMS), *((name, "all") for name, *_ in DIVIDED)]
)
def test_only_what_others_change_meanwhile_is_read_anew(name, duplication):
    """Trees that are joined are: all else may come from a multiprocessor's own cache."""
    for phase in PROGRAMS[name].phases():
        source = load_phase(PROGRAMS[name], phase, TYPES[0], "auto", duplication).source
        assert source.caches_in_l1
        rules = [part for part in source.module.split("\n\n\n") if "load(" in part and "def rule_" in part]
        assert bool(rules) == name.endswith("components")
        assert all("__join(" in part for part in rules)


class HooksRows(Program):
    """What is read anew would be a row of an array: nothing at all is cached then."""

    label = Vertex("int64", width=2, combine=minimum)

    @rule
    def hook(src, dst, label):
        return atomic.compare_exchange(label, (label[src, 0], 0), src, dst)

    def step(self, frontier):
        return advance(frontier, self.hook)


def test_rows_that_others_change_are_not_cached():
    source = load_phase(HooksRows(), HooksRows().phases()[0], TYPES[0], "push").source
    assert not source.caches_in_l1
    assert "load(label" not in source.module
    assert load_phase(HooksRows(), HooksRows().phases()[0], TYPES[0], "push").cubin("sm_90")


@pytest.mark.parametrize("direction", ["push", "pull"])
def test_directions_compile(direction):
    assert load("bfs", 0, TYPES[0], direction).cubin("sm_90")


BALANCES = AXES["load_balance"][1:]


@pytest.mark.parametrize("name", ["bfs", "sssp"])  # of each kind of push, one that is soon compiled
def test_every_load_balance_becomes_machine_code(name):
    loaded = load(name, 0, TYPES[0], "push")
    rules = compile_parts(loaded.source.text, READ_ARCH, loaded.functions())[1:]
    for balance in BALANCES:
        other = load(name, 0, TYPES[0], "push", balance).source
        assert other.module == loaded.source.module
        cubin = link([*compile_parts(other.text, READ_ARCH), *rules], READ_ARCH, caches_in_l1=other.caches_in_l1)
        assert cubin[:4] == b"\x7fELF"


@pytest.mark.parametrize("name", ["components", "pagerank", "every atomic"])
def test_every_load_balance_compiles(name):
    for number in range(len(PROGRAMS[name].phases())):
        texts = [load(name, number, TYPES[1], load_balance=balance).source.text for balance in AXES["load_balance"]]
        assert len(set(texts)) in (1, len(texts))
        for text in set(texts[1:]) - {texts[0]}:  # without a push there are none
            assert compile_parts(text, READ_ARCH)


class Wrong(Program):
    level = Vertex("int32")
    table = Constant("int32", is_array=True)

    def __init__(self, used):
        self.used = used

    @rule
    def spoil(vertex, level, table):
        atomic.add(table, 0, level[vertex])

    @rule
    def take_root(vertex, level):
        level[vertex] = np.sqrt(float(vertex))

    def step(self, frontier):
        compute(everything, getattr(self, self.used))

    def phases(self):
        return [Phase(self.step, max_supersteps=1)]


@pytest.mark.parametrize(
    ("name", "reason"), [("spoil", "cannot change a constant"), ("take_root", "there is no .*sqrt.* there; .* math")]
)
def test_a_rule_that_cannot_be_compiled_is_named(name, reason):
    program = Wrong(name)
    loaded = load_phase(program, program.phases()[0], TYPES[0], "auto")
    with pytest.raises(ProgramError, match=rf"rule '{name}' \(.*{reason}"):
        loaded.cubin("sm_90")


def test_many_gathers_in_a_step_have_room():
    """Five of them: with shared memory of its own for each, a phase would have more than there is."""
    program = Gathered()
    assert load_phase(program, program.phases()[0], TYPES[0], "auto").cubin("sm_90")


def test_cubins_are_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("SHOAL_CACHE_DIR", str(tmp_path))
    first = load("tight parents", 0, TYPES[0]).cubin("sm_90")
    kept = list(tmp_path.rglob("*.cubin"))
    assert [path.read_bytes() for path in kept] == [first]
    kept[0].write_bytes(b"another")
    assert load("tight parents", 0, TYPES[0]).cubin("sm_90") == b"another"


@pytest.mark.parametrize("ask", [lambda graph: shoal.bfs(graph, 0, devices="cuda"),
                                 lambda graph: shoal.generate.rmat(4, device="cuda")])  # fmt: skip
def test_a_gpu_without_cupy_is_refused_in_one_line(ask, monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    find_device.cache_clear()
    with pytest.raises(shoal.ShoalError, match=r"device[s]?='cuda' needs CuPy .*pip install 'shoal\[cuda\]'"):
        ask(shoal.Graph.from_edges([0], [1]))
