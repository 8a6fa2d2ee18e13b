# SPDX-License-Identifier: Apache-2.0
"""Topologies: the shipped machines, paths, parts of a machine and larger ones, files, and what is refused."""

import doctest
import itertools
import json
from dataclasses import replace

import numpy as np
import pytest

from command_line import assert_refused, run
from shoal import ArgumentError, model
from shoal.errors import FileFormatError
from shoal.model import TOPOLOGIES, Topology, find_topology, load_topology, make_topology, matrices, topology_files

pytestmark = pytest.mark.host_only("about machines that are not here")

NAMES = ("dgx-h100", "dgx1-v100", "dgx2-v100", "ethernet-cluster", "hgx-h200", "m60-octo", "pcie-k40-quad")
MESH = TOPOLOGIES["dgx1-v100"]
#: A line of three devices: 0 = 1 - 2.
LINE = {
    "name": "line",
    "num_devices": 3,
    "num_links": [[0, 2, 0], [2, 0, 1], [0, 1, 0]],
    "link_bandwidth": 10.0,
    "local_bandwidth": 100.0,
}
PAIR = Topology("pair", 2, [[100.0, 10.0], [20.0, 100.0]])


def test_shipped_machines():
    assert tuple(TOPOLOGIES) == NAMES
    assert len(TOPOLOGIES) == 7
    assert all(entry.name == name for name, entry in TOPOLOGIES.items())
    assert "k40" not in TOPOLOGIES


@pytest.mark.parametrize("name", NAMES)
def test_every_number_has_a_source(name):
    values = topology_files.read_table(topology_files._FOLDER / f"{name}.toml")
    numbers = set(values) - {"name", "num_devices", "source"}
    assert set(values["source"]) == numbers
    assert all(len(words.split()) > 1 for words in values["source"].values())


def test_gunrocks_machine():
    quad = TOPOLOGIES["pcie-k40-quad"]
    assert quad.barrier_seconds == (66.8e-6, 124e-6, 142e-6, 188e-6)
    assert quad.seconds_per_byte == pytest.approx(1 / 20e9)
    assert quad.latency_seconds == 7.5e-6


def test_six_links_a_device_in_the_mesh():
    assert [sum(row) for row in MESH.num_links] == [6] * 8
    assert MESH.num_links == tuple(zip(*MESH.num_links, strict=True))
    assert {MESH.outgoing_bandwidth(device) for device in range(8)} == {150e9}
    assert (MESH.links(0, 3), MESH.links(0, 1), MESH.links(0, 7)) == (2, 1, 0)


def test_the_mesh_is_that_of_the_paper():
    """In GUM's numbers device 0 reaches 7 by way of 1 or 6 only, and 3 by two links."""
    named = MESH.subset([0, 1, 2, 3, 6, 7, 4, 5])
    assert named.links(0, 7) == 0
    assert [k for k in range(8) if named.links(0, k) and named.links(k, 7)] == [1, 6]
    assert named.links(0, 3) == 2


@pytest.mark.parametrize(
    ("name", "num_devices", "gigabytes"),
    [("dgx2-v100", 16, 150), ("dgx-h100", 8, 450), ("hgx-h200", 8, 450), ("ethernet-cluster", 16, 12.5)],
)
def test_switches_give_a_device_what_its_port_has(name, num_devices, gigabytes):
    found = TOPOLOGIES[name]
    assert found.num_devices == num_devices
    assert found.seconds_per_byte == pytest.approx(1 / (gigabytes * 1e9))
    assert {found.bandwidth[i][j] for i, j in itertools.permutations(range(num_devices), 2)} == {gigabytes * 1e9}


def test_quadruplets_meet_through_the_host():
    octo = TOPOLOGIES["m60-octo"]
    assert (octo.path(0, 3), octo.path(3, 4), octo.path(2, 2)) == ("direct", "host", "local")
    assert octo.bandwidth[3][4] < octo.bandwidth[0][3]
    assert octo.seconds_per_byte == pytest.approx(1 / octo.bandwidth[0][3])


