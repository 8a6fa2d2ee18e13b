# SPDX-License-Identifier: Apache-2.0
"""All kernels that draw and build graphs, or join trees, compile for every architecture and type without a GPU."""

from __future__ import annotations

import numpy as np
import pytest

from shoal.backends.cuda import trees
from shoal.backends.cuda.building import kernel_text

pytestmark = pytest.mark.host_only("compiles, and runs nothing")

pytest.importorskip("cuda.core", reason="compiling kernels needs cuda.core")
pytest.importorskip("numba_cuda", reason="compiling kernels needs numba-cuda")

ARCHITECTURES = ("sm_80", "sm_90", "sm_100")
TYPES = ((np.int32, np.int32), (np.int32, np.int64), (np.int64, np.int64))
EDGES = ("given_int32", "given_int64", "reversed", "ranked")
BUILDING = [
    *(f"{verb}_{edges}" for edges in EDGES for verb in ("count", "collect")),
    *("count_kept", "write_kept"),
]
DRAWING = [
    *(f"{verb}_{edges}" for edges in ("rmat", "uniform") for verb in ("count", "collect", "draw")),
    *("count_grid", "fill_grid", "weigh_int32", "weigh_float32", "weigh_float64"),
]


@pytest.fixture
def build(tmp_path, monkeypatch):
    monkeypatch.setenv("SHOAL_CACHE_DIR", str(tmp_path))
    from shoal.backends.cuda import compiler

    return compiler.build


@pytest.mark.parametrize(("vertex_dtype", "edge_dtype"), TYPES)
@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize(
    ("header", "names"),
    [("csr.cuh", BUILDING), ("generate.cuh", BUILDING + DRAWING), (trees.HEADER, trees.KERNELS)],
)
def test_kernels_compile(build, arch, header, names, vertex_dtype, edge_dtype):
    cubin = build(kernel_text(header, vertex_dtype, edge_dtype), arch)
    assert cubin.startswith(b"\x7fELF")
    for name in names:
        assert b".text." + name.encode() + b"\0" in cubin, name


def test_offsets_narrower_than_ids_are_refused(build):
    with pytest.raises(Exception, match="must not be narrower"):
        build(kernel_text("csr.cuh", np.int64, np.int32), "sm_90")
