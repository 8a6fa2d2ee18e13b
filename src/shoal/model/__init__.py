# SPDX-License-Identifier: Apache-2.0
"""What a run would take on another machine: its counts, priced by a topology.  Every such figure is *modelled*."""

from shoal.model.bsp import Breakdown, bsp_seconds, predict
from shoal.model.discovery import discover
from shoal.model.reduction_tree import Reduction, reduction_order
from shoal.model.topology import Topology
from shoal.model.topology_files import TOPOLOGIES, find_topology, load_topology, make_topology

__all__ = [
    "TOPOLOGIES",
    "Breakdown",
    "Reduction",
    "Topology",
    "bsp_seconds",
    "discover",
    "find_topology",
    "load_topology",
    "make_topology",
    "predict",
    "reduction_order",
]