def test_speed_is_that_of_memory():
    for found in TOPOLOGIES.values():
        # A copy reaches 4.0 TB/s on an H200, whose scale is 1.
        assert found.bandwidth[0][0] == pytest.approx(4.0e12 * found.compute_scale, rel=2e-3)


def test_pairs_without_a_link_go_through_another_device():
    line = make_topology(LINE)
    assert line.bandwidth[0] == (100, 20, 10)
    assert line.path(0, 2) == "through 1"
    assert MESH.path(0, 7) == "through 4"  # two links each way; by 3 it would be one
    assert MESH.bandwidth[0][7] == 50e9


def test_pairs_without_a_link_go_through_the_host_where_that_is_faster():
    line = make_topology({**LINE, "host_bandwidth": 15.0})
    assert (line.path(0, 2), line.bandwidth[0][2]) == ("host", 15)
    assert line.bandwidth[0][1] == 20
    assert make_topology({**LINE, "host_bandwidth": 10.0}).path(0, 2) == "through 1"


def test_pairs_without_any_path():
    apart = {**LINE, "num_links": [[0, 0, 0], [0, 0, 1], [0, 1, 0]]}
    with pytest.raises(ArgumentError, match=r"devices 0 and 1 .*host_bandwidth"):
        make_topology(apart)
    assert make_topology({**apart, "host_bandwidth": 3.0}).seconds_per_byte == pytest.approx(1 / 3)


def test_slowest_device_gives_g():
    assert PAIR.outgoing_bandwidth(0) == 10
    assert PAIR.outgoing_bandwidth(1) == 20
    assert PAIR.seconds_per_byte == pytest.approx(0.1)
    assert PAIR.resized(1).seconds_per_byte == 0
    line = make_topology(LINE)
    assert [line.outgoing_bandwidth(i) for i in range(3)] == [20, 30, 10]
    assert [replace(line, is_switched=True).outgoing_bandwidth(i) for i in range(3)] == [20, 20, 10]


def test_matrix_may_be_an_array_and_a_source_words():
    assert replace(PAIR, bandwidth=np.array([[100, 10], [20, 100]])) == PAIR
    assert replace(PAIR, source="a guess").source == {"all": "a guess"}
    assert hash(replace(PAIR, source="a guess")) == hash(PAIR)


def test_barriers_go_on_along_a_line():
    found = replace(make_topology(LINE).resized(2), barrier_seconds=[1, 5])
    assert (found.seconds_per_superstep(1), found.seconds_per_superstep()) == (1, 5)
    wide = {"name": "w", "num_devices": 6, "num_links": 1, "link_bandwidth": 1, "local_bandwidth": 1}
    three = make_topology({**wide, "barrier_seconds": [1, 10, 11, 14], "source": {"barrier_seconds": "a clock"}})
    assert three.barrier_seconds == (1, 10, 11, 14, 16, 18)
    assert three.source["barrier_seconds"] == "a clock; on a straight line beyond 4 devices"
    assert make_topology({**wide, "barrier_seconds": [1, 10]}).barrier_seconds == (1, 10, 10, 10, 10, 10)
    assert make_topology({**wide, "barrier_seconds": 2}).barrier_seconds == (2,) * 6
    assert make_topology({**wide, "barrier_seconds": [9, 9, 5, 1]}).barrier_seconds == (9, 9, 5, 1, 0, 0)


def test_subset():
    two = MESH.subset([3, 0])
    assert two.num_devices == 2
    assert (two.links(0, 1), two.bandwidth[0][1], two.barrier_seconds) == (2, 50e9, MESH.barrier_seconds[:2])
    assert MESH.subset([0, 7]).path(0, 1) == "through 4"
    assert MESH.subset(range(8)) == MESH


@pytest.mark.parametrize("devices", [[], [0, 0], [8], [-1], ["0"], None])
def test_subset_of_devices_that_are_not_there(devices):
    with pytest.raises(ArgumentError, match="devices="):
        MESH.subset(devices)


