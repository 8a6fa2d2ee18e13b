# SPDX-License-Identifier: Apache-2.0
"""What a topology says of each pair of devices, a row for each device that sends; and the path of pairs without a link.

Such a pair goes through another device that both have links to, where the narrower of the two bounds it (GUM, section
I), or through the host: whichever has more bandwidth.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from shoal.errors import ArgumentError, check_integer, check_number

Item = TypeVar("Item")
Matrix = tuple[tuple[Item, ...], ...]

_MOST_BANDWIDTH = 1e30
#: Far more than a device has; with the largest bandwidth they stay finite.
_MOST_LINKS = 2**20
LOCAL = "local"
DIRECT = "direct"
HOST = "host"
NETWORK = "network"


def check_matrix(name: str, value: Any, count: int, check: Callable[[str, Any], Item]) -> Matrix[Item]:
    """Return ``count`` rows of as many values, each checked."""
    value = value.tolist() if hasattr(value, "tolist") else value
    rows = list(value) if is_list(value) else []
    if len(rows) != count or not all(is_list(row) and len(row) == count for row in rows):
        shown = f"{value!r:.40}{'...' if len(repr(value)) > 40 else ''}"
        raise ArgumentError(f"{name}={shown} is not allowed; it must be {count} rows of {count} values each")
    return tuple(tuple(check(f"{name}[{i}][{j}]", item) for j, item in enumerate(row)) for i, row in enumerate(rows))


def check_bandwidth(name: str, value: Any) -> float:
    """Return bytes a second, which must be more than none."""
    return check_number(name, value, 0, _MOST_BANDWIDTH, open_low=True)


def check_count(name: str, value: Any) -> int:
    """Return a number of links."""
    return check_integer(name, value, 0, _MOST_LINKS)


def is_list(value: Any) -> bool:
    """Return whether a value is a list of others."""
    return isinstance(value, Sequence) and not isinstance(value, str)


def two_values(own: Item, other: Item, count: int) -> Matrix[Item]:
    """Return a matrix with one value on its diagonal and another elsewhere."""
    return tuple(tuple(own if i == j else other for j in range(count)) for i in range(count))


def select(matrix: Matrix[Item], kept: Sequence[int]) -> Matrix[Item]:
    """Return the rows and columns of some devices."""
    return tuple(tuple(matrix[i][j] for j in kept) for i in kept)


def name_paths(num_links: Matrix[int]) -> Matrix[str]:
    """Return the path of each pair: direct where it has links, otherwise through the host."""
    return tuple(
        tuple(LOCAL if i == j else DIRECT if links else HOST for j, links in enumerate(row))
        for i, row in enumerate(num_links)
    )


def find_paths(
    num_links: Matrix[int], link_bandwidth: float, local_bandwidth: float, host_bandwidth: float | None
) -> tuple[Matrix[float], Matrix[str]]:
    """Return the bandwidth of each pair and its path, from the links that each pair has."""
    devices = range(len(num_links))

    def find_path(i: int, j: int) -> tuple[float, str]:
        if i == j:
            return local_bandwidth, LOCAL
        if num_links[i][j]:
            return num_links[i][j] * link_bandwidth, DIRECT
        between = ((min(num_links[i][k], num_links[k][j]), -k) for k in devices if k not in (i, j))
        width, device = max(between, default=(0, 0))
        if width * link_bandwidth >= (host_bandwidth or 0) and width:
            return width * link_bandwidth, f"through {-device}"
        if host_bandwidth is None:
            raise ArgumentError(f"devices {i} and {j} have no link and no device between them; it needs host_bandwidth")
        return host_bandwidth, HOST

    found = [[find_path(i, j) for j in devices] for i in devices]
    return tuple(tuple(b for b, _ in row) for row in found), tuple(tuple(path for _, path in row) for row in found)
