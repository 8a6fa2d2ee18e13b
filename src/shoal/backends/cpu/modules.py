# SPDX-License-Identifier: Apache-2.0
"""Load generated modules: written once under the hash of their text, compiled by Numba, kept on disk and in memory."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba.core.errors import NumbaError

from shoal.backends.cpu.compiler import cache_folder
from shoal.backends.cpu.generator import PhaseSource
from shoal.errors import ProgramError

_loops: dict[str, Callable] = {}
_lock = threading.RLock()  # Numba compiles one function at a time


def load_loop(source: PhaseSource, signature: Any, title: str) -> Callable:
    """Return the compiled loop of a generated module."""
    text = source.text + f"\n# {signature}\n"
    digest = hashlib.sha256(text.encode()).hexdigest()[:24]
    with _lock:
        if digest not in _loops:
            path = _write_once(cache_folder() / f"{title.lower()}_{digest}.py", text)
            _loops[digest] = _import(path, signature, source)
        return _loops[digest]


def _write_once(path: Path, text: str) -> Path:
    """Write the module unless it is there: its time stamp is part of Numba's cache key."""
    if not path.exists():
        handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
        with os.fdopen(handle, "w") as file:
            file.write(text)
        try:
            os.link(temporary, path)
        except FileExistsError:
            pass  # another process was faster, with the same text
        finally:
            os.unlink(temporary)
    return path


def _import(path: Path, signature: Any, source: PhaseSource) -> Callable:
    spec = importlib.util.spec_from_file_location(f"shoal_generated_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    module.SIGNATURE = signature  # type: ignore[attr-defined]
    sys.modules[module.__name__] = module  # Numba finds a cached function's globals by the module's name
    try:
        spec.loader.exec_module(module)
    except NumbaError as error:
        raise ProgramError(_explain(error, source)) from None
    return module.loop


def _explain(error: NumbaError, source: PhaseSource) -> str:
    """Name the rule and line at fault: the deepest place in the compiler's message that lies inside a rule."""
    import re

    text = str(error)
    for match in reversed(re.findall(r"_[0-9a-f]{24}\.py[^0-9]+(\d+)", text)):
        line = int(match)
        for first, last, rule in source.rule_lines:
            if first <= line <= last:
                place = f"{rule.file}, line {rule.line + line - first + 1}"
                return f"rule {rule.name!r} ({place}) cannot be compiled: {_reason(text)}"
    return f"the program cannot be compiled: {_reason(text)}"


def _reason(text: str) -> str:
    """Return the line of Numba's message that says what is wrong."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    skip = ("Failed in", "During:", "File ", "def ", "- ", "<source", "Rejected", "There are", "Overload", "Of which")
    telling = [line for line in lines if not line.startswith(skip)]
    return (telling or lines)[0] if telling or lines else "unknown reason"