def test_resized():
    six = TOPOLOGIES["pcie-k40-quad"].resized(6)
    assert six.num_devices == 6
    assert six.bandwidth[5][0] == 20e9
    assert six.bandwidth[5][5] == six.bandwidth[0][0]
    assert six.seconds_per_superstep(6) == pytest.approx(252e-6)
    assert "beyond 4 devices" in six.source["barrier_seconds"]
    assert six.resized(4).barrier_seconds == TOPOLOGIES["pcie-k40-quad"].barrier_seconds
    assert TOPOLOGIES["ethernet-cluster"].resized(64).links(63, 0) == 1
    assert MESH.resized(4) == MESH.subset([0, 1, 2, 3])


@pytest.mark.parametrize("found", [MESH, TOPOLOGIES["m60-octo"], PAIR, TOPOLOGIES["dgx2-v100"].resized(1)])
def test_machines_that_cannot_grow(found):
    with pytest.raises(ArgumentError, match=rf"num_devices=17 .*has {found.num_devices} devices.*one switch"):
        found.resized(17)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": ""}, "name=''"),
        ({"num_devices": 0}, "num_devices=0"),
        ({"num_devices": 3}, "bandwidth=.*3 rows of 3"),
        ({"bandwidth": 5.0}, r"bandwidth=5\.0 .*2 rows of 2"),
        ({"bandwidth": [[1, 2], [3]]}, "bandwidth=.*2 rows of 2"),
        ({"bandwidth": [[1, 0], [1, 1]]}, r"bandwidth\[0\]\[1\]=0 .*above 0"),
        ({"bandwidth": [[1, 1], [float("nan"), 1]]}, r"bandwidth\[1\]\[0\]=nan"),
        ({"latency_seconds": -1}, "latency_seconds=-1"),
        ({"latency_seconds": float("inf")}, "latency_seconds=inf"),
        ({"barrier_seconds": [1, 2, 3]}, "barrier_seconds=.* 1 to 2"),
        ({"barrier_seconds": []}, "barrier_seconds="),
        ({"barrier_seconds": [1, "x"]}, r"barrier_seconds\[1\]='x'"),
        ({"compute_scale": 0}, "compute_scale=0"),
        ({"source": 7}, "source=7"),
        ({"num_links": [[0, -1], [1, 0]]}, r"num_links\[0\]\[1\]=-1"),
        ({"paths": [["local", 1], ["host", "local"]]}, r"paths\[0\]\[1\]=1"),
        ({"is_switched": "yes"}, "is_switched='yes'"),
    ],
)
def test_topology_that_cannot_be(change, message):
    with pytest.raises(ArgumentError, match=message):
        replace(PAIR, **change)


@pytest.mark.parametrize(
    "call", [lambda: PAIR.links(0, 2), lambda: PAIR.path(-1, 0), lambda: PAIR.outgoing_bandwidth(2)]
)
def test_device_that_is_not_there(call):
    with pytest.raises(ArgumentError, match="from 0 to 1"):
        call()


def test_superstep_of_more_devices_than_there_are():
    with pytest.raises(ArgumentError, match=r"num_devices=3 .*from 1 to 2"):
        PAIR.seconds_per_superstep(3)


@pytest.mark.parametrize("name", [*NAMES, "line"])
@pytest.mark.parametrize("suffix", ["toml", "json"])
def test_files_say_the_same(tmp_path, name, suffix):
    found = (
        make_topology({**LINE, "source": {"an odd key": 'with "quotes"\n\\ and é'}})
        if name == "line"
        else TOPOLOGIES[name]
    )
    found.save(tmp_path / f"machine.{suffix}")
    assert load_topology(tmp_path / f"machine.{suffix}") == found
    assert find_topology(str(tmp_path / f"machine.{suffix}")) == found
    assert [path.name for path in tmp_path.iterdir()] == [f"machine.{suffix}"]


def test_topology_is_found_by_name_or_file_or_taken_as_it_is(tmp_path):
    assert find_topology(PAIR) is PAIR
    assert find_topology("dgx2-v100") is TOPOLOGIES["dgx2-v100"]
    PAIR.save(tmp_path / "pair.json")
    assert find_topology(tmp_path / "pair.json") == PAIR


