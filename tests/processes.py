# SPDX-License-Identifier: Apache-2.0
"""Python scripts in processes of their own, with this shoal."""

import os
import subprocess
import sys
from pathlib import Path

import shoal

SOURCES = Path(shoal.__file__).resolve().parents[1]


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
