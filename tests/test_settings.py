# SPDX-License-Identifier: Apache-2.0
"""Options from shoal.toml and from SHOAL_* variables: which goes first, and what is said of wrong ones; logs."""

from __future__ import annotations

import json
import logging
import re
import shlex
from pathlib import Path

import pytest

import shoal
from shoal.cli import app, main
from shoal.commands.settings import OTHER_VARIABLES
from shoal.machine import JOB_FOLDER, JOB_TIMEOUT

pytestmark = pytest.mark.host_only("about the command line")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shoal.write(shoal.Graph.from_edges([0, 1], [1, 2]), "g.shoal")
    return tmp_path


@pytest.fixture
def run(folder, capsys):
    """Run a command that must succeed and return the object it prints."""

    def call(line):
        assert main(shlex.split(line)) == 0, capsys.readouterr().err
        return json.loads(capsys.readouterr().out)

    return call


@pytest.fixture
def complaint(folder, capsys):
    """Run a command that must fail and return what it says, one line."""

    def call(line):
        assert main(shlex.split(line)) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.startswith("shoal: error: ")
        assert captured.err.count("\n") == 1
        return captured.err

    return call


def write_settings(text, path="shoal.toml"):
    Path(path).write_text(text, encoding="utf-8")


LEVELS = ["default", "file", "variable", "flag"]


@pytest.mark.parametrize("top", range(4))
def test_flag_variable_file_default(top, run, monkeypatch):
    """Each of the four wins where none above it says anything."""
    if top >= 1:
        write_settings("partition-seed = 1")
    if top >= 2:
        monkeypatch.setenv("SHOAL_PARTITION_SEED", "2")
    flags = " --partition-seed 3" if top == 3 else ""
    assert run(f"cc g.shoal --json{flags}")["stats"]["config"]["partition_seed"] == top


def test_devices_are_one_setting_with_one_order(run, monkeypatch):
    def devices(flags=""):
        return run(f"cc g.shoal --json{flags}")["stats"]["config"]["devices"]

    assert devices() == "cpu"
    write_settings('devices = "cpu:1x1"')
    assert devices() == "cpu:1x1"
    monkeypatch.setenv("SHOAL_DEVICES", "cpu:1")
    assert devices() == "cpu:1"
    assert devices(" --devices cpu") == "cpu"
    monkeypatch.setenv("SHOAL_DEVICES", "")
    assert devices() == "cpu:1x1"


def test_a_command_s_own_table_goes_before_the_top(run):
    write_settings("damping = 0.5\niterations = 2\n[pagerank]\niterations = 3\n[bfs]\ncutoff = 1\n")
    assert run("pagerank g.shoal --json")["result"]["iterations"] == 3
    assert run("bfs g.shoal --source 0 --json")["result"]["reached"] == 2
    assert run("cc g.shoal --json")["result"]["components"] == 1


@pytest.mark.parametrize("key", ["edge-factor", "edge_factor"])
def test_tables_of_a_group_and_of_its_commands(key, run):
    write_settings(f"[generate]\nseed = 5\n[generate.uniform]\nscale = 3\n{key} = 2\n")
    assert run("generate uniform a.shoal --json --no-deduplicate --no-drop-self-loops")["vertices"] == 8
    assert shoal.read("a.shoal") == shoal.generate.uniform(3, 2, seed=5, deduplicate=False, drop_self_loops=False)
    run("generate uniform b.shoal --json --scale 4")
    assert shoal.read("b.shoal") == shoal.generate.uniform(4, 2, seed=5)


def test_values_of_every_kind(run, monkeypatch):
    write_settings("source = [0, 2]\ndirected = true\ndo_a = 0.5\n")
    both = run("bfs g.shoal --json")
    assert both["stats"]["config"]["do_a"] == 0.5
    assert both["result"]["reached"] == 4 or both["result"]["reached"] == 6
    monkeypatch.setenv("SHOAL_SOURCE", "1, 2")
    monkeypatch.setenv("SHOAL_PARENTS", "no")
    assert run("bfs g.shoal --json --undirected")["result"]["reached"] == 6


def test_switches(folder, capsys, monkeypatch):
    write_settings("quiet = true")
    assert main(["info", "g.shoal"]) == 0
    assert capsys.readouterr().out == ""
    monkeypatch.setenv("SHOAL_QUIET", "off")
    assert main(["info", "g.shoal"]) == 0
    assert "vertices" in capsys.readouterr().out


def test_another_file(run, monkeypatch):
    write_settings("iterations = 2")
    write_settings("iterations = 3", "other.toml")
    write_settings("iterations = 4", "third.toml")
    monkeypatch.setenv("SHOAL_CONFIG", "third.toml")
    assert run("pagerank g.shoal --json")["result"]["iterations"] == 4
    assert run("pagerank g.shoal --json --config other.toml")["result"]["iterations"] == 3


