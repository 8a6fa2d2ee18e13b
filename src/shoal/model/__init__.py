# SPDX-License-Identifier: Apache-2.0
"""What a run would take on another machine: its counts, priced by a topology.  Every such figure is *modelled*."""

from shoal.model.bsp import Breakdown, bsp_seconds, predict
from shoal.model.cluster import make_cluster
from shoal.model.cost import CostModel
from shoal.model.cost_files import COSTS, find_cost, load_cost, save_cost
from shoal.model.counts import Counts
from shoal.model.discovery import discover
from shoal.model.features import FEATURES, frontier_features
from shoal.model.pricing import Timeline, scaling
from shoal.model.reduction_tree import Reduction, reduction_order
from shoal.model.topology import Topology
from shoal.model.topology_files import TOPOLOGIES, find_topology, load_topology, make_topology

__all__ = [
    "COSTS",
    "FEATURES",
    "TOPOLOGIES",
    "Breakdown",
    "CostModel",
    "Counts",
    "Reduction",
    "Timeline",
    "Topology",
    "bsp_seconds",
    "discover",
    "find_cost",
    "find_topology",
    "frontier_features",
    "load_cost",
    "load_topology",
    "make_cluster",
    "make_topology",
    "predict",
    "reduction_order",
    "save_cost",
    "scaling",
]
