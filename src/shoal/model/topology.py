# SPDX-License-Identifier: Apache-2.0
"""Topologies: what it costs devices to send to one another and to wait for one another.

A topology is two numbers of the BSP model (Gunrock's multi-GPU paper, section III-A): g, the time to send one byte, the
inverse of a device's bandwidth, and l, what a superstep costs whatever is done in it.
"""

from __future__ import annotations

from dataclasses import dataclass

from shoal.errors import ArgumentError, check_choice, check_number


@dataclass(frozen=True)
class Topology:
    """The devices of a machine and their links, as the BSP model sees them.

    Parameters
    ----------
    seconds_per_byte : g, of what one device sends
    seconds_per_superstep : l: launches, synchronisation and latency; its whole cost, however many rounds are exchanged
    source : where the numbers come from
    """

    name: str
    seconds_per_byte: float
    seconds_per_superstep: float
    source: str = ""

    def __post_init__(self) -> None:
        for field in ("seconds_per_byte", "seconds_per_superstep"):
            # Frozen, so set this way: numbers are kept as floats whatever they came as.
            object.__setattr__(self, field, check_number(field, getattr(self, field), 0, open_high=True))

    @property
    def bytes_per_second(self) -> float:
        """Return the bandwidth of a device, 1/g; infinite where sending costs nothing."""
        return 1 / self.seconds_per_byte if self.seconds_per_byte else float("inf")


_K40 = "Gunrock's multi-GPU paper, sections V-A (bandwidth between peers) and V-B (time of an iteration of one edge)"
# "K40s on the same PCIe3 root hub", peer access enabled: ~20 GB/s.
_K40_SECONDS_PER_BYTE = 1 / 20e9
# "the average per-iteration time for large S for {1,2,3,4} GPUs"
_K40_SECONDS_PER_SUPERSTEP = (66.8e-6, 124e-6, 142e-6, 188e-6)
_DGX2 = "ButterFly BFS, section 4; it states no l, so synchronisation is left out and predictions are lower bounds"
# "Each GPU has six incoming and outgoing links at 25GB/s (each)": 150 GB/s each way.
_DGX2_SECONDS_PER_BYTE = 1 / 150e9

#: Machines of the papers by name.
TOPOLOGIES: dict[str, Topology] = {
    topology.name: topology
    for topology in (
        *(
            Topology(f"k40x{count}", _K40_SECONDS_PER_BYTE, latency, _K40)
            for count, latency in enumerate(_K40_SECONDS_PER_SUPERSTEP, start=1)
        ),
        Topology("dgx2", _DGX2_SECONDS_PER_BYTE, 0.0, _DGX2),
    )
}


def find_topology(topology: Topology | str) -> Topology:
    """Return a topology by its name in `TOPOLOGIES`; a `Topology` is returned as it is.

    Examples
    --------
    >>> find_topology("k40x4").seconds_per_superstep
    0.000188
    """
    if isinstance(topology, Topology):
        return topology
    if not isinstance(topology, str):
        raise ArgumentError(
            f"topology={topology!r} is not allowed; it must be a Topology or one of {', '.join(TOPOLOGIES)}"
        )
    return TOPOLOGIES[check_choice("topology", topology, TOPOLOGIES)]
