# SPDX-License-Identifier: Apache-2.0
"""Write columns as text with pyarrow.

Numbers are written so that reading gives the same value and type: floats with all their digits and at least a point.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.errors import GraphError
from shoal.labels import labels_as_arrow

#: Labels made of these need no quotes: they cannot be taken for a number, a comment or two columns.
_PLAIN_LABEL = r"^[A-Za-z_][A-Za-z0-9_.:/@+-]*$"


def write_columns(stream: Any, columns: list[Any], separator: str) -> None:
    """Write a line for each row."""
    import pyarrow as pa
    import pyarrow.compute as pc

    words = [pa.array(column).cast(pa.large_string()) for column in columns]
    write_lines(stream, pc.binary_join_element_wise(*words, pa.scalar(separator, pa.large_string())))


def write_lines(stream: Any, lines: Any) -> None:
    """Write the strings of an Arrow array, each with a newline."""
    if len(lines):
        stream.write(join_words(lines, np.array([0, len(lines)]), "\n")[0].as_buffer())
        stream.write(b"\n")


def join_words(words: Any, offsets: np.ndarray, separator: str) -> Any:
    """Return an Arrow array of strings: the i-th is made of the words ``offsets[i]:offsets[i + 1]``."""
    import pyarrow as pa
    import pyarrow.compute as pc

    lists = pa.LargeListArray.from_arrays(pa.array(offsets), words)
    return pc.binary_join(lists, pa.scalar(separator, pa.large_string()))


def format_weights(weights: np.ndarray) -> Any:
    """Return weights as pyarrow should write them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if weights.dtype.kind == "i":
        return pa.array(weights)
    text = pa.array(weights.astype(np.float64, copy=False)).cast(pa.string())
    is_whole = pc.match_substring_regex(text, r"^-?[0-9]+$")
    return pc.if_else(is_whole, pc.binary_join_element_wise(text, "0", "."), text)


def format_labels(labels: Any) -> Any:
    """Return labels as fields of a text file, in quotes where need be; None for None."""
    import pyarrow as pa
    import pyarrow.compute as pc

    array = labels_as_arrow(labels)
    if array is None or pa.types.is_integer(array.type):
        return array
    broken = np.flatnonzero(pc.match_substring(array, "\n").to_numpy(zero_copy_only=False))
    if broken.size:
        raise GraphError(
            f"labels[{broken[0]}]={array[int(broken[0])].as_py()!r} has a line break; text files cannot hold it"
        )
    quote = pa.scalar('"', array.type)
    quoted = pc.binary_join_element_wise(
        quote, pc.replace_substring(array, '"', '""'), quote, pa.scalar("", array.type)
    )
    return pc.if_else(pc.match_substring_regex(array, _PLAIN_LABEL), array, quoted)
