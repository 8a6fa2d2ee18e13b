# SPDX-License-Identifier: Apache-2.0
"""train_cost: time supersteps on one device, fit a cost model to them, and say how well it foretells other graphs.

Every graph is foretold once by models that have seen none of its supersteps: graphs are dealt to five folds, and each
fold is left out in turn.  Beside the polynomial stand those of GUM's table V, of scikit-learn, with the features as the
polynomial has them and the same weights, but for linear regression, which is the plain one: features as they are, and
absolute errors.
"""

from __future__ import annotations

import importlib.util
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import shoal
from shoal.bench.collecting import Samples, collect, generated_graphs, real_graphs
from shoal.config import parse_devices
from shoal.errors import ArgumentError, check_integer
from shoal.machine import cpu_name
from shoal.model import polynomial
from shoal.model.cost import CostModel
from shoal.model.cost_files import save_cost
from shoal.model.discovery import discover
from shoal.model.fitting import PolynomialFit, fit_polynomial, rmsre

#: What the fit is asked to reach on graphs that it has not seen.
ASKED_RMSRE = 0.35
_NUM_FOLDS = 5
_NANO = 1e9
#: Supersteps of so many items are told apart from what a second device costs whatever is done.
_LEAST_ITEMS = 2**13
_PAIR_SCALES = (16, 17, 18)
Predictor = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Training:
    """A cost model, and how it and others foretell graphs that were left out."""

    cost: CostModel
    num_supersteps: int
    num_graphs: int
    rmsre: dict[str, float]  # of each kind of model
    train_seconds: dict[str, float]
    rmsre_by_graph: dict[str, float]  # of the polynomial

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {**vars(self), "cost": self.cost.to_dict()}


def train_cost(
    devices: str = "cpu:1x1",
    data: str | os.PathLike[str] | None = None,
    output: str | os.PathLike[str] | None = None,
    *,
    name: str | None = None,
    repetitions: int = 5,
    graphs: dict[str, Callable[[], Any]] | None = None,
    say: Callable[[str], None] = lambda message: None,
    **thresholds: int,
) -> Training:
    """Collect supersteps on one device, fit, compare, and write the coefficients.

    Parameters
    ----------
    devices : one device; costs of a GPU are trained with ``cuda``
    data : a folder of graph files to be used beside generated graphs
    output : the file to write, TOML or JSON; see `shoal.model.load_cost`
    name : of the model; by default the kind of device
    graphs : in place of the generated ones: what makes each, by name
    **thresholds : see `shoal.bench.collecting.collect`
    """
    check_sklearn()
    check_integer("repetitions", repetitions, 1)
    sources = dict(generated_graphs() if graphs is None else graphs) | (real_graphs(data) if data is not None else {})
    found = collect(sources, devices, repetitions, say=say, **thresholds)
    searches = found.select(found.algorithms == "bfs")
    say(f"{len(searches)} supersteps of searches on {len(np.unique(searches.graphs))} graphs")
    errors, seconds, predicted = compare_models(searches)
    by_graph = {
        graph: rmsre(predicted[searches.graphs == graph], searches.seconds_per_edge[searches.graphs == graph])
        for graph in np.unique(searches.graphs).tolist()
    }
    cost = _make_cost(searches, devices, name or parse_devices(devices).kind, errors["polynomial"], repetitions)
    if output is not None:
        save_cost(cost, output)
    return Training(cost, len(searches), len(by_graph), errors, seconds, by_graph)


def check_sklearn() -> None:
    """Refuse to compare without scikit-learn, before anything is timed."""
    if importlib.util.find_spec("sklearn") is None:
        raise ArgumentError("training a cost model needs scikit-learn; install it with: pip install 'shoal[train]'")


def compare_models(samples: Samples) -> tuple[dict[str, float], dict[str, float], np.ndarray]:
    """Return the RMSRE of each kind of model on graphs left out, its seconds to train, and what the polynomial says."""
    names = np.unique(samples.graphs)
    if len(names) < 2:
        raise ArgumentError(f"supersteps are of {len(names)} graph; at least 2 are needed, so that one can be left out")
    fold_of = dict(zip(names.tolist(), np.arange(len(names)) % _NUM_FOLDS, strict=True))
    folds = np.array([fold_of[name] for name in samples.graphs.tolist()])
    errors, seconds = {}, {}
    of_polynomial = np.zeros(0)
    for kind, train in MODELS.items():
        predicted = np.zeros(len(samples))
        began = time.perf_counter()
        for fold in np.unique(folds):
            left = folds == fold
            predicted[left] = train(samples.select(~left))(samples.features[left])
        seconds[kind] = time.perf_counter() - began
        errors[kind] = rmsre(predicted, samples.seconds_per_edge)
        of_polynomial = predicted if kind == "polynomial" else of_polynomial
    return errors, seconds, of_polynomial


