# SPDX-License-Identifier: Apache-2.0
"""Settings that every test shares: how hypothesis searches, that Ctrl-C is heard, and which devices programs run on.

With ``--backend cuda`` a GPU is what ``devices="auto"`` means, so that every test that does not name devices runs its
programs there.  Tests that say nothing about a GPU are marked ``host_only``, with the reason, and are left out then.
"""

import faulthandler
import os
import signal
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# The first example of a test may compile kernels, so no example has a deadline and slow ones are no error.
settings.register_profile("quick", deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("quick"), derandomize=True, print_blob=True)
settings.register_profile("long", settings.get_profile("quick"), max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "quick"))

# What a shell starts in the background ignores Ctrl-C, and so do the processes it starts: tests press it on those.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Scripts whose parts tests use.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))

HANGS_SECONDS = 120  # far more than any test of runs that may wait for one another takes


@pytest.fixture
def way_out():
    """End a run that hangs as Ctrl-C would, and if it does not even listen to that, the process."""

    def ring(*_):
        raise TimeoutError("the run hangs")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(HANGS_SECONDS)
    faulthandler.dump_traceback_later(2 * HANGS_SECONDS, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(autouse=True, scope="session")
def devices_share_small_graphs():
    """Let several devices do what one would do sooner: tests are about devices, and their graphs are small."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("shoal.backends.cpu.backend.CPUBackend.least_shared_edges", 0)
        yield


@pytest.fixture
def no_thread_is_left():
    """Hold a test to its word that all threads it starts end with it."""
    before = set(threading.enumerate())
    yield
    assert set(threading.enumerate()) <= before


def pytest_addoption(parser):
    parser.addoption("--backend", choices=["cpu", "cuda"], default="cpu", help="where programs run by default (cpu)")


def pytest_configure(config):
    """Say what ``devices="auto"`` means, before anything imports shoal; processes that tests start inherit it."""
    backend = config.getoption("backend")
    if backend == "cuda":
        from gpu_missing import what_is_missing

        reason = what_is_missing()
        if reason:
            raise pytest.UsageError(f"--backend cuda: {reason}")
        os.environ["SHOAL_DEVICES"] = backend
    else:
        os.environ.pop("SHOAL_DEVICES", None)


def pytest_collection_modifyitems(config, items):
    """Leave out what says nothing about a GPU."""
    if config.getoption("backend") == "cpu":
        return
    left_out = [item for item in items if item.get_closest_marker("host_only")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("host_only")]
