# SPDX-License-Identifier: Apache-2.0
"""Ways to spoil a right result, for the tests of the verifiers."""

import pytest


def corruptions(*cases):
    """Parametrize over (name, change made to the arrays, words of the message)."""
    return pytest.mark.parametrize(
        ("corrupt", "words"), [pytest.param(corrupt, words, id=name) for name, corrupt, words in cases]
    )


def put(array_name, vertex, value):
    """A change of one value."""

    def corrupt(arrays):
        arrays[array_name][vertex] = value

    return corrupt


def both(*changes):
    """Several changes at once."""

    def corrupt(arrays):
        for change in changes:
            change(arrays)

    return corrupt


def cast(array_name, convert):
    """A whole array replaced."""

    def corrupt(arrays):
        arrays[array_name] = convert(arrays[array_name])

    return corrupt
