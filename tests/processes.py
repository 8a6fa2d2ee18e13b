# SPDX-License-Identifier: Apache-2.0
"""Python scripts in processes of their own, with this shoal."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import shoal

SOURCES = Path(shoal.__file__).resolve().parents[1]
PATIENCE_SECONDS = 60


def start_script(path, *arguments, **environment):
    """Start a script; its output can be read line by line."""
    paths = os.pathsep.join(filter(None, [str(SOURCES), os.environ.get("PYTHONPATH")]))
    variables = {**os.environ, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1", **environment}
    command = [sys.executable, "-u", str(path), *arguments]
    return subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run_script(path, *arguments, timeout_seconds=120, **environment):
    """Run a script to its end; return its exit status and what it wrote."""
    process = start_script(path, *arguments, **environment)
    try:
        output, errors = process.communicate(timeout=timeout_seconds)
    finally:
        process.kill()
    return process.returncode, output, errors


def interrupt(process, *, after_seconds=1.0):
    """Press Ctrl-C some time into a script's run; return the seconds until that was over.

    The script says "running" and "interrupted" when it is.
    """
    assert process.stdout.readline() == "running\n", process.stderr.read()
    time.sleep(after_seconds)
    pressed = time.monotonic()
    process.send_signal(signal.SIGINT)
    patience = threading.Timer(PATIENCE_SECONDS, process.kill)  # then there is nothing more to read
    patience.start()
    try:
        assert process.stdout.readline() == "interrupted\n"
    finally:
        patience.cancel()
    return time.monotonic() - pressed
