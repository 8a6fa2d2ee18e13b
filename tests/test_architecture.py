# SPDX-License-Identifier: Apache-2.0
"""The shape of the package: imports point one way, `import shoal` is light, public names are documented."""

import ast
import inspect
import re
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import shoal
from shoal.config import CONFIG_NAMES

pytestmark = pytest.mark.host_only("about the package's files: nothing is run")

PACKAGE = Path(shoal.__file__).parent
#: Parts that are imported when they are first asked for.
LAZY = ("shoal.model",)
PLOTTERS = ("plotly", "matplotlib")
HEAVY = ("numba", "scipy", "pyarrow", "pandas", "typer", "rich", "cupy", "mpi4py", "pymetis", "sklearn", *PLOTTERS)

#: From top to bottom: a part may import what stands below it, and itself.
LAYERS = (
    {"cli"},
    {"commands"},
    {"planner"},
    {"bench", "memory"},
    {"footprint"},
    {"shoal"},
    {"algorithms"},
    {"run"},
    {"calls"},
    {"report"},
    {"execution", "model", "results"},
    {"checkpoint", "notebook", "tables"},
    {"placement"},
    {"sharding"},
    {"dataflow", "generate", "io"},
    {"strategies", "transport", "backends"},
    {"worklists"},
    {"exchanges"},
    {"operators"},
    {"accesses", "graph", "guards", "program"},
    {"interop"},
    {"config", "labels", "progress", "rules", "stats", "symmetry"},
    {"arrays", "values"},
    {"machine"},
    {"errors"},
)
RANKS = {part: rank for rank, layer in enumerate(LAYERS) for part in layer}
#: What these parts may import beside themselves, whatever their layer says.
ONLY = {
    "backends": {
        "accesses",
        "arrays",
        "errors",
        "exchanges",
        "graph",
        "guards",
        "machine",
        "operators",
        "program",
        "progress",
        "rules",
        "worklists",
    },
    "dataflow": {"backends", "config", "errors", "machine", "operators", "program", "rules", "worklists"},
    "interop": {"arrays", "errors", "labels"},
    "model": {"errors", "io", "machine", "stats", "strategies"},
    "strategies": {"arrays", "config", "errors", "graph"},
    "transport": {"config", "errors"},
}
#: Graphs are built by compiled kernels, which know arrays only; so are edges drawn, ids of files numbered, graphs cut.
#: Features of frontiers are counted by one, too.
BUILT_BY_KERNELS = {
    (part, "backends") for part in ("graph", "generate", "interop", "io", "model", "sharding", "strategies")
}
#: Ranks that make a folder together wait for one another as those that run a program do.
MEETING = ("shoal.sharding.team", "shoal.backends.mpi.fleet")
KERNEL_MODULES = re.compile(r"shoal\.backends\.(cpu\.(csr|threads|kernels(\..*)?)|cuda\.(building|drawing|device))")


def module_name(path):
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


SOURCES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}
TREES = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in SOURCES.items()}


def part_of(module):
    return module.split(".")[1] if "." in module else "shoal"


def imports_of(module):
    """The modules of shoal that a module imports, anywhere in it, but not for type checkers only."""
    found = set()
    skipped = {id(node) for test in ast.walk(TREES[module]) if is_for_types(test) for node in ast.walk(test)}
    for node in ast.walk(TREES[module]):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            for alias in node.names:
                longer = f"{node.module}.{alias.name}"
                found.add(longer if longer in SOURCES else node.module)
    return {name for name in found if name.split(".")[0] == "shoal"} - {module}


def is_for_types(node):
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


IMPORTS = {module: imports_of(module) for module in SOURCES}
EDGES = sorted((module, target) for module, targets in IMPORTS.items() for target in targets)


def test_every_part_has_a_layer():
    assert {part_of(module) for module in SOURCES} <= set(RANKS)


