# SPDX-License-Identifier: Apache-2.0
"""A plugin of pytest for NetworkX's own tests: it counts which calls shoal has served, and prints them at the end.

A call is served if shoal's function was entered and did not hand it back; a test, if one call in it was.  What a
fixture or a module calls while tests are collected counts for no test.
"""

from __future__ import annotations

import functools
from collections import Counter

import networkx as nx
import pytest

from shoal_networkx import interface

#: Tests of NetworkX that are left out, by the end of their id, and why.
SKIPS: dict[str, str] = {}

#: Of so many tests at least one call must have been served.
LEAST_TESTS = 400

calls: Counter[str] = Counter()
served: Counter[str] = Counter()
tests: set[str] = set()
current: list[str] = []


def count_calls() -> None:
    dispatch = nx.utils.backends._dispatchable._convert_and_call_for_tests

    @functools.wraps(dispatch)
    def counted(self, *args, **kwargs):
        calls[self.name] += 1
        return dispatch(self, *args, **kwargs)

    nx.utils.backends._dispatchable._convert_and_call_for_tests = counted


def count_served() -> None:
    find = interface.find_function

    @functools.cache
    def find_counted(name):
        function = find(name)

        @functools.wraps(function)
        def counted(*args, **kwargs):
            try:
                result = function(*args, **kwargs)
            except NotImplementedError:
                raise
            except BaseException:
                note_served(name)
                raise
            note_served(name)
            return result

        return counted

    interface.find_function = find_counted


def note_served(name: str) -> None:
    served[name] += 1
    tests.update(current)


def pytest_configure(config):
    config.addinivalue_line("markers", "left_out: a test of NetworkX that shoal's table of skips names")
    count_calls()
    count_served()


def pytest_collection_modifyitems(items):
    for item in items:
        for end, reason in SKIPS.items():
            if item.nodeid.endswith(end):
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    current[:] = [item.nodeid]
    try:
        return (yield)
    finally:
        current.clear()


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session):
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["served"] = [dict(calls), dict(served), sorted(tests)]
    elif session.exitstatus == pytest.ExitCode.OK and len(tests) < LEAST_TESTS:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    worker_calls, worker_served, worker_tests = node.workeroutput["served"]
    calls.update(worker_calls)
    served.update(worker_served)
    tests.update(worker_tests)


def pytest_terminal_summary(terminalreporter):
    line = terminalreporter.write_line
    terminalreporter.section("calls that shoal served")
    line(f"{'function':44}{'calls':>9}{'served':>9}")
    for name in sorted(calls, key=lambda name: (-served[name], name)):
        if served[name] or name in interface.FUNCTIONS:
            line(f"{name:44}{calls[name]:9}{served[name]:9}")
    others = [name for name in calls if name not in interface.FUNCTIONS]
    line(f"{f'{len(others)} other functions':44}{sum(calls[name] for name in others):9}{0:9}")
    line(f"{'all':44}{calls.total():9}{served.total():9}")
    line(f"{len(tests)} tests had a call served by shoal; at least {LEAST_TESTS} must")
    for end, reason in SKIPS.items():
        line(f"left out: {end}: {reason}")
