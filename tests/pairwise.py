# SPDX-License-Identifier: Apache-2.0
"""Choose few combinations of options in which every two values of different options meet."""

import itertools
import random


def all_pairs(options, is_allowed=lambda case: True, seed=1):
    """Return dicts, one value for every option, such that every pair of values is in at least one of them.

    Greedy: each new combination takes up a pair that is missing and then, option by option, the value that adds most.
    ``is_allowed`` says of some or all values whether they go together.
    """
    names = list(options)
    missing = pairs_of(options, is_allowed)
    chooser = random.Random(seed)
    found = []
    while missing:
        chosen = dict(min(missing, key=_place))
        for name in chooser.sample(names, len(names)):
            if name not in chosen:
                fitting = [value for value in options[name] if is_allowed({**chosen, name: value})]
                gains = {v: sum(frozenset(((name, v), item)) in missing for item in chosen.items()) for v in fitting}
                best = max(gains.values())
                chosen[name] = chooser.choice([value for value, gain in gains.items() if gain == best])
        missing -= {frozenset(pair) for pair in itertools.combinations(chosen.items(), 2)}
        found.append({name: chosen[name] for name in names})
    return found


def pairs_of(options, is_allowed=lambda case: True):
    """Return every pair of values of different options that go together, each as a set of (option, value)."""
    return {
        frozenset(((one, x), (other, y)))
        for one, other in itertools.combinations(options, 2)
        for x in options[one]
        for y in options[other]
        if is_allowed({one: x, other: y})
    }


def _place(pair):
    return sorted((name, str(value)) for name, value in pair)
