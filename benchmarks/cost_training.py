# SPDX-License-Identifier: Apache-2.0
"""How well a cost model foretells graphs that it has not seen, beside other kinds of models (GUM, table V).

    python benchmarks/cost_training.py --output src/shoal/model/costs/cpu.toml --json training.json

What `shoal bench --train-cost` does, with the errors as figures.
"""

from __future__ import annotations

from figures import Figure, parser, publish
from shoal.bench.training import ASKED_RMSRE, train_cost


def main() -> None:
    """Train and publish."""
    options = parser(__doc__)
    options.add_argument("--devices", default="cpu:1x1", help="one device (cpu:1x1)")
    options.add_argument("--data", metavar="DIR", help="real graphs to train on too")
    options.add_argument("--output", metavar="FILE", help="write the cost model to this file")
    options.add_argument("--repetitions", type=int, default=7, help="runs of each search (7)")
    given = options.parse_args()
    trained = train_cost(given.devices, given.data, given.output, repetitions=given.repetitions, say=print)
    figures = [
        Figure(f"RMSRE, {kind}", error, "", ASKED_RMSRE if kind == "polynomial" else None, trained.num_supersteps)
        for kind, error in trained.rmsre.items()
    ]
    figures += [Figure(f"training, {kind}", seconds, "s") for kind, seconds in trained.train_seconds.items()]
    worst = max(trained.rmsre_by_graph, key=trained.rmsre_by_graph.__getitem__)
    figures.append(Figure(f"RMSRE of the polynomial, worst graph ({worst})", trained.rmsre_by_graph[worst], ""))
    setting = (
        f"{trained.cost.device}: {trained.num_supersteps} supersteps of {trained.num_graphs} graphs, each left out once"
    )
    publish("cost_training", setting, figures, given.json)


if __name__ == "__main__":
    main()
