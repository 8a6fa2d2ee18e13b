# SPDX-License-Identifier: Apache-2.0
"""Read a text file, compressed or not, in blocks of whole lines.

One buffer is filled again and again, so that a file of any size costs the memory of one block.  A block always ends
with a newline, which is what the compiled parsers stop at.  Line numbers are counted along, for error messages.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from shoal.backends.cpu.threads import available_cores, run_threads
from shoal.errors import FileFormatError
from shoal.io.files import compression_of, open_compressed
from shoal.progress import WorkReporter

#: Per thread: large enough that starting threads is under 1 % of the time to parse, small beside any graph.
BLOCK_BYTES = 8 * 2**20
#: No row is as long, nor are the comments before the first; a small file that decompresses to one line could be.
LONGEST_LINE = 2**26
#: Below this, starting threads costs more than they save.
_SMALL_FILE = 2**16
#: After the text: a newline if the file ends without one, and as many bytes as the parsers may look ahead.
_SLACK = 9
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Line(NamedTuple):
    """A line of the first block."""

    number: int
    start: int
    end: int
    text: bytes


class Block(NamedTuple):
    """Whole lines; thread t has the bytes ``cuts[t]:cuts[t + 1]``."""

    text: np.ndarray
    cuts: np.ndarray
    num_lines: np.ndarray  # of each thread
    first_line: int  # its number in the file, from 1


class TextSource:
    """A text file as blocks of lines.  The first block is there at once, to look at and to skip a header.

    Lines may be of any length with ``has_long_lines``: otherwise they are refused beyond `LONGEST_LINE`.
    """

    def __init__(self, path: str, *, has_long_lines: bool = False) -> None:
        self.path = path
        self._has_long_lines = has_long_lines
        compression = compression_of(path)
        #: Bytes of text, None if only decompression can tell.
        self.size = None if compression else os.path.getsize(path)
        self._stream: Any = open_compressed(path, compression)
        self._work, self._num_read = WorkReporter("read", self.size, "bytes"), 0
        self._next_line = 1
        self._start = 0
        is_small = self.size is not None and self.size < _SMALL_FILE
        self.num_threads = 1 if is_small else len(available_cores())
        capacity = BLOCK_BYTES * self.num_threads
        if self.size is not None:
            capacity = min(capacity, self.size + 1)
        self._buffer = bytearray(capacity + _SLACK)
        self._filled = 0
        self._fill()
        if self._filled == 0:
            raise FileFormatError(f"{path}: the file is empty")
        if self._buffer.startswith(_BYTE_ORDER_MARK):
            self._buffer[: len(_BYTE_ORDER_MARK)] = b" " * len(_BYTE_ORDER_MARK)

    def __enter__(self) -> TextSource:
        return self

    def __exit__(self, *exception: object) -> None:
        self._stream.close()

    def text_before(self, line: Line | None) -> bytes:
        """Return what stands before a line of the first block, all of the block for None."""
        return bytes(self._buffer[: self._filled if line is None else line.start])

    def first_lines(self, comments: bytes, count: int) -> list[Line]:
        """Return the first ``count`` lines that are neither empty nor comments; the first block grows to have them."""
        lines = self._find_lines(comments, count)
        while not self._is_last and (len(lines) < count or lines[-1].end == self._filled):
            self._grow()
            lines = self._find_lines(comments, count)
        return lines

    def _find_lines(self, comments: bytes, count: int) -> list[Line]:
        pattern = re.compile(rb"^[ \t]*(?![ \t\r\n" + re.escape(comments) + rb"])[^\n]+", re.MULTILINE)
        lines = []
        for match in pattern.finditer(self._buffer, self._start, self._filled):
            number = self._next_line + self._buffer.count(b"\n", self._start, match.start())
            lines.append(Line(number, match.start(), match.end(), match.group().strip()))
            if len(lines) == count:
                break
        return lines

    def skip_past(self, line: Line) -> None:
        """Make the line after ``line`` the first of the first block."""
        self._next_line = line.number + 1
        self._start = min(line.end + 1, self._filled)

    def blocks(self) -> Iterator[Block]:
        """Yield the rest of the file; a block is valid until the next is asked for."""
        while True:
            is_last = self._is_last
            if is_last and self._filled > self._start and self._buffer[self._filled - 1] != 10:
                self._buffer[self._filled] = 10
                self._filled += 1
            end = self._filled if is_last else self._buffer.rfind(b"\n", self._start, self._filled) + 1
            if end > self._start:
                block = self._block(end)
                yield block
                self._next_line += int(block.num_lines.sum())
            if is_last:
                return
            self._refill(max(end, self._start))

    def _block(self, end: int) -> Block:
        from shoal.backends.cpu.kernels.text import count_lines

        text = np.frombuffer(self._buffer, np.uint8)[self._start : end]
        cuts = self._cuts(self._start, end)
        num_lines = np.zeros(self.num_threads, np.int64)
        run_threads(count_lines, self.num_threads, text, cuts, num_lines)
        return Block(text, cuts, num_lines, self._next_line)

    def _cuts(self, start: int, end: int) -> np.ndarray:
        cuts = [0]
        for thread in range(1, self.num_threads):
            wanted = max(cuts[-1], (end - start) * thread // self.num_threads)
            cuts.append(self._buffer.find(b"\n", start + wanted, end) + 1 - start)
            cuts[-1] = cuts[-1] if cuts[-1] > 0 else end - start
        return np.array([*cuts, end - start])

    def _refill(self, end: int) -> None:
        """Move what stands after ``end`` to the front and read on; a line longer than the buffer makes it grow."""
        if end == 0:
            self._grow()
            return
        rest = self._filled - end
        self._buffer[:rest] = self._buffer[end : self._filled]
        self._filled, self._start = rest, 0
        self._fill()

    def _grow(self) -> None:
        if len(self._buffer) > LONGEST_LINE + _SLACK and not self._has_long_lines:
            raise FileFormatError(
                f"{self.path}, line {self._next_line}: there is no row in {len(self._buffer) >> 20} MiB from here on"
            )
        larger = bytearray(2 * len(self._buffer))
        larger[: self._filled] = self._buffer[: self._filled]
        self._buffer = larger
        self._fill()

    @property
    def _is_last(self) -> bool:
        """Whether the file has been read to its end."""
        return self._filled < len(self._buffer) - _SLACK

    def _fill(self) -> None:
        view = memoryview(self._buffer)
        capacity = len(self._buffer) - _SLACK
        try:
            while self._filled < capacity:
                count = self._stream.readinto(view[self._filled : capacity])
                if not count:
                    break
                self._filled += count
                self._num_read += count
                self._work.report(self._num_read)
        except OSError as error:
            verb = "read" if self.size is not None else "decompressed"
            raise FileFormatError(f"{self.path}: cannot be {verb}: {error}") from error

    def line_error(self, block: Block, position: int, reason: str) -> FileFormatError:
        """Make the error for the line that has the byte ``position`` of a block."""
        number = block.first_line + int(np.count_nonzero(block.text[:position] == 10))
        return FileFormatError(f"{self.path}, line {number}: {reason}")
