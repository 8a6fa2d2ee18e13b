# SPDX-License-Identifier: Apache-2.0
"""Scripts on the ranks of an MPI job on this machine, with this shoal."""

import os
import subprocess
import sys
from pathlib import Path

from processes import SOURCES
from shoal.commands.launching import find_launcher

TESTS = Path(__file__).parent
#: Far more than a job here takes, so that one that hangs is a failure and not the end of the test run.
PATIENCE_SECONDS = 600


def start_job(num_ranks, path, *arguments, **environment):
    """Start a script on so many ranks."""
    paths = os.pathsep.join(filter(None, [str(SOURCES), str(TESTS), os.environ.get("PYTHONPATH")]))
    variables = {**os.environ, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1", **environment}
    command = [find_launcher(), "-n", str(num_ranks), sys.executable, "-u", str(path), *map(str, arguments)]
    return subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run_job(num_ranks, path, *arguments, timeout_seconds=PATIENCE_SECONDS, **environment):
    """Run a script on so many ranks to its end; return the launcher's exit status and what all ranks wrote."""
    process = start_job(num_ranks, path, *arguments, **environment)
    try:
        output, errors = process.communicate(timeout=timeout_seconds)
    finally:
        process.kill()
    return process.returncode, output, errors
