# SPDX-License-Identifier: Apache-2.0
"""Router: an endpoint that hands on what it is sent, and the policies that say to whom.

A policy is a function of a segment, its source and the router's destinations, or a table from sources to destinations.
It returns endpoints, one of which gets the segment, the first that has room; or lists of endpoints: then one of each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from shoal.dataflow.context import Context, DataflowError, Endpoint
from shoal.dataflow.link import Link, Packet, Segment
from shoal.errors import ArgumentError, check_integer

Route = Sequence[Endpoint] | Sequence[Sequence[Endpoint]]
RoutingPolicy = Callable[[Segment, Endpoint, Sequence[Endpoint]], Route] | Mapping[Endpoint, Route]


def first_available(segment: Segment, source: Endpoint, destinations: Sequence[Endpoint]) -> Route:
    """Whoever has room first, but the sender."""
    return [endpoint for endpoint in destinations if endpoint is not source]


def broadcast(segment: Segment, source: Endpoint, destinations: Sequence[Endpoint]) -> Route:
    """Everybody but the sender."""
    return [[endpoint] for endpoint in destinations if endpoint is not source]


def ring(endpoints: Sequence[Endpoint]) -> dict[Endpoint, Route]:
    """Return the table by which each endpoint sends to the next, and the last to the first."""
    return {endpoint: [endpoints[(place + 1) % len(endpoints)]] for place, endpoint in enumerate(endpoints)}


def reduction_tree(endpoints: Sequence[Endpoint], root: Endpoint) -> dict[Endpoint, Route]:
    """Return the table by which each endpoint sends to one half as far along, and the first to the root."""
    return {endpoint: [endpoints[(place - 1) // 2] if place else root] for place, endpoint in enumerate(endpoints)}


class Router(Endpoint):
    """Connects several endpoints with several others.

    Parameters
    ----------
    num_inputs, num_outputs : links that will come from and go to it; all of them must be there before the first message
    policy : `first_available`, `broadcast`, a table such as those of `ring` and `reduction_tree`, or one's own
    """

    is_router = True

    def __init__(
        self, context: Context, num_inputs: int, num_outputs: int, policy: RoutingPolicy, name: str = "router"
    ) -> None:
        super().__init__(context, name, context.host.memory)
        self.num_inputs = check_integer("num_inputs", num_inputs, 1)
        self.num_outputs = check_integer("num_outputs", num_outputs, 1)
        if not callable(policy) and not isinstance(policy, Mapping):
            raise ArgumentError(f"Router: policy={policy!r} is neither a function nor a table")
        self.policy = policy

    def check_link(self, link: Link) -> None:
        """Refuse a link too many, and one between two routers."""
        if link.src.is_router and link.dst.is_router:
            raise ArgumentError(f"Link: {link.src.name} and {link.dst.name} are both routers; one policy can do it")
        is_input = link.dst is self
        links, most = (self.inputs, self.num_inputs) if is_input else (self.outputs, self.num_outputs)
        if len(links) == most:
            raise ArgumentError(f"Link: {self.name} has {most} {'inputs' if is_input else 'outputs'} already")

    def destinations(self, link: Link, packet: Packet) -> list[tuple[Packet, list[Link]]]:
        """Ask the policy."""
        for links, count, what in (
            (self.inputs, self.num_inputs, "inputs"),
            (self.outputs, self.num_outputs, "outputs"),
        ):
            if len(links) < count:
                raise DataflowError(
                    f"{self.name} has {len(links)} of {count} {what}; link them before anything is sent"
                )
        groups = self._groups(packet)
        return [(replace(packet), [self._output(endpoint) for endpoint in group]) for group in groups]

    def _groups(self, packet: Packet) -> list[Sequence[Endpoint]]:
        if isinstance(self.policy, Mapping):
            route: Any = self.policy.get(packet.source, ())
        else:
            segment = Segment(packet.data, packet.number, packet.source, packet.metadata)
            route = self.policy(segment, packet.source, [output.dst for output in self.outputs])
        groups = [route] if route and isinstance(route[0], Endpoint) else list(route)
        if not groups or not all(groups):
            raise DataflowError(f"{self.name}: its policy has nowhere to send what comes from {packet.source.name}")
        return groups

    def _output(self, endpoint: Endpoint) -> Link:
        for output in self.outputs:
            if output.dst is endpoint:
                return output
        raise DataflowError(f"{self.name}: its policy sends to {endpoint!r}, to which it has no link")
