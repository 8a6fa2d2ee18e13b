# SPDX-License-Identifier: Apache-2.0
"""What an edge costs a device, by the frontier that it belongs to: c_ij = bytes per edge / B_ij + g(W_i).

g is a polynomial of degree 4 over the features of `shoal.model.features`, fitted to supersteps that were timed (GUM,
section III-B; see `shoal.model.fitting`).  Those were long ones, of edges in the device's own memory.  So g says what a
superstep takes beside its start, and what reading its own memory takes is part of it.  What it says is never outside of
what was measured: features count as the ends of the range trained on where they are beyond it, and so do its values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from shoal.errors import ArgumentError, check_number
from shoal.model import polynomial
from shoal.model.features import FEATURES
from shoal.model.matrices import is_list
from shoal.model.topology import Topology
from shoal.strategies.stealing import cost_matrix

#: Far more than any degree or any nanoseconds, and far from where sums of products overflow.
_MOST = 1e30


@dataclass(frozen=True)
class CostModel:
    """The seconds that a device takes for an edge, and for an item that it sends or receives.

    Parameters
    ----------
    device : what was measured, in words
    coefficients : of the polynomial's terms, in nanoseconds; as many as a polynomial of some degree has
    low, high : range of each feature that was trained on, degrees as their logarithm to the base 2 of one more
    nanoseconds_low, nanoseconds_high : of an edge, the least and the most that was trained on
    nanoseconds_per_item : to pack, or to combine, an item
    compute_scale : the speed of the device, that of an H200 being 1, as in a `Topology`
    source : where the numbers come from, in words
    """

    name: str
    device: str
    coefficients: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    nanoseconds_low: float
    nanoseconds_high: float
    nanoseconds_per_item: float
    compute_scale: float = 1.0
    source: Mapping[str, str] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        values: dict[str, Any] = {
            name: _check_numbers(name, getattr(self, name)) for name in ("coefficients", "low", "high")
        }
        for name in ("low", "high"):
            if len(values[name]) != len(FEATURES):
                raise ArgumentError(f"{name} has {len(values[name])} numbers; it must have {len(FEATURES)}")
        if polynomial.degree_of(len(values["coefficients"])) is None:
            raise ArgumentError(f"coefficients has {len(values['coefficients'])} numbers; a polynomial of degree 4 "
                                f"has {polynomial.num_terms(4)}, a constant 1")  # fmt: skip
        lowest = check_number("nanoseconds_low", self.nanoseconds_low, 0, open_low=True, open_high=True)
        check_number("nanoseconds_high", self.nanoseconds_high, lowest, open_high=True)
        check_number("nanoseconds_per_item", self.nanoseconds_per_item, 0, open_high=True)
        check_number("compute_scale", self.compute_scale, 0, open_low=True, open_high=True)
        arrays = {f"_{name}": np.array(numbers) for name, numbers in values.items()}
        for name, value in (values | arrays).items():
            object.__setattr__(self, name, value)  # frozen, so set this way

    @property
    def degree(self) -> int:
        """The degree of the polynomial."""
        return polynomial.degree_of(len(self.coefficients)) or 0

    def seconds_per_edge(self, features: Any) -> Any:
        """Return g: seconds of an edge, of one vector of features or of each row of several.

        Examples
        --------
        >>> from shoal.model import find_cost
        >>> bool(0 < find_cost("cpu").seconds_per_edge([30, 30, 5000, 5000, 0.7, 0.9]) < 1e-7)
        True
        """
        scaled = polynomial.scale(polynomial.flatten(features), self._low, self._high)  # type: ignore[attr-defined]
        found = polynomial.terms(scaled, self.degree) @ self._coefficients  # type: ignore[attr-defined]
        return np.clip(found, self.nanoseconds_low, self.nanoseconds_high) * 1e-9

    def scaled_to(self, topology: Topology) -> float:
        """Return by how much a device of a topology takes longer than the one measured."""
        return self.compute_scale / topology.compute_scale

    def cost_matrix(self, topology: Topology, seconds_per_edge: Any, bytes_per_edge: float) -> np.ndarray:
        """Return c_ij, the seconds that device j takes for an edge that lies on device i.

        Parameters
        ----------
        seconds_per_edge : of each device i on the machine itself, so scaled already
        """
        bandwidth = np.array(topology.bandwidth)
        # What was measured has read its own memory: c_ii is that, and not that and a reading more.
        alone = np.asarray(seconds_per_edge) - bytes_per_edge / bandwidth.diagonal()
        return cost_matrix(bandwidth, bytes_per_edge, np.maximum(alone, 0))

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values, as a file has them."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}


def _check_numbers(name: str, values: Sequence[float] | Any) -> tuple[float, ...]:
    values = values.tolist() if hasattr(values, "tolist") else values
    if not is_list(values):
        raise ArgumentError(f"{name}={values!r:.40} is not allowed; it must be a list of numbers")
    return tuple(check_number(f"{name}[{i}]", value, -_MOST, _MOST) for i, value in enumerate(values))
