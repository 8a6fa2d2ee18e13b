# SPDX-License-Identifier: Apache-2.0
"""Topologies by name and as files: TOML or JSON with the fields of `Topology`.

In place of ``bandwidth`` a file may have ``link_bandwidth`` and ``local_bandwidth``.  A pair has so many times the one
as it has ``num_links``; the other is that of a device's own memory.  Pairs without a link have the path that
`shoal.model.matrices` says, with ``host_bandwidth`` for the host.  One number for ``num_links`` means that every device
has so many links to one switch.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from shoal.errors import ArgumentError, FileFormatError, check_choice, check_integer
from shoal.model.matrices import check_bandwidth, check_count, check_matrix, find_paths, is_list, two_values
from shoal.model.tables import SUFFIXES, read_table
from shoal.model.topology import MAX_DEVICES, Topology

_FOLDER = Path(__file__).with_name("topologies")
_FIELDS = tuple(entry.name for entry in fields(Topology))
_SHORT = ("link_bandwidth", "local_bandwidth", "host_bandwidth")


class _Shipped(Mapping[str, Topology]):
    """The machines that come with shoal, each read when it is first asked for."""

    def __getitem__(self, name: str) -> Topology:
        if name not in _shipped_names():
            raise KeyError(name)
        return _load_shipped(name)

    def __iter__(self) -> Iterator[str]:
        return iter(_shipped_names())

    def __len__(self) -> int:
        return len(_shipped_names())


@functools.cache
def _shipped_names() -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.toml")))


@functools.cache
def _load_shipped(name: str) -> Topology:
    return load_topology(_FOLDER / f"{name}.toml")


#: Machines of the papers and of today, by name.
TOPOLOGIES: Mapping[str, Topology] = _Shipped()


def find_topology(topology: Topology | str | os.PathLike[str]) -> Topology:
    """Return a topology by its name in `TOPOLOGIES` or from a file; a `Topology` is returned as it is.

    Examples
    --------
    >>> find_topology("pcie-k40-quad").seconds_per_superstep(4)
    0.000188
    """
    if isinstance(topology, Topology):
        return topology
    if isinstance(topology, os.PathLike) or (isinstance(topology, str) and topology.endswith(SUFFIXES)):
        return load_topology(topology)
    kinds = (*TOPOLOGIES, f"a file ({', '.join(SUFFIXES)})")
    if not isinstance(topology, str):
        raise ArgumentError(f"topology={topology!r} is not allowed; it must be a Topology or one of {', '.join(kinds)}")
    if topology not in TOPOLOGIES:
        check_choice("topology", topology, kinds)
    return TOPOLOGIES[topology]


def load_topology(path: str | os.PathLike[str]) -> Topology:
    """Read a topology from a TOML or JSON file."""
    values = read_table(path)
    try:
        return make_topology(values)
    except ArgumentError as error:
        raise FileFormatError(f"{os.fspath(path)}: {error}") from error


def make_topology(values: Any) -> Topology:
    """Return the topology with these fields, which may have links in place of bandwidths.

    Examples
    --------
    >>> pair = {"name": "pair", "num_devices": 2, "num_links": 4, "link_bandwidth": 25e9, "local_bandwidth": 1e12}
    >>> make_topology(pair).bandwidth
    ((1000000000000.0, 100000000000.0), (100000000000.0, 1000000000000.0))
    """
    if not isinstance(values, Mapping):
        raise ArgumentError(f"a topology must be a table of fields, and is {values!r:.40}")
    for key in values:
        check_choice("field", key, _FIELDS + _SHORT)
    given = dict(values)
    short = {key: check_bandwidth(key, given.pop(key)) for key in _SHORT if key in given}
    _check_present(given, "name", "num_devices")
    if "bandwidth" in given:
        if short:
            raise ArgumentError(f"bandwidth and {next(iter(short))} are not allowed together; it must be one of them")
        return Topology(**given)
    _check_present(given | short, *_SHORT[:2], "num_links")
    return Topology(
        **given | _expand(given["num_links"], check_integer("num_devices", given["num_devices"], 1, MAX_DEVICES), short)
    )


def _expand(links: Any, num_devices: int, short: dict[str, float]) -> dict[str, Any]:
    """Return the fields that follow from the links; one number of them is that of each device to a switch."""
    switched = {} if is_list(links) else {"is_switched": True}
    rows = (
        two_values(0, check_count("num_links", check_integer("num_links", links, 1)), num_devices)
        if switched
        else links
    )
    num_links = check_matrix("num_links", rows, num_devices, check_count)
    found = find_paths(num_links, short["link_bandwidth"], short["local_bandwidth"], short.get("host_bandwidth"))
    return {"num_links": num_links, "bandwidth": found[0], "paths": found[1], **switched}


def _check_present(given: Mapping[str, Any], *names: str) -> None:
    for name in names:
        if name not in given:
            raise ArgumentError(f"there is no {name}; it must be given")
