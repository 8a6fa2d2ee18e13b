# SPDX-License-Identifier: Apache-2.0
"""Numba with a disk cache that cannot be stale.

Numba keys its cache on the file of the function alone, so a function that calls into another file is served stale when
that file changes.  Here every compiled function of shoal is cached in a folder whose name is the hash of all the
sources that compiled code can reach, the library versions and the Python version: any change is another folder.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import pickle
import platform
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import llvmlite
import numba
from numba.core.caching import IndexDataCacheFile

from shoal.errors import ShoalError
from shoal.machine import base_folder

_cache_lock = threading.Lock()

# Without Numba's reference counting: its atomic counts at every call of a function cost more than relaxing an edge.
_SETTINGS = {"nogil": True, "error_model": "numpy", "_nrt": False}


@functools.cache
def cache_folder() -> Path:
    """Return the folder for compiled code, made if it is not there."""
    folder = base_folder() / f"cpu-{_environment_hash()}"
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
        dispatcher = _with_cache(function, settings)
        if signature is not None:
            dispatcher.compile(signature)
            dispatcher.disable_compile()
        return dispatcher

    return decorate


def _with_cache(function: Callable, settings: dict[str, Any]) -> Any:
    with _cache_lock:
        previous = numba.config.CACHE_DIR
        numba.config.CACHE_DIR = str(cache_folder())
        try:
            dispatcher = numba.njit(cache=True, **settings)(function)
        finally:
            numba.config.CACHE_DIR = previous
    implementation = dispatcher._cache._impl
    dispatcher._cache._cache_file = _CheckedFiles(
        cache_path=implementation.locator.get_cache_path(),
        filename_base=implementation.filename_base,
        source_stamp=implementation.locator.get_source_stamp(),
    )
    return dispatcher


class _CheckedFiles(IndexDataCacheFile):
    """Numba's files of one function's compiled code: a damaged one is as good as none.

    Every pickle has its digest before it.  One process at a time saves: Numba reads the index of types, picks the next
    file name and writes both back; two processes that compile for different types at once would pick one name, and a
    third would later run the wrong code.
    """

    def save(self, key: Any, data: Any) -> None:
        """Save compiled code for the types in ``key``; where it cannot be written it is this process's only."""
        with contextlib.suppress(OSError), open(cache_folder() / "lock", "w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            super().save(key, data)

    def _dump(self, obj: Any) -> bytes:
        data = super()._dump(obj)
        return hashlib.sha256(data).digest() + data

    def _save_index(self, overloads: dict[Any, str]) -> None:
        with self._open_for_write(self._index_path) as file:
            file.write(self._dump((self._source_stamp, overloads)))

    def _load_index(self) -> dict[Any, str]:
        try:
            stamp, overloads = self._read(self._index_path)
        except OSError:
            return {}
        return overloads if stamp == self._source_stamp else {}

    def _load_data(self, name: str) -> Any:
        return self._read(self._data_path(name))

    def _read(self, path: str) -> Any:
        """Return the object in a file; an `OSError`, which Numba takes for a file that is not there, if damaged."""
        content = Path(path).read_bytes()
        size = hashlib.sha256().digest_size
        if hashlib.sha256(content[size:]).digest() != content[:size]:
            raise OSError(f"{path} is damaged")
        return pickle.loads(content[size:])


#: For functions called only from compiled code: no cache of their own, they live in their callers', and no way in from
#: Python (a call would crash): making that way takes a third of the time that compiling takes.
inner = functools.partial(numba.njit, no_cpython_wrapper=True, no_cfunc_wrapper=True, **_SETTINGS)
