# SPDX-License-Identifier: Apache-2.0
"""Compiled code on disk: found by a second process, never stale, never in the way."""

import json
import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from processes import run_script

pytestmark = pytest.mark.host_only("about code that is compiled for the CPU")

RULES = """\
from shoal import rule

FACTOR = 4

@rule
def stamp(vertex, mark):
    mark[vertex] = FACTOR * vertex + 1
"""

# A rule that stands in another file than the program is the one that caches get wrong.
SCRIPT = """\
import json, sys
from numba.core import event
import shoal
from shoal import Phase, Program, Vertex, compute
from rules_of_mine import stamp

class Stamp(Program):
    mark = Vertex("int64")

    def step(self, frontier):
        compute(frontier, stamp)

    def phases(self):
        return [Phase(self.step, max_supersteps=1)]

graph = shoal.Graph.from_csr([0, 1, 2, 2], [1, 0])
with event.install_recorder("numba:compile") as recorder:
    mark = shoal.run(Stamp(), graph).mark
loops = [module.loop for name, module in list(sys.modules.items()) if name.startswith("shoal_generated_stamp")]
print(json.dumps({
    "mark": mark.tolist(),
    "hits": sum(sum(loop.stats.cache_hits.values()) for loop in loops),
    "compilations": len(recorder.buffer),
}))
"""


class Project:
    """A user's script and rules in one folder, their compiled code in another."""

    def __init__(self, folder):
        self.script, self.rules, self.cache = folder / "script.py", folder / "rules_of_mine.py", folder / "cache"
        self.script.write_text(SCRIPT)
        self.rules.write_text(RULES)

    def run(self, cache=None):
        status, output, errors = run_script(self.script, SHOAL_CACHE_DIR=str(cache or self.cache))
        assert status == 0, errors
        return json.loads(output)

    def edit(self, old, new):
        """Change the rules so that neither size nor time of the file tell."""
        assert len(old) == len(new)
        before = self.rules.stat()
        self.rules.write_text(self.rules.read_text().replace(old, new))
        os.utime(self.rules, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert self.rules.stat().st_mtime_ns == before.st_mtime_ns

    def generated(self):
        (path,) = self.cache.rglob("stamp_*.py")
        return path


@pytest.fixture
def project(tmp_path):
    made = Project(tmp_path)
    first = made.run()
    assert first["mark"] == [1, 5, 9]
    assert first["hits"] == 0
    assert first["compilations"] > 0
    return made


def test_a_second_process_compiles_nothing_and_an_edited_rule_anew(project):
    second = project.run()
    assert second == {"mark": [1, 5, 9], "hits": 1, "compilations": 0}
    project.edit("vertex + 1", "vertex + 2")
    third = project.run()
    assert third["mark"] == [2, 6, 10]
    assert third["compilations"] > 0
    project.edit("FACTOR = 4", "FACTOR = 3")
    assert project.run()["mark"] == [2, 5, 8]
    project.edit("FACTOR = 3", "FACTOR = 4")
    assert project.run() == {"mark": [2, 6, 10], "hits": 1, "compilations": 0}


def zero_the_end(path):
    content = path.read_bytes()
    path.write_bytes(content[:-200] + bytes(200))


@pytest.mark.parametrize("damage", [zero_the_end, lambda path: path.write_bytes(b"")])
def test_damaged_files_are_made_again(project, damage):
    """As after a full disk or a crash."""
    damage(project.generated())
    assert project.run() == {"mark": [1, 5, 9], "hits": 1, "compilations": 0}  # as if it had not been written again
    for path in [*project.cache.rglob("stamp_*.nbi"), *project.cache.rglob("stamp_*.nbc")]:
        damage(path)
        assert project.run()["mark"] == [1, 5, 9], path.suffix
        assert project.run() == {"mark": [1, 5, 9], "hits": 1, "compilations": 0}, path.suffix


def test_many_processes_with_an_empty_cache(tmp_path):
    project = Project(tmp_path)
    with ThreadPoolExecutor(3) as pool:
        results = list(pool.map(lambda _: project.run(), range(3)))
    assert [result["mark"] for result in results] == [[1, 5, 9]] * 3


def test_a_folder_that_cannot_be_made(tmp_path):
    """Shoal works without its cache, or says in one line what it lacks."""
    project = Project(tmp_path)
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    status, output, errors = run_script(project.script, SHOAL_CACHE_DIR=str(blocked / "cache"))
    if status == 0:
        assert json.loads(output)["mark"] == [1, 5, 9]
    else:
        last_line = errors.strip().splitlines()[-1]
        assert last_line.startswith("shoal.errors."), last_line
        assert "SHOAL_CACHE_DIR" in last_line


def test_a_cache_that_cannot_be_written(project):
    """What is there is used; what is not is compiled for this process only."""
    for path in [*project.cache.rglob("*"), project.cache]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        assert project.run() == {"mark": [1, 5, 9], "hits": 1, "compilations": 0}
        project.edit("vertex + 1", "vertex + 2")
        assert project.run()["mark"] == [2, 6, 10]
    finally:
        for path in [project.cache, *project.cache.rglob("*")]:
            path.chmod(0o755)
