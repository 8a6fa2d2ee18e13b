# SPDX-License-Identifier: Apache-2.0
"""The libraries whose graphs and tables are known by where their types come from, so that none need be imported."""

from __future__ import annotations

import importlib
from typing import Any

from shoal.errors import ShoalError

#: The constructor of `Graph` for what a library makes.
CONSTRUCTORS = {
    "igraph": "from_igraph",
    "networkit": "from_networkit",
    "networkx": "from_networkx",
    "pandas": "from_table",
    "polars": "from_table",
    "pyarrow": "from_table",
    "scipy": "from_scipy",
    "torch_geometric": "from_edge_index",
}
#: The same for other types, by what they have.
PROTOCOLS = {
    "__arrow_c_stream__": "from_table",
    "edge_index": "from_edge_index",
    "tocsr": "from_scipy",
}


def import_library(name: str, asked: str) -> Any:
    """Return the module of this name, which ``asked`` needs."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        distribution = name.partition(".")[0]
        raise ShoalError(
            f"{asked} needs {distribution} ({error}); install it with: pip install 'shoal[interop]'"
        ) from None


def library_of(value: Any) -> str:
    """Return the name of the library that an object, or what it is derived from, belongs to; "" for Python's own."""
    names = (kind.__module__.partition(".")[0] for kind in type(value).__mro__)
    return next((name for name in names if name in CONSTRUCTORS), "")


def constructor_for(value: Any) -> str | None:
    """Return the name of the constructor that takes an object, None if no one does."""
    known = CONSTRUCTORS.get(library_of(value))
    return known or next((name for protocol, name in PROTOCOLS.items() if hasattr(value, protocol)), None)
