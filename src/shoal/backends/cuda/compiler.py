# SPDX-License-Identifier: Apache-2.0
"""CUDA C++ and rules to machine code: NVRTC compiles the kernels, nvJitLink joins them with what Numba made of rules.

Needs no GPU.  A cubin is kept on disk under the hash of all that it is made from, the text, every header, the rules and
the architecture, and of the compilers that made it.  Where no compiler is installed, a cubin of any of them will do.
"""

from __future__ import annotations

import functools
import hashlib
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from shoal.errors import ShoalError
from shoal.machine import base_folder

HEADERS = Path(__file__).parent / "kernels"
#: Packages whose versions say which compilers there are; the last is the linker, which must be as new as the others.
_COMPILERS = ("numba-cuda", "cuda-core", "nvidia-cuda-nvrtc", "nvidia-nvvm", "nvidia-nvjitlink")
_STANDARD = "c++17"


@dataclass(frozen=True)
class DeviceFunction:
    """A function that kernels call: what tells it from others, and how to make its LTO-IR for an architecture."""

    key: str
    compile: Callable[[str], bytes]


def build(text: str, arch: str, functions: Sequence[DeviceFunction] = (), *, caches_in_l1: bool = True) -> bytes:
    """Return the cubin of a kernel's source and the functions it calls, for an architecture such as ``"sm_90"``.

    Without ``caches_in_l1`` every plain load sees what other multiprocessors have stored.
    """
    parts = [text, arch, str(caches_in_l1), _headers_digest(), *(function.key for function in functions)]
    digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
    folder = base_folder() / "cuda" / arch
    compilers = _compilers()
    if compilers is None:
        return _any_cubin(folder, digest)
    path = folder / f"{digest}.{compilers}.cubin"
    try:
        return path.read_bytes()
    except OSError:
        pass
    cubin = link(compile_parts(text, arch, functions), arch, caches_in_l1=caches_in_l1)
    _keep(path, cubin)
    return cubin


def compile_parts(text: str, arch: str, functions: Sequence[DeviceFunction] = ()) -> list[Any]:
    """Compile a kernel's source, and every function that it calls, to what can be linked."""
    from cuda.core import ObjectCode, Program, ProgramOptions

    options = ProgramOptions(
        arch=arch, std=_STANDARD, include_path=str(HEADERS), link_time_optimization=True,
        relocatable_device_code=True, name="shoal",
    )  # fmt: skip
    kernel = Program(text, "c++", options).compile("ltoir")
    return [kernel, *(ObjectCode.from_ltoir(function.compile(arch)) for function in functions)]


def link(parts: Sequence[Any], arch: str, *, caches_in_l1: bool = True, form: str = "cubin") -> bytes:
    """Return the code of all parts as one; as ``"ptx"`` one can read what became of the functions."""
    from cuda.core import Linker, LinkerOptions

    is_text = form == "ptx"
    assembler = [] if caches_in_l1 or is_text else ["-dlcm=cg"]
    options = LinkerOptions(arch=arch, link_time_optimization=True, ptxas_options=assembler, ptx=is_text or None)
    return bytes(Linker(*parts, options=options).link(form).code)


@functools.cache
def _headers_digest() -> str:
    """Return what changes with any header: they are few, and all of them small."""
    digest = hashlib.sha256()
    for path in sorted(HEADERS.glob("*.cuh")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


@functools.cache
def _compilers() -> str | None:
    """Return the versions of the compilers in few letters, or None where one is missing."""
    try:
        versions = [metadata.version(name) for name in _COMPILERS[:2]]
    except metadata.PackageNotFoundError:
        return None
    for name in _COMPILERS[2:]:  # those of a toolkit that is no package have the driver's word only
        try:
            versions.append(metadata.version(name))
        except metadata.PackageNotFoundError:
            versions.append(_toolkit_version())
    return hashlib.sha256(" ".join(versions).encode()).hexdigest()[:12]


def _toolkit_version() -> str:
    from cuda.bindings import nvrtc

    _, major, minor = nvrtc.nvrtcVersion()
    return f"{major}.{minor}"


def _any_cubin(folder: Path, digest: str) -> bytes:
    found = sorted(folder.glob(f"{digest}.*.cubin"), key=lambda path: path.stat().st_mtime)
    if not found:
        raise ShoalError(
            f"this program is not compiled for {folder.name} yet, and its compilers are not installed: "
            f"pip install 'shoal[cuda]', or copy the folder {folder} from where they are"
        )
    return found[-1].read_bytes()


def _keep(path: Path, cubin: bytes) -> None:
    """Write a cubin in one step, so that nobody reads a part of it; where nothing can be written, compile each time."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
        with os.fdopen(handle, "wb") as file:
            file.write(cubin)
        os.replace(temporary, path)
    except OSError:
        return
