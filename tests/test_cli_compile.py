# SPDX-License-Identifier: Apache-2.0
"""``shoal compile``: what it compiles is what a run would ask for, and wrong arguments are named."""

import numpy as np
import pytest

from command_line import assert_refused, run
from shoal.algorithms.components import Components
from shoal.backends.cuda.phases import load_phase

pytestmark = pytest.mark.host_only("compiles, and runs nothing")


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SHOAL_CACHE_DIR", str(tmp_path))
    return tmp_path / "cuda" / "sm_90"


def test_kernels_are_found_again(cache, capsys):
    output = run("compile --arch sm_90 --algorithms cc --weights none", capsys)
    assert output == f"4 kernels for sm_90 are in {cache}\n"
    kept = {path: path.stat().st_mtime_ns for path in cache.glob("*.cubin")}
    int32 = np.dtype(np.int32)
    for program in (Components(can_skip=True), Components(can_skip=False)):
        for phase in program.phases():
            load_phase(program, phase, (int32, int32, None), "auto").cubin("sm_90")
    assert {path: path.stat().st_mtime_ns for path in cache.glob("*.cubin")} == kept
    assert len(kept) == 3  # the first phase of both is the same


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("--arch hopper", "arch='hopper' sm_80 sm_90"),
        ("--arch sm_90 --algorithms bfs,dfs", "algorithms='dfs' bfs sssp"),
        ("--arch sm_90 --ids int64/int32", "ids='int64/int32' int64/int64"),
        ("--arch sm_90 --weights int8", "weights='int8' int32"),
    ],
)
def test_wrong_arguments_are_named(arguments, words, capsys):
    assert_refused(f"compile {arguments}", words, capsys)