WRONG_FILES = {
    "key": ("fanuot = 2", ["shoal.toml: option='fanuot'", "allowed:", "did you mean 'fanout'?"]),
    "key of another command": ("[cc]\nsource = 1", ["shoal.toml, [cc]: option='source'", "allowed:"]),
    "table": ("[lovain]\nfanout = 2", ["shoal.toml: table='lovain'", "did you mean 'louvain'?"]),
    "table in a table": ("[bfs.deep]\nfanout = 2", ["shoal.toml, [bfs]: table='deep'"]),
    "twice": ("do-a = 1\ndo_a = 1", ["shoal.toml: do_a=1", "twice"]),
    "no TOML": ("fanout = 2\nfanout", ["shoal.toml: is not TOML", "at "]),
    "name": ('partition = "mitis"', ["shoal.toml: partition='mitis'", "allowed: auto", "did you mean 'metis'?"]),
    "number": ('fanout = "many"', ["shoal.toml: ", "--fanout", "'many'", "whole number"]),
    "fraction": ("fanout = 1.5", ["shoal.toml: ", "--fanout", "'1.5'", "whole number"]),
    "range": ("fanout = 7", ["shoal.toml: fanout=7", "from 1 to 1"]),
    "switch": ("quiet = 7", ["shoal.toml: quiet='7'", "true", "false"]),
    "list": ("fanout = [1, 2]", ["shoal.toml: fanout=[1, 2]", "one value"]),
    "date": ("partition = 1979-05-27", ["shoal.toml: partition='1979-05-27'", "allowed: auto"]),
    "log level": ('log-level = "loud"', ["shoal.toml: log_level='loud'", "debug, info"]),
}


@pytest.mark.parametrize("case", WRONG_FILES)
def test_what_is_wrong_in_a_file(case, complaint):
    text, words = WRONG_FILES[case]
    write_settings(text)
    message = complaint("cc g.shoal")
    for word in words:
        assert word in message


@pytest.mark.parametrize(("variable", "value", "words"), [
    ("SHOAL_DEVICSE", "cpu", ["'SHOAL_DEVICSE'", "did you mean 'SHOAL_DEVICES'?"]),
    ("SHOAL_DEVICES", "tpu", ["SHOAL_DEVICES: devices='tpu'", "allowed: auto, cpu"]),
    ("SHOAL_FANOUT", "two", ["SHOAL_FANOUT: ", "'two'", "whole number"]),
    ("SHOAL_JSON", "maybe", ["SHOAL_JSON: json='maybe'", "allowed: true"]),
    ("SHOAL_CONFIG", "none.toml", ["config='none.toml'", "No such file"]),
])  # fmt: skip
def test_what_is_wrong_in_a_variable(variable, value, words, complaint, monkeypatch):
    monkeypatch.setenv(variable, value)
    message = complaint("cc g.shoal")
    for word in words:
        assert word in message


def test_what_a_flag_says_is_not_blamed_on_a_file(complaint):
    write_settings('partition = "metis"\nfanout = 2')
    assert complaint("cc g.shoal --partition mitis").startswith("shoal: error: partition='mitis'")
    assert complaint("cc g.shoal --fanout x").startswith("shoal: error: Invalid value for '--fanout'")


def test_a_file_that_is_not_there(complaint):
    assert "config='none.toml' cannot be read" in complaint("cc g.shoal --config none.toml")


def test_other_variables_may_be_set(run, monkeypatch):
    for name in OTHER_VARIABLES:
        if name != "SHOAL_CACHE_DIR":
            monkeypatch.setenv(name, "1")
    assert run("info g.shoal --json")["vertices"] == 3


def test_every_variable_that_is_read_is_known():
    root = Path(__file__).resolve().parents[1]
    texts = [path.read_text(encoding="utf-8") for part in ("src", "tests") for path in (root / part).rglob("*.py")]
    read = {name for text in texts for name in re.findall(r'environ(?:\.get\(|\[)"(SHOAL_[A-Z_]+)"', text)}
    read |= {JOB_FOLDER, JOB_TIMEOUT}  # by these names
    assert set(OTHER_VARIABLES) <= read | {"SHOAL_CACHE_DIR"}
    options = {"SHOAL_DEVICES"}
    assert read - set(OTHER_VARIABLES) <= options


def test_a_broken_file_does_not_keep_help_away(folder, capsys):
    write_settings("fanuot = 2")
    assert main(["cc", "--help"]) == 0
    assert "--config" in capsys.readouterr().out


class TestLog:
    def lines(self, capsys):
        return [line.split(" ", 2)[2] for line in capsys.readouterr().err.splitlines()]

    def test_levels(self, folder, capsys):
        write_settings("partition-seed = 3")
        assert main(shlex.split("cc g.shoal --quiet --log-level info")) == 0
        lines = self.lines(capsys)
        assert lines[:2] == ["INFO shoal.settings: partition_seed=3 from shoal.toml", "INFO shoal: reading g.shoal"]
        assert any(line.startswith("INFO shoal: cc: Stats(seconds=") for line in lines)
        assert main(shlex.split("cc g.shoal --quiet --log-level debug")) == 0
        assert any("DEBUG shoal: cc ran with" in line for line in self.lines(capsys))
        assert main(shlex.split("cc g.shoal --quiet")) == 0
        assert capsys.readouterr() == ("", "")

    def test_json_stays_alone_on_standard_output(self, folder, capsys):
        assert main(shlex.split("info g.shoal --json --log-level debug")) == 0
        captured = capsys.readouterr()
        assert json.loads(captured.out)["vertices"] == 3
        assert "reading g.shoal took" in captured.err

    def test_an_unknown_level(self, complaint):
        assert "log_level='loud' is not known; allowed: debug, info" in complaint("info g.shoal --log-level loud")
        assert logging.getLogger("shoal").handlers == []


def test_every_command_takes_settings(folder, capsys):
    commands = [command.name for command in app.registered_commands] + ["generate rmat", "generate grid"]
    commands.remove("mpi-run")  # the command behind it takes them
    for name in commands:
        assert main([*name.split(), "--help"]) == 0
        text = capsys.readouterr().out
        assert "--config" in text
        assert "--log-level" in text
