# SPDX-License-Identifier: Apache-2.0
"""Run shoal's commands inside the test's own process."""

import shlex

from shoal.cli import main


def run(command, capsys):
    """Run a command that must succeed and return what it prints."""
    assert main(shlex.split(command)) == 0, capsys.readouterr().err
    printed = capsys.readouterr()
    assert printed.err == ""
    return printed.out


def assert_refused(command, words, capsys):
    """Run a command that must be refused, in one line that has all the words and with status 2."""
    assert main(shlex.split(command)) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("shoal: error: ")
    assert printed.err.count("\n") == 1
    for word in words.split():
        assert word in printed.err
