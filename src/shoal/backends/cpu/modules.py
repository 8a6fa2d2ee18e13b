# SPDX-License-Identifier: Apache-2.0
"""Load generated modules: written once under the hash of their text, compiled by Numba, kept on disk and in memory."""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from numba.core.errors import NumbaError

from shoal.backends.cpu.compiler import cache_folder
from shoal.backends.cpu.faults import explain
from shoal.backends.cpu.generator import PhaseSource
from shoal.errors import ProgramError, ShoalError

# The time stamp of every generated file.  It is part of Numba's key, and a file's name already says what is in it: the
# same text, written again or by another process, is the same to Numba.
STAMP_SECONDS = 946_684_800  # the year 2000

_loops: dict[str, Callable] = {}
_lock = threading.RLock()  # Numba compiles one function at a time


def load_loop(source: PhaseSource, signature: Any, title: str) -> Callable:
    """Return the compiled loop of a generated module."""
    text = source.text + f"\n# {signature}\n"
    digest = hashlib.sha256(text.encode()).hexdigest()[:24]
    with _lock:
        if digest not in _loops:
            path = cache_folder() / f"{title.lower()}_{digest}.py"
            _write_once(path, text.encode())
            _loops[digest] = _execute(path, text, signature, source)
        return _loops[digest]


def _write_once(path: Path, content: bytes) -> None:
    """Write the module unless it is there, whole: it takes its place in one step, so nobody sees a part of it."""
    try:
        if path.exists() and path.read_bytes() == content:
            return
        handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            os.utime(temporary, (STAMP_SECONDS, STAMP_SECONDS))
            os.replace(temporary, path)
        except OSError:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise ShoalError(f"{path}, a file of compiled code, cannot be written: {error.strerror}; "
                         "set SHOAL_CACHE_DIR to a folder where it can") from None  # fmt: skip


def _execute(path: Path, text: str, signature: Any, source: PhaseSource) -> Callable:
    """Run the module's text, as written to ``path``, which compiles its loop or finds it compiled."""
    module = ModuleType(f"shoal_generated_{path.stem}")
    module.__file__ = str(path)
    module.SIGNATURE = signature  # type: ignore[attr-defined]
    sys.modules[module.__name__] = module  # Numba finds a cached function's globals by the module's name
    try:
        exec(compile(text, str(path), "exec"), module.__dict__)
    except (ShoalError, OSError, MemoryError):
        raise
    except Exception as error:  # Numba raises many kinds for code that it cannot compile
        del sys.modules[module.__name__]
        cause = None if isinstance(error, NumbaError) else error
        raise ProgramError(explain(error, source.text, source.rule_lines)) from cause
    return module.loop
