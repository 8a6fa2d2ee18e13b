# SPDX-License-Identifier: Apache-2.0
"""What ``--help`` shows at its end: lines to copy.  Each file in one is made by a line before it."""

from __future__ import annotations

EXAMPLES: dict[str, tuple[str, ...]] = {
    "generate rmat": (
        "shoal generate rmat graph.shoal --scale 12 --weights 1:255",
        "shoal generate rmat follows.txt.gz --scale 10 --directed --seed 7",
    ),
    "generate kronecker": ("shoal generate kronecker kron.shoal --scale 10 --edge-factor 16",),
    "generate uniform": ("shoal generate uniform uniform.mtx --num-vertices 1000 --num-edges 5000",),
    "generate grid": ("shoal generate grid roads.gr --rows 50 --columns 40 --drop 0.1 --weights 1:9",),
    "bfs": (
        "shoal bfs graph.shoal --source 0 --output hops.parquet",
        "shoal bfs follows.txt.gz --source 1 --source 2 --cutoff 3 --json",
        "shoal bfs graph.shoal --source 0 --devices cpu:4 --communication butterfly --fanout 4",
        "shoal bfs graph.shoal --source 0 --report run.json",
    ),
    "sssp": (
        "shoal sssp graph.shoal --source 0 --target 9 --validate",
        "shoal sssp graph.shoal --source 0 --devices cpu:2 --report two.json",
    ),
    "cc": ("shoal cc graph.shoal --output components.csv",),
    "bc": ("shoal bc graph.shoal --samples 4 --seed 1",),
    "ebc": ("shoal ebc graph.shoal --samples 4 --seed 1 --output edges.parquet",),
    "pagerank": (
        "shoal pagerank follows.txt.gz --damping 0.9 --tolerance 1e-8 --json",
        "shoal pagerank follows.txt.gz --checkpoint ranks --checkpoint-every 5min",
    ),
    "triangles": ("shoal triangles graph.shoal --validate",),
    "clustering": ("shoal clustering graph.shoal --output clustering.csv",),
    "transitivity": ("shoal transitivity graph.shoal --json",),
    "lpa": ("shoal lpa graph.shoal --output communities.parquet",),
    "louvain": ("shoal louvain graph.shoal --resolution 0.5",),
    "eigenvector": ("shoal eigenvector graph.shoal --tolerance 1e-3",),
    "katz": ("shoal katz graph.shoal --alpha 0.001",),
    "hits": ("shoal hits follows.txt.gz --tolerance 1e-3 --json",),
    "scc": ("shoal scc follows.txt.gz --output components.csv",),
    "msf": ("shoal msf graph.shoal --output forest.csv",),
    "core": ("shoal core graph.shoal --output cores.parquet",),
    "kcore": ("shoal kcore graph.shoal --k 3",),
    "resume": ("shoal resume ranks --devices cpu:4",),
    "mpi-run": ("shoal mpi-run -n 2 bfs graph.shoal --source 0 --quiet",),
    "report": ("shoal report run.json --output run.html",),
    "compare": ("shoal compare run.json two.json",),
    "convert": ("shoal convert follows.txt.gz follows.shoal --symmetrize --optimize",),
    "info": ("shoal info graph.shoal --json",),
    "partition": (
        "shoal partition graph.shoal --devices 4",
        "shoal partition graph.shoal --devices 4 --partition segment --output parts",
    ),
    "validate": ("shoal validate graph.shoal hops.parquet --algorithm bfs --source 0",),
    "devices": ("shoal devices", "shoal devices --topology dgx1-v100"),
    "compile": ("shoal compile --arch sm_90 --algorithms bfs,pagerank",),
    "plan": ("shoal plan graph.shoal --devices 4 --algorithm pagerank",),
    "bench": ("shoal bench --graphs kron16,graph.shoal --kernels bfs,cc --libraries shoal,scipy",),
}
_OVERVIEW = ("generate rmat", "info", "bfs", "pagerank")


def epilog(command: str) -> str:
    """Return what stands at the end of a command's help."""
    return _as_lines(EXAMPLES.get(command, ()))


def overview(prefix: str = "") -> str:
    """Return what stands at the end of the help of a group of commands: the first example of some, or of its own."""
    names = [name for name in EXAMPLES if name.startswith(prefix)] if prefix else _OVERVIEW
    return _as_lines([EXAMPLES[name][0] for name in names])


def _as_lines(examples: tuple[str, ...] | list[str]) -> str:
    if not examples:
        return ""
    title = "Example:" if len(examples) == 1 else "Examples:"
    return "\n\n".join([title, *(f"$ {example}" for example in examples)])  # single line breaks would be taken out
