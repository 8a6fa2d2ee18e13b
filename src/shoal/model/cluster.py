# SPDX-License-Identifier: Apache-2.0
"""Several machines of one kind on a network: a topology of two levels.

Every device has a port of its own to the network, as in machines with an adapter for each GPU, and the network gives
every port its full rate: a fat tree that nothing else uses.  Devices are numbered machine by machine; `subset` of the
numbers in another order is the same cluster numbered in another way, which is what rounds of an exchange depend on.
"""

from __future__ import annotations

from collections.abc import Sequence

from shoal.errors import check_integer, check_number
from shoal.model.matrices import NETWORK, Item, Matrix, check_bandwidth
from shoal.model.topology import Topology


def make_cluster(
    machine: Topology,
    num_machines: int,
    *,
    network_bandwidth: float,
    network_latency_seconds: float,
    barrier_seconds: float | Sequence[float],
    source: str = "",
) -> Topology:
    """Return the topology of machines that are all alike, each device with a port to the network.

    Parameters
    ----------
    machine : one of them
    network_bandwidth : of a device's port, in bytes a second in each direction
    barrier_seconds : of all devices of the cluster, or a number for each count of them (see `Topology`)
    source : where the network's numbers come from

    Examples
    --------
    >>> from shoal.model import find_topology
    >>> pair = make_cluster(find_topology("dgx-h100"), 2, network_bandwidth=50e9, network_latency_seconds=5e-6,
    ...                     barrier_seconds=5e-5)
    >>> pair.num_devices, pair.path(0, 1), pair.path(0, 8), pair.bandwidth[0][8]
    (16, 'direct', 'network', 50000000000.0)
    """
    count = check_integer("num_machines", num_machines, 1)
    bandwidth = check_bandwidth("network_bandwidth", network_bandwidth)
    latency = check_number("network_latency_seconds", network_latency_seconds, 0, open_high=True)
    size = machine.num_devices
    return Topology(
        name=f"{count} x {machine.name}",
        num_devices=count * size,
        bandwidth=_blocks(machine.bandwidth, bandwidth, count),
        latency_seconds=max(machine.latency_seconds, latency) if count > 1 else machine.latency_seconds,
        barrier_seconds=tuple(barrier_seconds) if isinstance(barrier_seconds, Sequence) else (barrier_seconds,),
        compute_scale=machine.compute_scale,
        source={**machine.source, "network": source or "given"},
        num_links=_blocks(machine.num_links, 0, count),
        paths=_blocks(machine.paths, NETWORK, count),
        is_switched=machine.is_switched,
    )


def _blocks(matrix: Matrix[Item], other: Item, count: int) -> Matrix[Item]:
    """Return a matrix with a smaller one along its diagonal, and one value elsewhere."""
    size = len(matrix)
    return tuple(
        (other,) * (size * block) + tuple(row) + (other,) * (size * (count - block - 1))
        for block in range(count)
        for row in matrix
    )
