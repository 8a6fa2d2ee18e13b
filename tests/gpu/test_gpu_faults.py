# SPDX-License-Identifier: Apache-2.0
"""A rule that reaches beyond its arrays ends the run with an error; it never hangs."""

import subprocess
import sys

import pytest

SCRIPT = """
import numpy as np

if not hasattr(np, "row_stack"):  # NumPy 2.5 has dropped it, numba-cuda 0.30 asks for it
    np.row_stack = np.vstack

import shoal
from shoal import Constant, Program, Vertex, advance, atomic, minimum, rule


class Astray(Program):
    level = Vertex("int64", fill=2**40, combine=minimum)
    table = Constant("int64", is_array=True)

    def start(self):
        self.level[0] = 0
        self.table = [1]
        return [0]

    @rule
    def wander(src, dst, level, table):
        return atomic.min(level, dst, level[src] + table[src + 10**11])

    def step(self, frontier):
        return advance(frontier, self.wander)


graph = shoal.generate.grid(30, 30)
try:
    shoal.run(Astray(), graph, {how})
except shoal.ShoalError as error:
    print("raised:", error)
"""
WAYS = [
    f"devices={devices!r}, execution={execution!r}"
    for devices in ("cuda", "cuda:0*3")
    for execution in ("bsp", "async")
]
SECONDS = 120  # to import and to compile; the kernel itself takes none


@pytest.mark.parametrize("how", WAYS)
def test_a_rule_that_reaches_beyond_its_arrays(how, tmp_path):
    """It ruins the process that it runs in, so it has one of its own."""
    script = tmp_path / "astray.py"  # a rule's source is read from its file
    script.write_text(SCRIPT.format(how=how))
    found = subprocess.run([sys.executable, "-W", "ignore", str(script)], timeout=SECONDS, check=False,
                           capture_output=True, text=True)  # fmt: skip
    assert "raised: the GPU failed: cudaErrorIllegalAddress" in found.stdout, found.stderr
