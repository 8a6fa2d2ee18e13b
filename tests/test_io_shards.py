# SPDX-License-Identifier: Apache-2.0
"""Shards: what is read is what was written, from a memory map; a folder is whole or not there; damage is named."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import graphs
import shoal
from shoal.cli import app
from shoal.errors import ArgumentError, FileFormatError
from shoal.io import shards
from shoal.io.shards import read_shards, write_shards
from shoal.strategies.duplication import DUPLICATIONS, build_subgraphs

pytestmark = pytest.mark.host_only("about files, of parts for several devices of the CPU")


def assert_same(left, right):
    for name, value in vars(left).items():
        other = getattr(right, name)
        values = zip(value, other, strict=True) if isinstance(value, tuple) else [(value, other)]
        for mine, yours in values:
            assert type(mine) is type(yours), name
            assert np.array_equal(mine, yours), name
            assert getattr(mine, "dtype", None) == getattr(yours, "dtype", None), name


@pytest.mark.parametrize("mmap", [True, False])
@pytest.mark.parametrize("duplication", sorted(DUPLICATIONS))
@given(
    graph=graphs.graphs(min_vertices=0, weights="any") | graphs.graphs(min_vertices=0, any_width=True),
    num_devices=st.integers(1, 4),
    with_in_edges=st.booleans(),
)
def test_round_trip(tmp_path_factory, mmap, duplication, graph, num_devices, with_in_edges):
    folder = tmp_path_factory.mktemp("shards")  # an empty folder may be there
    parts = build_subgraphs(graph, "random", num_devices, duplication, with_in_edges=with_in_edges)
    write_shards(folder, graph, parts, "random", duplication)
    manifest, again = read_shards(folder, mmap=mmap)
    assert (manifest.partition, manifest.duplication) == ("random", duplication)
    assert (manifest.num_devices, manifest.num_vertices) == (num_devices, graph.num_vertices)
    assert (manifest.num_edges, manifest.is_directed) == (graph.num_edges, graph.is_directed)
    assert manifest.has_in_edges == with_in_edges
    for written, read in zip(parts, again, strict=True):
        assert_same(written, read)
        assert (read.in_edges is read.out_edges) == (written.in_edges is written.out_edges)
        assert not read.out_edges.indices.flags.writeable
        assert np.array_equal(read.edge_ids(), written.edge_ids())


@pytest.fixture
def folder(tmp_path):
    graph = graphs.random_graph(200, 900, seed=2, weights="int32")
    parts = build_subgraphs(graph, "segment", 3, "one-hop", with_in_edges=True)
    write_shards(tmp_path / "parts", graph, parts, "segment", "one-hop")
    assert [path.name for path in tmp_path.iterdir()] == ["parts"]
    return tmp_path / "parts"


def test_arrays_stay_on_disk(folder):
    indices = read_shards(folder)[1][0].out_edges.indices
    while not isinstance(indices, np.memmap):
        indices = indices.base


def change_byte(path, position):
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)


def rewrite(path, change):
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def swap_files(folder):
    first, second = folder / "device-0.shard", folder / "device-1.shard"
    first.write_bytes(second.read_bytes().ljust(first.stat().st_size, b"\0")[: first.stat().st_size])


DAMAGE = {
    "manifest missing": (lambda f: (f / "manifest.json").unlink(), r"manifest.json: cannot be read"),
    "manifest empty": (lambda f: (f / "manifest.json").write_text(""), "manifest.json: is not a manifest"),
    "manifest not JSON": (lambda f: (f / "manifest.json").write_bytes(b"\xff\xfe"), "manifest.json: is not a manifest"),
    "manifest a list": (lambda f: (f / "manifest.json").write_text("[]"), "manifest.json: is not a manifest"),
    "manifest of something else": (lambda f: (f / "manifest.json").write_text("{}"), "manifest.json: is not a"),
    "manifest changed": (
        lambda f: rewrite(f / "manifest.json", lambda c: c.update(num_devices=2)), "manifest.json: .*damaged"),
    "later version": (lambda f: rewrite(f / "manifest.json", lambda c: c.update(version=1)), "version 1.*version 2"),
    "file missing": (lambda f: (f / "device-1.shard").unlink(), "device-1.shard: cannot be read"),
    "file cut short": (
        lambda f: (f / "device-2.shard").write_bytes((f / "device-2.shard").read_bytes()[:-1]),
        "device-2.shard: truncated: has"),
    "file too long": (
        lambda f: (f / "device-2.shard").write_bytes((f / "device-2.shard").read_bytes() + b"x"),
        "device-2.shard: too long: has"),
    "file a folder": (
        lambda f: ((f / "device-0.shard").unlink(), (f / "device-0.shard").mkdir()), "device-0.shard: "),
    "beginning damaged": (lambda f: change_byte(f / "device-1.shard", 3), "device-1.shard, byte 0"),
    "files mixed up": (swap_files, "device-0.shard, byte 0: .* device 0"),
}  # fmt: skip


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_is_named(folder, kind):
    damage, words = DAMAGE[kind]
    damage(folder)
    with pytest.raises(FileFormatError, match=words) as caught:
        read_shards(folder)
    assert str(folder) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_damaged_offset_is_seen_at_once_and_a_damaged_edge_when_all_is_read(folder):
    entry = json.loads((folder / "manifest.json").read_text())["files"][1]["arrays"]
    change_byte(folder / "device-1.shard", entry["out_indices"][1])
    read_shards(folder)
    with pytest.raises(FileFormatError, match=r"device-1.shard: is damaged"):
        read_shards(folder, mmap=False)
    change_byte(folder / "device-1.shard", entry["out_indptr"][1])
    with pytest.raises(FileFormatError, match=r"device-1.shard, array 'out_indptr': runs from 1"):
        read_shards(folder)


MANIFESTS = {
    "path above": (lambda c: c["files"][0].update(name="../device-0.shard"), "the name '../device-0.shard'"),
    "absolute path": (lambda c: c["files"][1].update(name="/etc/passwd"), "the name '/etc/passwd'"),
    "devices without files": (lambda c: c.update(num_devices=4), "has 3 files for 4 devices"),
    "very many devices": (lambda c: c.update(num_devices=10**15), "'num_devices' is 1000000000000000"),
    "another entry": (lambda c: c.update(more=1), "'more' is 1"),
    "no entry": (lambda c: c.pop("has_in_edges"), "'has_in_edges' is missing"),
    "objects": (lambda c: c["files"][0]["arrays"]["owned"].__setitem__(0, "|O"), "the array 'owned' at"),
    "beyond the file": (lambda c: c["files"][0]["arrays"]["owned"].__setitem__(2, 2**62), "the array 'owned' at"),
    "before the file": (lambda c: c["files"][0]["arrays"]["owned"].__setitem__(1, -64), "the array 'owned' at"),
    "array missing": (lambda c: c["files"][2]["arrays"].pop("owner"), "no array 'owner'"),
    "array unknown": (lambda c: c["files"][2]["arrays"].update(x=["<i4", 64, 0]), "an array 'x'"),
    "fewer vertices": (lambda c: c.update(num_vertices=10), "allowed: from 0 to 10"),
}


@pytest.mark.parametrize("kind", MANIFESTS)
def test_a_right_checksum_does_not_make_a_manifest_right(folder, kind):
    change, words = MANIFESTS[kind]

    def seal(content):
        change(content)
        del content["checksum"]
        content["checksum"] = shards._checksum(content)

    rewrite(folder / "manifest.json", seal)
    with pytest.raises(FileFormatError, match=re.escape(words)) as caught:
        read_shards(folder)
    assert str(folder) in str(caught.value)


def test_edges_are_checked_where_they_are_placed(folder):
    """A map leaves them unread; compiled code would follow an id wherever it leads."""
    graph = graphs.random_graph(200, 900, seed=2, weights="int32")
    entry = json.loads((folder / "manifest.json").read_text())["files"][1]["arrays"]
    content = bytearray((folder / "device-1.shard").read_bytes())
    place = entry["out_indices"][1]
    content[place : place + 4] = (2**30).to_bytes(4, "little")
    (folder / "device-1.shard").write_bytes(content)
    with pytest.raises(FileFormatError, match=r"device-1.shard, array 'out_indices': value 0 is 1073741824"):
        shoal.place(graph, shards=folder)


def test_files_of_another_folder_are_refused(folder, tmp_path):
    graph = graphs.random_graph(200, 900, seed=2, weights="int32")
    parts = build_subgraphs(graph, "segment", 3, "one-hop", with_in_edges=True)
    write_shards(tmp_path / "others", graph, parts, "segment", "one-hop")
    (tmp_path / "others" / "device-2.shard").replace(folder / "device-2.shard")
    with pytest.raises(FileFormatError, match=r"device-2.shard, byte 0"):
        read_shards(folder)


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_nothing_is_left_of_a_folder_that_could_not_be_completed(tmp_path, monkeypatch, error):
    graph = graphs.path_graph(9)
    parts = build_subgraphs(graph, "segment", 3, "all", with_in_edges=False)
    write_part, written = shards._write_part, []

    def fail_at_the_second(folder, part, token):
        if part.device == 1:
            raise error
        written.append(write_part(folder, part, token))
        return written[-1]

    monkeypatch.setattr(shards, "_write_part", fail_at_the_second)
    with pytest.raises(ArgumentError if isinstance(error, OSError) else KeyboardInterrupt):
        write_shards(tmp_path / "parts", graph, parts, "segment", "all")
    assert written
    assert list(tmp_path.iterdir()) == []


def test_what_is_there_is_not_replaced(folder, tmp_path):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(ArgumentError, match="new or an empty folder"):
        write_shards(folder, graphs.path_graph(1), [], "segment", "all")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    Path(tmp_path / "file").write_text("mine")
    with pytest.raises(ArgumentError, match="new or an empty folder"):
        write_shards(tmp_path / "file", graphs.path_graph(1), [], "segment", "all")
    with pytest.raises(ArgumentError, match="there is no folder"):
        write_shards(tmp_path / "missing" / "parts", graphs.path_graph(1), [], "segment", "all")


# Runs on shards


@pytest.mark.parametrize("duplication", sorted(DUPLICATIONS))
@pytest.mark.parametrize("with_in_edges", [False, True])
def test_a_run_loads_shards(tmp_path, duplication, with_in_edges):
    graph = graphs.random_graph(200, 900, seed=2, weights="int32", directed=True)
    parts = build_subgraphs(graph, "biased-random", 3, duplication, with_in_edges=with_in_edges)
    write_shards(tmp_path / "parts", graph, parts, "biased-random", duplication)
    placed = shoal.place(graph, shards=tmp_path / "parts")
    assert (placed.devices, placed.partition, placed.duplication) == ("cpu:3", "biased-random", duplication)
    found = shoal.bfs(placed, 0, direction="push", communication="selective")
    np.testing.assert_array_equal(found.distance, shoal.bfs(graph, 0).distance)
    assert found.stats.config["duplication"] == duplication
    assert isinstance(placed.shards_for(duplication, with_in_edges=False)[0].part.out_edges.indices.base, np.ndarray)
    np.testing.assert_array_equal(shoal.pagerank(placed).rank, shoal.pagerank(graph).rank)


def test_shards_of_another_graph_are_refused(folder):
    with pytest.raises(ArgumentError, match="parts of another graph: of 200 vertices"):
        shoal.place(graphs.path_graph(5), shards=folder)


@pytest.mark.parametrize(
    "option", [{"devices": "cpu:2"}, {"partition": "random"}, {"duplication": "all"}], ids=lambda o: next(iter(o))
)
def test_what_the_shards_are_not_is_refused(folder, option):
    graph = graphs.random_graph(200, 900, seed=2, weights="int32")
    with pytest.raises(ArgumentError, match=f"{next(iter(option))}=.* does not fit"):
        shoal.place(graph, shards=folder, **option)


def test_the_command_line_runs_on_shards(tmp_path, folder):
    graph = graphs.random_graph(200, 900, seed=2, weights="int32")
    shoal.write(graph, tmp_path / "graph.shoal")
    path = str(tmp_path / "graph.shoal")
    result = CliRunner().invoke(app, ["sssp", path, "--source", "0", "--shards", str(folder), "--validate", "--json"])
    assert result.exit_code == 0, result.output
    stats = json.loads(result.stdout)["stats"]
    assert stats["num_devices"] == 3
    assert stats["config"]["duplication"] == "one-hop"
