# SPDX-License-Identifier: Apache-2.0
"""What helps at the prompt: examples in every ``--help``, which run, and completion in a shell."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys

import pytest
import typer.main

from shoal.cli import app, main
from shoal.commands.examples import EXAMPLES
from shoal.config import AXES

pytestmark = pytest.mark.host_only("about the command line")

#: What takes minutes, and what goes on with something that did not end, is parsed and not run.
SLOW = ("bench", "compile", "resume")


def leaves(command, names=()):
    """The names of all commands, those in groups as well."""
    inner = getattr(command, "commands", None)
    if inner is None:
        return [" ".join(names)]
    return [name for key, value in inner.items() for name in leaves(value, (*names, key))]


COMMANDS = leaves(typer.main.get_command(app))


def test_every_command_has_an_example():
    assert set(EXAMPLES) == set(COMMANDS)
    for name, examples in EXAMPLES.items():
        assert examples
        assert all(example.startswith(f"shoal {name}") for example in examples)


@pytest.mark.parametrize("name", ["", "generate", *COMMANDS])
def test_help_ends_with_examples(name, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert main([*name.split(), "--help"]) == 0
    text = capsys.readouterr().out
    shown = [line.strip().removeprefix("$ ") for line in text.splitlines() if line.strip().startswith("$ shoal ")]
    if name in EXAMPLES:
        assert tuple(shown) == EXAMPLES[name]
    assert shown
    assert set(shown) <= {example for examples in EXAMPLES.values() for example in examples}


@pytest.mark.parametrize("name", ["bfs", "cc", "pagerank"])
def test_help_names_all_that_a_strategy_may_be(name, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    assert main([name, "--help"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    for axis in set(AXES) - {"output"}:
        option = text.split(f"--{axis.replace('_', '-')} ")[1].split("--")[0]
        assert all(choice in option for choice in AXES[axis]), (axis, option)


def test_examples_run_one_after_the_other(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name, examples in EXAMPLES.items():
        for example in examples:
            arguments = shlex.split(example)[1:]
            if name in SLOW:
                command = typer.main.get_command(app).commands[name]
                assert command.make_context(name, arguments[1:]).params
            else:
                assert main(arguments) == 0, (example, capsys.readouterr().err)
    assert capsys.readouterr().err == ""


def complete(words, shell="bash"):
    """What a shell is offered behind these words, the last of which is still being typed."""
    environment = os.environ | {
        "_SHOAL_COMPLETE": f"complete_{shell}",
        "COMP_WORDS": " ".join(words),
        "COMP_CWORD": str(len(words) - 1),
    }
    command = [sys.executable, "-c", "from shoal.cli import main; main()"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)
    assert done.stderr == ""
    return done.stdout.split()


def test_a_shell_completes_commands():
    assert sorted(complete(["shoal", "b"])) == ["bc", "bench", "bfs"]


def test_a_shell_completes_names_of_strategies():
    assert complete(["shoal", "bfs", "--communication", ""]) == list(AXES["communication"])


def test_a_shell_completes_options():
    assert "--partition-seed" in complete(["shoal", "bfs", "--part"])


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_shown_and_installed(shell, tmp_path):
    environment = os.environ | {"HOME": str(tmp_path), "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    call = [sys.executable, "-c", "import sys; from shoal.cli import main; sys.exit(main())"]
    shown = subprocess.run(
        [*call, "--show-completion", shell], capture_output=True, text=True, env=environment, timeout=120
    )
    assert shown.returncode == 0
    assert f"_SHOAL_COMPLETE=complete_{shell}" in shown.stdout
    done = subprocess.run(
        [*call, "--install-completion", shell], capture_output=True, text=True, env=environment, timeout=120
    )
    assert done.returncode == 0, done.stderr
    written = [path.read_text(encoding="utf-8") for path in tmp_path.rglob("*") if path.is_file()]
    assert any("_SHOAL_COMPLETE" in text for text in written)