def test_unknown_topology():
    with pytest.raises(ArgumentError, match=r"topology='dgx2' .*dgx-h100, .*a file .*did you mean 'dgx2-v100'"):
        find_topology("dgx2")
    with pytest.raises(ArgumentError, match=r"topology=None.*dgx-h100"):
        find_topology(None)


BAD_FILES = [
    ("bad.toml", "name = ", "bad.toml"),
    ("bad.json", "{", "bad.json"),
    ("bad.json", "[1]", "bad.json.*table"),
    ("bad.toml", "", "bad.toml.*empty"),
    ("bad.toml", b"name = '\xff'", "bad.toml.*utf-8"),
    ("bad.toml", "num_devices = 2", "bad.toml: there is no name"),
    ("bad.toml", "name = 'x'\nnum_devices = 2", "bad.toml: there is no link_bandwidth"),
    ("bad.toml", "name = 'x'\nnum_device = 2", "bad.toml: field='num_device' .*did you mean 'num_devices'"),
    ("bad.json", json.dumps({**LINE, "num_links": 0}), "bad.json: num_links=0"),
    ("bad.json", json.dumps({**LINE, "num_links": [[0]]}), "bad.json: num_links=.*3 rows"),
    ("bad.json", json.dumps({**LINE, "num_devices": "3"}), "bad.json: num_devices='3'"),
    ("bad.json", json.dumps({**LINE, "link_bandwidth": -1}), "bad.json: link_bandwidth=-1"),
    ("bad.json", json.dumps({**LINE, "bandwidth": [[1]]}), "bad.json: bandwidth and link_bandwidth"),
]


@pytest.mark.parametrize(("name", "text", "message"), BAD_FILES)
def test_bad_files(tmp_path, name, text, message):
    (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(FileFormatError, match=message):
        load_topology(tmp_path / name)


def test_files_that_are_none(tmp_path):
    with pytest.raises(ArgumentError, match=r"missing\.toml.*No such file"):
        find_topology(str(tmp_path / "missing.toml"))
    with pytest.raises(ArgumentError, match=r"\.yaml.*must end in \.toml or \.json"):
        load_topology("machine.yaml")
    with pytest.raises(ArgumentError, match=r"must end in \.toml or \.json"):
        PAIR.save("machine.yaml")


@pytest.mark.parametrize("module", [matrices, model.topology, topology_files])
def test_examples(module):
    assert doctest.testmod(module).failed == 0


def test_command_shows_links_of_each_pair(capsys):
    shown = run("devices --topology dgx1-v100", capsys)
    rows = {line.split()[0]: line for line in shown.splitlines() if line.strip()[:1].isdigit()}
    assert "25 ~1" in rows["0"]
    assert "50 (2)" in rows["0"]
    assert "compute_scale: memory bandwidth" in shown
    assert "1, 3, 5, 7" in shown


def test_command_shows_a_switch_in_few_words(capsys):
    shown = run("devices --topology pcie-k40-quad", capsys)
    assert "20 GB/s (1)" in shown
    assert "66.8, 124, 142, 188 us" in shown
    assert "7.5 us" in shown


def test_command_prints_a_file(tmp_path, capsys):
    (tmp_path / "again.json").write_text(run("devices --topology m60-octo --json", capsys))
    assert load_topology(tmp_path / "again.json") == TOPOLOGIES["m60-octo"]
    assert "m60-octo" in run(f"devices --topology {tmp_path / 'again.json'}", capsys)


def test_command_shows_this_machine(capsys, monkeypatch):
    monkeypatch.setattr("shoal.model.discover", lambda: PAIR)
    assert json.loads(run("devices --topology here --json", capsys))["name"] == "pair"


def test_command_refuses(tmp_path, capsys):
    assert_refused("devices --topology dgx", "topology='dgx' dgx1-v100", capsys)
    assert_refused("devices --topology missing.toml", "missing.toml", capsys)
    (tmp_path / "bad.toml").write_text("name = 3")
    assert_refused(f"devices --topology {tmp_path / 'bad.toml'}", "bad.toml num_devices", capsys)
