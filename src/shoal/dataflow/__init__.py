# SPDX-License-Identifier: Apache-2.0
"""Dataflow between devices, after Groute: endpoints, links with a few buffers, routers with policies.

A graph of links is made first; then workers send and receive at their own pace.  (Ben-Nun, Sutton, Pai, Pingali:
Groute: Asynchronous Multi-GPU Programming Model with Applications to Large-scale Graph Processing, TOPC 2020.)
"""

from shoal.dataflow.context import Context, DataflowError, Endpoint
from shoal.dataflow.filtering import Filtered, filter_array
from shoal.dataflow.link import Future, Link, PendingSegment, Segment
from shoal.dataflow.router import Router, RoutingPolicy, broadcast, first_available, reduction_tree, ring
from shoal.dataflow.worklist import DUPLICATE, KEEP, PASS, REMOVE, DistributedWorklist

__all__ = [
    "DUPLICATE", "KEEP", "PASS", "REMOVE", "Context", "DataflowError", "DistributedWorklist", "Endpoint", "Filtered",
    "Future", "Link", "PendingSegment", "Router", "RoutingPolicy", "Segment", "broadcast", "filter_array",
    "first_available", "reduction_tree", "ring",
]  # fmt: skip
