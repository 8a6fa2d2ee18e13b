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
