# SPDX-License-Identifier: Apache-2.0
"""``shoal compile``: compile the algorithms for a GPU ahead of time, here or for another machine."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import Annotated

import numpy as np
import typer

from shoal.algorithms.betweenness import WIDTHS, Betweenness
from shoal.algorithms.bfs import BFS, SmallestParents
from shoal.algorithms.components import Components
from shoal.algorithms.cores import CoreNumbers, KCore
from shoal.algorithms.eigenvector import Eigenvector
from shoal.algorithms.forest import Forest
from shoal.algorithms.hits import Hits
from shoal.algorithms.katz import Katz
from shoal.algorithms.pagerank import DTYPES, PageRank
from shoal.algorithms.sssp import SSSP, FlatParents, PackedSSSP, TightParents
from shoal.algorithms.strong_components import Spread, Trim
from shoal.commands import display
from shoal.commands.options import Quiet, expanded
from shoal.errors import ArgumentError, check_choice
from shoal.machine import base_folder
from shoal.program import Program

IDS = ("int32/int32", "int32/int64", "int64/int64")
WEIGHTS = ("none", "int32", "float32", "float64")
_NO_BOUND = 1  # supersteps at most: no part of what is compiled


@expanded
def compile(
    arch: Annotated[str, typer.Option(help="The GPU's architecture: sm_80 (A100), sm_90 (H100), sm_100 (B200), ...")],
    algorithms: Annotated[str, typer.Option(help="Some of those that shoal has, or all.")] = "bfs,sssp,cc,bc,pagerank",
    ids: Annotated[str, typer.Option(help=f"Widths of vertex ids and edge offsets, of {','.join(IDS)}.")] = IDS[0],
    weights: Annotated[str, typer.Option(help=f"Types of weights, of {','.join(WEIGHTS)}.")] = "none,int32",
    quiet: Quiet = False,
) -> None:
    """Compile algorithms for a GPU and keep the machine code; needs no GPU, but the compilers of shoal[cuda]."""
    from shoal.backends.cuda.phases import load_phase

    if re.fullmatch(r"sm_\d{2,3}[a-z]?", arch) is None:
        raise ArgumentError(f"arch={arch!r} is not known; allowed: sm_80, sm_90, sm_100 and the like")
    every = tuple(_PROGRAMS) if algorithms == "all" else tuple(algorithms.split(","))
    names = [check_choice("algorithms", name, tuple(_PROGRAMS)) for name in every]
    widths = [check_choice("ids", pair, IDS).split("/") for pair in ids.split(",")]
    kinds = [check_choice("weights", kind, WEIGHTS) for kind in weights.split(",")]
    count = 0
    with display.stages(quiet) as begin:
        for (vertex, edge), kind in itertools.product(widths, kinds):
            weight = None if kind == "none" else np.dtype(kind)
            for name in names:
                for program in _PROGRAMS[name](weight):
                    begin(f"{name}, ids {vertex}/{edge}, weights {kind}: {type(program).__name__}")
                    for phase in program.phases():
                        types = (np.dtype(vertex), np.dtype(edge), weight)
                        for kernel in load_phase(program, phase, types, "auto").variants:
                            kernel.cubin(arch)
                            count += 1
    if not quiet:
        print(f"{count} kernels for {arch} are in {base_folder() / 'cuda' / arch}")


def _bfs(weight: np.dtype | None) -> Iterator[Program]:
    yield BFS()
    yield BFS(has_targets=True)
    yield SmallestParents()


def _sssp(weight: np.dtype | None) -> Iterator[Program]:
    distances: list[np.dtype] = [np.dtype(np.int32), np.dtype(np.float64)]  # whole ones where they fit
    if weight is not None and weight.kind == "f":
        distances = [weight]
    for dtype in distances:
        yield SSSP(dtype, has_targets=True)
        for parents in ("none", "any", "smallest"):
            yield SSSP(dtype, parents=parents)
        for is_deterministic in (False, True):
            yield TightParents(dtype, is_deterministic)
        yield FlatParents(dtype)
    if weight is None or weight.kind == "i":
        for has_targets, is_deterministic in itertools.product((False, True), (False, True)):
            yield PackedSSSP(has_targets, is_deterministic)
        if weight is not None:
            yield PackedSSSP(has_targets=False, is_deterministic=False, counts_flat=True)


def _cc(weight: np.dtype | None) -> Iterator[Program]:
    yield Components(can_skip=True)
    yield Components(can_skip=False)


def _bc(weight: np.dtype | None) -> Iterator[Program]:
    yield from map(Betweenness, WIDTHS)


def _pagerank(weight: np.dtype | None) -> Iterator[Program]:
    for dtype, is_personal in itertools.product(DTYPES, (False, True)):
        yield PageRank(dtype, _NO_BOUND, is_weighted=False, is_personal=is_personal)
        if weight is not None:
            yield PageRank(dtype, _NO_BOUND, is_weighted=True, is_personal=is_personal)


def _eigenvector(weight: np.dtype | None) -> Iterator[Program]:
    for is_weighted in (False, True)[: 1 if weight is None else 2]:
        yield Eigenvector(_NO_BOUND, is_weighted)


def _katz(weight: np.dtype | None) -> Iterator[Program]:
    for is_weighted, has_betas in itertools.product((False, True)[: 1 if weight is None else 2], (False, True)):
        yield Katz(_NO_BOUND, is_weighted, has_betas)


def _hits(weight: np.dtype | None) -> Iterator[Program]:
    for is_weighted, is_directed in itertools.product((False, True)[: 1 if weight is None else 2], (False, True)):
        yield Hits(_NO_BOUND, is_weighted, is_directed)


def _scc(weight: np.dtype | None) -> Iterator[Program]:
    yield from (Trim(), Spread())


def _msf(weight: np.dtype | None) -> Iterator[Program]:
    yield Forest(is_packed=False)
    if weight is None or weight.kind == "i":
        yield Forest(is_packed=True)


def _core(weight: np.dtype | None) -> Iterator[Program]:
    yield CoreNumbers()


def _k_core(weight: np.dtype | None) -> Iterator[Program]:
    yield KCore()


_PROGRAMS = {
    "bfs": _bfs,
    "sssp": _sssp,
    "cc": _cc,
    "bc": _bc,
    "pagerank": _pagerank,
    "eigenvector": _eigenvector,
    "katz": _katz,
    "hits": _hits,
    "scc": _scc,
    "msf": _msf,
    "core": _core,
    "kcore": _k_core,
}
