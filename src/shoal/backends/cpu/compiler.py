# SPDX-License-Identifier: Apache-2.0
"""Numba with a disk cache that cannot be stale.

Numba keys its cache on the file of the function alone, so a function that calls into another file is served stale when
that file changes.  Here every compiled function of shoal is cached in a folder whose name is the hash of all the
sources that compiled code can reach, the library versions and the Python version: any change is another folder.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import os
import platform
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import llvmlite
import numba

from shoal.errors import ShoalError

_cache_lock = threading.Lock()

# Without Numba's reference counting: its atomic counts at every call of a function cost more than relaxing an edge.
_SETTINGS = {"nogil": True, "error_model": "numpy", "_nrt": False}


@functools.cache
def cache_folder() -> Path:
    """Return the folder for compiled code, made if it is not there.

    ``SHOAL_CACHE_DIR`` moves it; the default is ``~/.cache/shoal`` (or ``XDG_CACHE_HOME``).
    """
    base = os.environ.get("SHOAL_CACHE_DIR")
    if base is None:
        base = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "shoal")
    folder = Path(base) / f"cpu-{_environment_hash()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ShoalError(f"the folder for compiled code, {folder}, cannot be made: {error.strerror}; "
                         "set SHOAL_CACHE_DIR to one that can") from None  # fmt: skip
    return folder


def _environment_hash() -> str:
    digest = hashlib.sha256()
    package = Path(__file__).resolve().parents[2]  # every compiled function lives under backends/cpu
    for source in sorted(package.rglob("*.py")):
        if "cpu" in source.relative_to(package).parts:
            digest.update(source.name.encode() + b"\0" + source.read_bytes())
    versions = (sys.version, numba.__version__, llvmlite.__version__, platform.machine())
    digest.update(repr(versions).encode())
    return digest.hexdigest()[:16]


def compiled(signature: Any = None, *, allocates: bool = False) -> Callable[[Callable], Any]:
    """Decorate a function to be compiled by Numba without the GIL and cached on disk in `cache_folder`.

    ``allocates`` is for the few kernels that make arrays of their own.  With ``signature`` compilation (or loading from
    the cache) happens at once, otherwise at the first call.
    """
    settings = {**_SETTINGS, "_nrt": allocates}

    def decorate(function: Callable) -> Any:
        with _cache_lock:
            previous = numba.config.CACHE_DIR
            numba.config.CACHE_DIR = str(cache_folder())
            try:
                if signature is not None:
                    return numba.njit(signature, cache=True, **settings)(function)
                return _saving_alone(numba.njit(cache=True, **settings)(function))
            finally:
                numba.config.CACHE_DIR = previous

    return decorate


def _saving_alone(dispatcher: Any) -> Any:
    """Let one process at a time save into a function's cache.

    Numba reads the index of types, picks the next file name and writes both back; two processes that compile for
    different types at once would pick one name, and a third would later run the wrong code.
    """
    cache = dispatcher._cache
    save = cache.save_overload

    def save_locked(signature: Any, data: Any) -> None:
        with open(cache_folder() / "lock", "w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            save(signature, data)

    cache.save_overload = save_locked
    return dispatcher


#: For functions called only from compiled code: no cache of their own, they live in their callers'.
inner = functools.partial(numba.njit, **_SETTINGS)