@pytest.mark.parametrize("module", [m for m in SOURCES if IMPORTS[m]])
def test_imports_point_downwards(module):
    part = part_of(module)
    for target in IMPORTS[module]:
        other = part_of(target)
        assert target in SOURCES, f"{module} imports {target}, which is not there"
        if other == part or part == "shoal" or (module, target) == MEETING:
            continue
        if (part, other) in BUILT_BY_KERNELS:
            assert KERNEL_MODULES.fullmatch(target), f"{module} imports {target}"
        elif part in ONLY:
            assert other in ONLY[part], f"{module} imports {target}; {part} may import {sorted(ONLY[part])}"
        else:
            assert RANKS[other] > RANKS[part], f"{module} imports {target}, which is above or beside it"


def test_execution_knows_no_backend_by_name():
    """Another kind of device is another folder in backends, and nothing else."""
    found = {
        target for module in SOURCES if part_of(module) in ("execution", "placement") for target in IMPORTS[module]
    }
    assert {target for target in found if part_of(target) == "backends"} == {"shoal.backends", "shoal.backends.base"}


def test_relative_imports_are_not_used():
    for module, tree in TREES.items():
        levels = [node.level for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        assert not any(levels), module


def test_no_import_cycle():
    # A package's own __init__ is left out: it gathers names of modules that import one another.
    graph = {m: {t for t in targets if not m.startswith(f"{t}.")} for m, targets in IMPORTS.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def run_python(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_import_is_light():
    loaded = run_python(f"import sys, shoal; print(*[name for name in {HEAVY + LAZY!r} if name in sys.modules])")
    assert loaded == []


def test_command_line_is_light():
    heavy = tuple(name for name in HEAVY if name not in ("typer", "rich"))
    loaded = run_python(f"import sys, shoal.cli; print(*[name for name in {heavy!r} if name in sys.modules])")
    assert loaded == []


NETWORKX_BACKEND = PACKAGE.parent / "shoal_networkx"


def test_networkx_backend_stands_above():
    """It uses shoal, and shoal does not know it; what NetworkX reads when it is imported imports nothing."""
    for tree in TREES.values():
        assert "shoal_networkx" not in ast.unparse(tree)
    for name in ("__init__.py", "info.py"):
        tree = ast.parse((NETWORKX_BACKEND / name).read_text(encoding="utf-8"))
        names = [ast.unparse(node) for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
        assert [name for name in names if name != "from __future__ import annotations"] == []


def test_networkx_backend_is_documented():
    for path in NETWORKX_BACKEND.glob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert text.startswith("# SPDX-License-Identifier: Apache-2.0\n")
        nodes = ast.walk(ast.parse(text))
        kinds = (ast.Module, ast.FunctionDef, ast.ClassDef)
        bare = [node for node in nodes if isinstance(node, kinds) and not ast.get_docstring(node)]
        assert [node.name for node in bare if not node.name.startswith(("_", "refuse", "attach", "start"))] == []


def public_definitions():
    for module, tree in TREES.items():
        for node in tree.body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_"):
                yield module, node


def test_every_module_says_what_it_is_for():
    empty = [m for m, tree in TREES.items() if tree.body and not ast.get_docstring(tree)]
    assert empty == []


def test_public_functions_and_classes_are_documented():
    bare = [f"{module}.{node.name}" for module, node in public_definitions() if not ast.get_docstring(node)]
    # Twins of documented atomics, written for compiled code only.
    assert [name for name in bare if ".backends." not in name] == []


@pytest.mark.parametrize("name", shoal.__all__)
def test_public_name_is_documented(name):
    value = getattr(shoal, name)
    assert inspect.getdoc(value)
    if inspect.isclass(value):
        methods = [member for key, member in vars(value).items() if not key.startswith("_") and is_method(member)]
        assert [method for method in methods if not inspect.getdoc(method)] == []


def is_method(member):
    return inspect.isfunction(member) or isinstance(member, (property, classmethod, staticmethod))


@pytest.mark.parametrize("path", SOURCES.values(), ids=SOURCES)
def test_source_begins_with_its_licence(path):
    text = path.read_text(encoding="utf-8")
    assert not text or text.startswith("# SPDX-License-Identifier: Apache-2.0\n")


def test_every_strategy_is_a_flag():
    from shoal.commands.options import RunOptions

    assert set(CONFIG_NAMES) <= set(RunOptions.__dataclass_fields__)
