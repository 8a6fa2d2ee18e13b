# SPDX-License-Identifier: Apache-2.0
"""Edges that stay on disk: runs say so, parts are not copies where there is no room, and reading refuses in time."""

import re
import shlex

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import graphs
import shoal
from command_line import assert_refused, run
from shoal import machine
from shoal.errors import OutOfMemoryError
from shoal.execution import edges
from shoal.io import room
from shoal.report.tables import strategies_of
from shoal.report.trace import record_run

pytestmark = pytest.mark.host_only("about files mapped by devices of the CPU")
GRAPH = graphs.random_graph(200, 2000, seed=3, weights="int32")


@pytest.fixture
def path(tmp_path):
    """A file that is mapped."""
    shoal.write(GRAPH, tmp_path / "graph.shoal")
    return tmp_path / "graph.shoal"


@pytest.fixture
def little_memory(monkeypatch):
    """A machine with room for vertices, and for none of the edges."""
    for module in (edges, room):
        monkeypatch.setattr(module, "available_memory_bytes", lambda: GRAPH.indices.nbytes // 2)
    monkeypatch.setattr(room, "free_swap_bytes", lambda: 0)


def where(found):
    """Where a run says that its edges are, and why."""
    stats = found.stats.to_dict()
    return stats["config"]["edges"], stats["reasons"].get("edges", "")


def test_a_run_says_where_its_edges_are(path, tmp_path):
    assert where(shoal.bfs(GRAPH, 0)) == ("memory", "")
    assert "mapped" not in repr(shoal.bfs(GRAPH, 0).stats)
    mapped = shoal.bfs(shoal.read(path), 0)
    assert where(mapped)[0] == "mapped"
    assert re.fullmatch(rf"the graph's arrays are mapped from {path}; .* of edges, .* of memory free", where(mapped)[1])
    assert "edges='mapped'" in repr(mapped.stats)
    assert where(shoal.bfs(shoal.read(path, mmap=False), 0)) == ("memory", "")
    assert where(shoal.connected_components(shoal.read(path), execution="async"))[0] == "mapped"


def test_parts_say_where_their_edges_are(path, tmp_path):
    copied = where(shoal.bfs(shoal.read(path), 0, devices="cpu:2", duplication="one-hop"))
    assert copied == ("memory", f"parts are copies of the edges, which are mapped from {path}")
    assert where(shoal.bfs(shoal.read(path), 0, devices="cpu:2", duplication="all"))[0] == "mapped"
    shoal.partition_files(path, tmp_path / "parts", 2, duplication="one-hop")
    kind, why = where(shoal.bfs(shoal.open_shards(tmp_path / "parts"), 0))
    assert kind == "mapped"
    assert "2 files" in why
    assert f"{tmp_path}/parts/device-0.shard" in why


@pytest.mark.usefixtures("little_memory")
def test_auto_copies_no_edges_that_do_not_fit(path):
    graph = shoal.read(path)
    found = shoal.sssp(graph, 0, devices="cpu:2", direction="push")
    taken = found.stats.to_dict()
    assert (taken["config"]["duplication"], taken["config"]["edges"]) == ("all", "mapped")
    for axis in ("partition", "duplication"):
        assert "none are copied" in taken["reasons"][axis]
    np.testing.assert_array_equal(found.distance, shoal.sssp(GRAPH, 0).distance)
    asked = shoal.sssp(graph, 0, devices="cpu:2", direction="push", duplication="one-hop")
    assert where(asked)[0] == "memory"  # who asks for copies gets them
    np.testing.assert_array_equal(asked.distance, found.distance)
    in_memory = shoal.sssp(GRAPH, 0, devices="cpu:2", direction="push").stats.to_dict()
    assert in_memory["config"]["duplication"] == "one-hop"


def test_auto_copies_edges_where_there_is_room(path):
    taken = shoal.sssp(shoal.read(path), 0, devices="cpu:2", direction="push").stats.to_dict()
    assert (taken["config"]["duplication"], taken["config"]["edges"]) == ("one-hop", "memory")


def test_a_report_says_where_edges_are(path):
    found = shoal.bfs(shoal.read(path), 0)
    rows = {axis: (taken, why) for axis, taken, why in strategies_of(record_run("bfs", found.graph, found.stats))}
    assert rows["edges"][0] == "mapped"
    assert str(path) in rows["edges"][1]


# Reading


@pytest.mark.parametrize("suffix", ["txt", "csv", "parquet", "txt.gz"])
@pytest.mark.usefixtures("little_memory")
def test_a_file_that_cannot_fit_is_refused_and_can_be_partitioned(tmp_path, monkeypatch, capsys, suffix):
    monkeypatch.chdir(tmp_path)
    name = f"graph.{suffix}"
    shoal.write(GRAPH, name)
    monkeypatch.setattr(room, "available_memory_bytes", lambda: 1000)
    with pytest.raises(
        OutOfMemoryError, match=rf"^{name}: has about [\d,]+ rows, .* 1 kB of memory are free"
    ) as caught:
        shoal.read(name)
    told = int(re.search(r"about ([\d,]+) rows", str(caught.value))[1].replace(",", ""))
    num_rows = GRAPH.num_edges / 2
    assert told <= 1.1 * num_rows + 10
    assert told >= 0.9 * num_rows or suffix == "txt.gz"  # of which the size says less
    assert_refused(f"bfs {name} --source 0", f"{name} rows partition", capsys)
    command = shlex.split(re.search(r"shoal (partition .*?), which", str(caught.value))[1])
    assert command[-2] == "--memory"
    run(shlex.join([*command[:-1], "1GiB"]), capsys)  # the machine has it
    placed = shoal.open_shards(tmp_path / command[command.index("--output") + 1])
    np.testing.assert_array_equal(shoal.bfs(placed, 0).distance, shoal.bfs(GRAPH, 0).distance)


def test_what_fits_is_read(tmp_path, monkeypatch):
    pq.write_table(pa.table({"src": np.zeros(1000, np.int32), "dst": np.arange(1000)}), tmp_path / "star.parquet")
    monkeypatch.setattr(room, "free_swap_bytes", lambda: 0)
    for options, least in (({"directed": True}, 12_000), ({}, 16_000)):
        monkeypatch.setattr(room, "available_memory_bytes", lambda least=least: least)
        assert shoal.read(tmp_path / "star.parquet", **options).num_vertices == 1000
        monkeypatch.setattr(room, "available_memory_bytes", lambda least=least: least - 1)
        with pytest.raises(OutOfMemoryError, match="1,000 rows"):
            shoal.read(tmp_path / "star.parquet", **options)
        monkeypatch.setattr(room, "free_swap_bytes", lambda: 1)
        assert shoal.read(tmp_path / "star.parquet", **options).num_vertices == 1000
        monkeypatch.setattr(room, "free_swap_bytes", lambda: 0)


# Limits of control groups


def make_group(folder, limit, taken, cached=0):
    """What Linux shows of a control group."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "memory.max").write_text(f"{limit}\n")
    (folder / "memory.current").write_text(f"{taken}\n")
    (folder / "memory.stat").write_text(f"anon 5\ninactive_file {cached}\nactive_file 7\n")


def left(tmp_path, own):
    """What the groups below a folder leave a process."""
    (tmp_path / "cgroup").write_text(own)
    groups = [(kind, str(tmp_path / "fs"), *names) for kind, _, *names in machine._CONTROL_GROUPS]
    return machine.control_group_bytes_left(str(tmp_path / "cgroup"), groups)


def test_the_narrowest_control_group_counts(tmp_path):
    make_group(tmp_path / "fs" / "job", 1000, 400)
    make_group(tmp_path / "fs" / "job" / "task", "max", 300)
    assert left(tmp_path, "0::/job/task\n") == 600
    make_group(tmp_path / "fs" / "job" / "task", 500, 300, cached=50)
    assert left(tmp_path, "0::/job/task\n") == 250
    make_group(tmp_path / "fs" / "job" / "task", 200, 300)
    assert left(tmp_path, "0::/job/task\n") == 0
    assert left(tmp_path, "0::/elsewhere\n") is None
    assert left(tmp_path, "3:cpu:/job\n") is None
    assert machine.control_group_bytes_left(str(tmp_path / "missing")) is None


def test_the_older_groups_of_memory_count_too(tmp_path):
    folder = tmp_path / "fs" / "box"
    folder.mkdir(parents=True)
    (folder / "memory.limit_in_bytes").write_text("900\n")
    (folder / "memory.usage_in_bytes").write_text("100\n")
    (folder / "memory.stat").write_text("cache 3\ntotal_inactive_file 10\n")
    assert left(tmp_path, "4:memory,hugetlb:/box\n1:cpu:/other\n") == 810


def test_limits_are_part_of_what_is_available(monkeypatch):
    monkeypatch.setattr(machine, "control_group_bytes_left", lambda: 12345)
    assert machine.available_memory_bytes() == 12345
    monkeypatch.setattr(machine, "control_group_bytes_left", lambda: None)
    assert machine.available_memory_bytes() > 12345