def _polynomial(samples: Samples, degree: int = 4) -> Predictor:
    return fit_polynomial(samples.features, samples.seconds_per_edge, samples.graphs, degree).predict


def _linear(samples: Samples) -> Predictor:
    from sklearn.linear_model import LinearRegression

    return LinearRegression().fit(samples.features, samples.seconds_per_edge).predict


def _tree(samples: Samples) -> Predictor:
    from sklearn.tree import DecisionTreeRegressor

    return _weighted(DecisionTreeRegressor(random_state=0), samples)


def _svr(samples: Samples) -> Predictor:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVR

    return _weighted(make_pipeline(StandardScaler(), SVR(kernel="rbf")), samples, "svr__")


def _weighted(model: Any, samples: Samples, prefix: str = "") -> Predictor:
    """Fit nanoseconds with the weights of relative errors: 1 / t^2 of a square, 1 / t of a distance."""
    nanoseconds = _NANO * samples.seconds_per_edge
    weights = nanoseconds ** (-1 if prefix else -2)
    model.fit(polynomial.flatten(samples.features), nanoseconds, **{f"{prefix}sample_weight": weights})
    return lambda features: model.predict(polynomial.flatten(features)) / _NANO


MODELS: dict[str, Callable[[Samples], Predictor]] = {
    "linear regression": _linear,
    "linear, scaled and weighted as the polynomial": lambda samples: _polynomial(samples, 1),
    "polynomial": _polynomial,
    "SVR": _svr,
    "decision tree": _tree,
}


def _make_cost(samples: Samples, devices: str, name: str, error: float, repetitions: int) -> CostModel:
    """Fit to all samples, and make a model of it with where it comes from."""
    fit: PolynomialFit = fit_polynomial(samples.features, samples.seconds_per_edge, samples.graphs)
    machine = discover(parse_devices(devices).kind, num_devices=1)
    num_graphs = len(np.unique(samples.graphs))
    return CostModel(
        name=name,
        device=f"{machine.name if parse_devices(devices).kind == 'cuda' else cpu_name()}, {devices}",
        coefficients=tuple(float(f"{_NANO * value:.9g}") for value in fit.coefficients),
        low=tuple(fit.low.tolist()),
        high=tuple(fit.high.tolist()),
        nanoseconds_low=_NANO * fit.least,
        nanoseconds_high=_NANO * fit.most,
        nanoseconds_per_item=item_nanoseconds(devices, repetitions),
        compute_scale=machine.compute_scale,
        source={
            "coefficients": f"fitted to {len(samples)} supersteps of breadth-first searches that push, on {num_graphs} "
            f"graphs; RMSRE on graphs left out {error:.3f}",
            "nanoseconds_per_item": "fitted to supersteps of two devices of this kind",
            "compute_scale": machine.source["compute_scale"],
        },
    )


def item_nanoseconds(devices: str, repetitions: int = 5) -> float:
    """Return what an item takes to pack and combine: what two devices work more than one, by items exchanged."""
    pair = "cuda:0*2" if parse_devices(devices).kind == "cuda" else "cpu:2x1"
    more = []
    for scale in _PAIR_SCALES:
        graph = shoal.generate.rmat(scale, seed=scale)
        alone, together = (_busy_seconds(graph, name, repetitions) for name in (devices, pair))
        items = together[1]
        is_many = items >= _LEAST_ITEMS
        more += ((together[0] - alone[0])[is_many] / items[is_many]).tolist()
    return float(f"{_NANO * max(float(np.median(more)), 0.0):.4g}")


def _busy_seconds(graph: Any, devices: str, repetitions: int) -> tuple[np.ndarray, np.ndarray]:
    """Return what devices work together in each superstep but the first, the least of runs, and the items."""
    placed = shoal.place(graph, devices)
    source = int(graph.degree.argmax())
    runs = [shoal.bfs(placed, source, direction="push").stats.to_dict()["supersteps"][1:] for _ in range(repetitions)]
    seconds = np.array([[np.subtract(row["seconds"], row["idle_seconds"]) for row in run] for run in runs])
    items = [sum(row["items_sent"]) + sum(row["items_combined"]) for row in runs[0]]
    return seconds.min(axis=0).sum(axis=1), np.array(items)
