# SPDX-License-Identifier: Apache-2.0
"""Room: whether the edges of a file fit in memory, before they are read.

Otherwise the system would end the process in the middle, with no word why.  What is compared is the least that reading
takes: both ends of every row, and the stored edges made of them.  So a file that is let through may still be too large,
and one that is refused is.  Parquet says how many rows it has; of text that is the size by the length of rows here and
there, compressed text counted as if it were plain.
"""

from __future__ import annotations

import os

from shoal.errors import OutOfMemoryError
from shoal.io.files import compression_of, read_start
from shoal.io.formats import FORMATS
from shoal.io.options import ReadOptions
from shoal.machine import available_memory_bytes, format_bytes, free_swap_bytes

_ID_BYTES = 4
#: ``0 1`` and the end of a line: no row of text is shorter.
_LEAST_ROW_BYTES = 4
_SAMPLE_BYTES = 2**16
_MOST_BYTES_PER_ROW = 4 * _ID_BYTES


def check_room(path: str, format_name: str, options: ReadOptions) -> None:
    """Refuse a file whose edges do not fit, and say how to go on."""
    if format_name not in ("edge-list", "parquet"):
        return
    free = available_memory_bytes() + free_swap_bytes()
    num_rows = _rows_of_text(path, free) if format_name == "edge-list" else _rows_of_table(path)
    if num_rows * _MOST_BYTES_PER_ROW <= free:
        return
    is_directed = FORMATS[format_name].load().stream(path, options).is_directed
    needed = num_rows * _ID_BYTES * (2 + (1 if is_directed else 2))
    if needed <= free:
        return
    target = f"{os.path.splitext(os.path.basename(path))[0]}.shards"
    raise OutOfMemoryError(
        f"{path}: has about {num_rows:,} rows, which take at least {format_bytes(needed)} while they are read, and "
        f"{format_bytes(free)} of memory are free; go on with: shoal partition {path} --devices 1 --output {target} "
        f"--memory {max(1, free >> 21)}MiB, which reads it piece by piece; what runs on {target} leaves edges on disk"
    )


def _rows_of_text(path: str, free: int) -> int:
    """Return about how many rows a file of text has; of a small one, what it cannot have more of."""
    size = os.path.getsize(path)
    if size // _LEAST_ROW_BYTES * _MOST_BYTES_PER_ROW <= free:
        return size // _LEAST_ROW_BYTES
    if compression_of(path) is not None:
        samples = [read_start(path, _SAMPLE_BYTES)]
    else:
        samples = []
        with open(path, "rb", buffering=0) as file:
            for place in (0, size // 2, max(0, size - _SAMPLE_BYTES)):  # ids may grow, and rows with them
                file.seek(place)
                samples.append(file.read(_SAMPLE_BYTES))
    text = b"".join(samples)
    return int(size * text.count(b"\n") / max(1, len(text)))


def _rows_of_table(path: str) -> int:
    """Return the number of rows of a Parquet file; 0 of what says nothing about it."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.read_metadata(path).num_rows
    except (pa.ArrowException, OSError):
        return 0  # of Arrow, or damaged, which is for the reader to say
