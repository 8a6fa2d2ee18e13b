# SPDX-License-Identifier: Apache-2.0
"""``shoal mpi-run``: a command on the processes of an MPI job, and one line of what went wrong if one of them died.

A launcher ends all processes as soon as it misses one, so none is left to say which it was, and the launcher does not
know it either.  Here each has a shell that waits for it and, if a signal has ended it, leaves word of that in a folder
of the job's, before the launcher hears of it: the first word is of the one that died.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from shoal.checkpoint.folder import how_to_go_on
from shoal.errors import ArgumentError, ShoalError
from shoal.machine import JOB_FOLDER, JOB_TIMEOUT

#: Waits for a command.  The launcher's signals go to both; the command is to act on them, and the shell to tell.
_WATCH = f"""trap : TERM INT
"$@"
status=$?
[ $status -lt 128 ] || echo $status > "${JOB_FOLDER}/died-${{PMI_RANK:-$OMPI_COMM_WORLD_RANK}}"
exit $status"""
_GRACE_SECONDS = 60.0  # a launcher that was asked to end has so long for its processes, which may write checkpoints


def mpi_run(
    words: Annotated[
        list[str], typer.Argument(metavar="COMMAND ...", help="A command of shoal's, or a Python program (.py).")
    ],
    ranks: Annotated[int, typer.Option("-n", "--ranks", metavar="N", help="Number of processes.")] = 2,
    timeout: Annotated[float, typer.Option(help="Seconds after which a silent process is given up.")] = 30.0,
) -> None:
    """Run a command on N processes of this machine, each with a device (devices=mpi)."""
    if ranks < 1:
        raise ArgumentError(f"ranks={ranks} is out of range; it must be a whole number of at least 1")
    if not timeout > 0:
        raise ArgumentError(f"timeout={timeout:g} is out of range; it must be a number of seconds above 0")
    with tempfile.TemporaryDirectory(prefix="shoal-job-") as folder:
        environment = {**os.environ, "SHOAL_DEVICES": "mpi", JOB_FOLDER: folder, JOB_TIMEOUT: str(timeout)}
        command = [find_launcher(), "-n", str(ranks), "/bin/sh", "-c", _WATCH, "sh", *_program(words)]
        status = _launch(command, environment)
        death = _first_death(Path(folder))
        if status != 0 and death is not None:
            raise ShoalError(f"{death}, and the job ended; {_onward(Path(folder), ranks)}")
    if status != 0:
        raise typer.Exit(status)


def find_launcher() -> str:
    """Return the launcher that belongs to this Python's MPI, or else the machine's."""
    beside = Path(sys.executable).with_name("mpiexec")
    found = str(beside) if beside.exists() else shutil.which("mpiexec")
    if found is None:
        raise ShoalError("mpi-run needs mpiexec, which was not found; pip install 'shoal[mpi]' brings one")
    return found


def _program(words: list[str]) -> list[str]:
    is_program = words[0].endswith(".py")
    return [sys.executable, *words] if is_program else [sys.executable, "-m", "shoal.cli", *words]


def _launch(command: list[str], environment: dict[str, str]) -> int:
    """Run a launcher to its end, and return its exit status."""
    process = subprocess.Popen(command, env=environment)
    try:
        return process.wait()
    except BaseException:  # Ctrl-C, SIGTERM: it is for all of them
        _end(process)
        raise


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ask a launcher to end with all its processes, and wait for it; who asks once more is not heard meanwhile."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        process.send_signal(signal.SIGTERM)
        process.wait(_GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _first_death(folder: Path) -> str | None:
    """Return in words which process died first, if any did."""
    words = sorted(folder.glob("died-*"), key=lambda path: path.stat().st_mtime_ns)
    if not words:
        return None
    rank = words[0].name.partition("-")[2]
    host = folder / f"rank-{rank}"
    where = f" on {host.read_text()}" if host.exists() else ""
    number = int(words[0].read_text()) - 128
    return f"rank {rank}{where} died of signal {number} ({signal.Signals(number).name})"


def _onward(folder: Path, ranks: int) -> str:
    kept = folder / "checkpoint"
    if not kept.exists():
        return "it kept no checkpoints"
    return how_to_go_on(kept.read_text(), f"shoal mpi-run -n {ranks} resume")
