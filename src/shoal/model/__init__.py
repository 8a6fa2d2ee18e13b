# SPDX-License-Identifier: Apache-2.0
"""What a run would take on another machine: its counts, priced by a topology.  Every such figure is *modelled*."""

from shoal.model.bsp import Breakdown, bsp_seconds, predict
from shoal.model.topology import TOPOLOGIES, Topology, find_topology

__all__ = ["TOPOLOGIES", "Breakdown", "Topology", "bsp_seconds", "find_topology", "predict"]
