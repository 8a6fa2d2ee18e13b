# SPDX-License-Identifier: Apache-2.0
"""How long an exchange takes on the links of a machine, by who sends to whom in which round.

What a run counts is the bytes that a device sends in a superstep.  They are shared out to its messages by how many
devices' contributions each carries, which the schedule tells: its own, or also those that it has received before.  A
message takes its bytes over the bandwidth of the pair.  Messages of a device leave side by side over direct links of
their own, and one after the other through a switch's port or the host; what goes to other machines leaves by the port
to the network, beside the others.  A round ends when the last message of it has
arrived; each one after the first has the latency of a message more, that of the first being part of the barrier.
"""

from __future__ import annotations

import numpy as np

from shoal.model.matrices import DIRECT, NETWORK
from shoal.model.topology import Topology
from shoal.strategies.communication import Schedule


def message_weights(schedule: Schedule) -> np.ndarray:
    """Return the contributions in the message of each round from each device to each other, as floats."""
    size = schedule.num_devices
    weights = np.zeros((schedule.num_rounds, size, size))
    held = np.ones(size)
    for index in range(schedule.num_rounds):
        before = held.copy()
        for device in range(size):
            peers = schedule.peers(index, device)
            weights[index, peers, device] = before[peers]
            if schedule.forwards == "all":
                held[device] += before[peers].sum()
    return weights


def transfer_seconds(bytes_sent: np.ndarray, schedule: Schedule, topology: Topology) -> tuple[np.ndarray, np.ndarray]:
    """Return what each device sends and receives for, in seconds, and how long the exchange takes.

    Parameters
    ----------
    bytes_sent : of each device (columns) in each superstep (rows)

    Returns
    -------
    seconds of each device (columns) in each superstep (rows), and of the whole exchange in each superstep
    """
    weights = message_weights(schedule)
    sent = np.maximum(weights.sum(axis=(0, 2)), 1)
    bandwidth = np.array(topology.bandwidth)
    paths = np.array(topology.paths)
    is_network = paths == NETWORK
    is_direct = (paths == DIRECT) & (not topology.is_switched)
    is_shared = ~(is_direct | is_network)
    own, whole = np.zeros(bytes_sent.shape), np.zeros(len(bytes_sent))
    is_used = bytes_sent.any(axis=1)
    for index, weight in enumerate(weights):
        seconds = (bytes_sent / sent)[:, :, None] * (weight / bandwidth)
        direct, shared, network = seconds * is_direct, seconds * is_shared, seconds * is_network
        latency = topology.latency_seconds * is_used if index else 0.0
        round_seconds = np.maximum.reduce([
            end for axis in (2, 1) for end in (direct.max(axis=axis), shared.sum(axis=axis), network.sum(axis=axis))
        ])  # fmt: skip
        own += round_seconds + np.reshape(latency, (-1, 1))
        whole += round_seconds.max(axis=1) + latency
    return own, whole
