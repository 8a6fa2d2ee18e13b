# SPDX-License-Identifier: Apache-2.0
"""What ``devices="auto"`` means: SHOAL_DEVICES, or the CPU; and that ``pytest --backend cuda`` is made of it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from checks import assert_refused
from gpu_missing import what_is_missing
from shoal.config import parse_devices
from shoal.errors import ShoalError

pytestmark = pytest.mark.host_only("starts processes with a default of their own")

TESTS = Path(__file__).resolve().parent
#: A machine with a GPU, as far as collecting tests asks.
CUPY = """\
class cuda:
    class runtime:
        CUDARuntimeError = RuntimeError
        getDeviceCount = staticmethod(lambda: 1)
"""


def run_python(*arguments, devices=None, path=()):
    environment = {name: value for name, value in os.environ.items() if name != "SHOAL_DEVICES"}
    environment["PYTHONPATH"] = os.pathsep.join([*map(str, path), str(TESTS.parent / "src"), *sys.path])
    if devices is not None:
        environment["SHOAL_DEVICES"] = devices
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=environment, cwd=TESTS)


RUN = """\
import shoal
graph = shoal.generate.grid(3, 4)
for how in ({}, {"devices": "auto"}, {"devices": "cpu:2"}):
    try:
        stats = shoal.bfs(graph, 0, **how).stats.to_dict()
        print(stats["config"]["devices"], stats["num_devices"])
    except shoal.ArgumentError as error:
        print(error)
"""


@pytest.mark.parametrize(("devices", "found"), [(None, "cpu 1"), ("", "cpu 1"), ("cpu:3", "cpu:3 3")])
def test_the_environment_says_what_auto_is(devices, found):
    done = run_python("-c", RUN, devices=devices)
    assert done.stdout.splitlines() == [found, found, "cpu:2 2"], done.stderr


def test_a_wrong_default_is_named_where_it_is_used():
    done = run_python("-c", RUN, devices="tpu")
    first, second, third = done.stdout.splitlines()
    assert first == second
    assert first.startswith("SHOAL_DEVICES='tpu' is not known; allowed: cpu, cpu:N")
    assert third == "cpu:2 2"


def test_a_suite_for_a_gpu_says_what_is_missing():
    if what_is_missing() is None:
        pytest.skip("nothing is missing here")
    done = run_python("-m", "pytest", "--backend", "cuda", "test_accesses.py")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    lines = [line for line in done.stderr.splitlines() if line]
    assert lines == [f"ERROR: --backend cuda: {what_is_missing()}"]


def test_a_suite_for_a_gpu_leaves_out_what_says_nothing_about_one(tmp_path):
    pytest.importorskip("cuda.core")
    (tmp_path / "cupy.py").write_text(CUPY)
    files = ["test_accesses.py", "test_priorities.py"]
    listed = {}
    for backend in ("cpu", "cuda"):
        done = run_python("-m", "pytest", "--collect-only", "--backend", backend, *files, path=[tmp_path])
        assert done.returncode == 0, done.stdout + done.stderr
        listed[backend] = {line for line in done.stdout.splitlines() if "::" in line}
    assert any("test_accesses.py" in line for line in listed["cpu"])
    assert not any("test_accesses.py" in line or "arena" in line for line in listed["cuda"])
    assert any("test_a_priority_may_be_negative" in line for line in listed["cuda"])
    assert listed["cuda"] < listed["cpu"]


@pytest.mark.parametrize(
    ("devices", "numbers"),
    [
        ("cuda", (0,)),
        ("cuda:2", (2,)),
        ("cuda:0-2", (0, 1, 2)),
        ("cuda:0,2", (0, 2)),
        ("cuda:1*3", (1, 1, 1)),
        ("cuda:0*2,3", (0, 0, 3)),
        ("cuda:all", (0, 1, 2, 3, 4)),
    ],
)
def test_gpus_that_are_asked_for(monkeypatch, devices, numbers):
    monkeypatch.setattr("shoal.config.count_gpus", lambda asked: 5)
    spec = parse_devices(devices)
    assert (spec.kind, spec.num_devices, spec.numbers) == ("cuda", len(numbers), numbers)


def test_all_gpus_where_there_are_none(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    assert_refused(lambda: parse_devices("cuda:all"), "devices='cuda:all'", "CuPy", error=ShoalError)
