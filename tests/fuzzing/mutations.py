# SPDX-License-Identifier: Apache-2.0
"""Ways to spoil bytes, text and trees of values: each takes a source of chance and what is there."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

Change = Callable[[Random, bytes], bytes]

#: Where counts and offsets go wrong: signs, borders of int32, uint32, int64 and float64, claims beyond any file.
NUMBERS = (
    0, 1, 2, 3, 7, 127, 255, 2**15, 2**16, 2**24, 2**31 - 2, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**32 + 1, 2**53 + 1,
    10**15, 10**18, 2**63 - 2, 2**63 - 1, 2**63, 2**64 - 1, 2**64, -1, -2, -(2**31), -(2**31) - 1, -(2**63),
)  # fmt: skip
#: Python refuses to read more than 4300 digits.
WORDS = (
    b"nan", b"-nan", b"inf", b"-inf", b"Infinity", b"1e400", b"-1e400", b"1e-400", b"0x10", b"1_000", b"+5", b"-0",
    b"00", b"1.", b".5", b".", b"-", b"e", b"1e", b"9" * 30, b"9" * 400, b"9" * 5000, b"0" * 5000, b"1." + b"3" * 400,
    b'"', b'""', b'"a', b'"a""b"', b",", b",,", b";", b"\t", b"\r", b"\n", b"\r\n", b"\n\n", b" ", b"#", b"%", b"c",
    b"p", b"a ", b"e ", b"\0", b"\0" * 9, b"\xff\xfe", b"\xef\xbb\xbf", b"\xc3\x28", b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80", "\u2028".encode(), "\u0663".encode(), b"\x0b", b"\x0c", b"\x1a", b"\x85", b"../../etc/passwd",
    b"/etc/passwd", b"__import__('os')",
)  # fmt: skip
_LONGEST = 2**17


def flip_bits(random: Random, data: bytes) -> bytes:
    """Change single bits."""
    changed = bytearray(data)
    for _ in range(random.choice((1, 1, 1, 2, 8))):
        if changed:
            changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
    return bytes(changed)


def set_bytes(random: Random, data: bytes) -> bytes:
    """Put other bytes in the place of a few."""
    changed = bytearray(data)
    start = random.randrange(len(changed) + 1)
    for place in range(start, min(start + random.choice((1, 1, 2, 4, 16)), len(changed))):
        changed[place] = random.choice((0, 255, 128, random.randrange(256)))
    return bytes(changed)


def truncate(random: Random, data: bytes) -> bytes:
    """Leave out the end."""
    return data[: random.randrange(len(data) + 1)]


def cut_out(random: Random, data: bytes) -> bytes:
    """Leave out a piece."""
    start = random.randrange(len(data) + 1)
    return data[:start] + data[start + random.choice((1, 2, 4, 8, 64)) :]


def repeat(random: Random, data: bytes) -> bytes:
    """Put a piece where another one is, once or often."""
    start, place = random.randrange(len(data) + 1), random.randrange(len(data) + 1)
    piece = data[start : start + random.choice((1, 4, 8, 40, 200))]
    return data[:place] + piece * random.choice((1, 1, 2, 50)) + data[place:]


def set_number(random: Random, data: bytes) -> bytes:
    """Write a telling number over four or eight bytes, most often where fields are aligned."""
    size = random.choice((4, 8, 8))
    if len(data) < size:
        return data
    place = random.randrange(len(data) - size + 1)
    place -= place % random.choice((1, 4, 8))
    value = (random.choice(NUMBERS) % 2 ** (8 * size)).to_bytes(size, "little")
    return data[:place] + value + data[place + size :]


def change_number(random: Random, data: bytes) -> bytes:
    """Put a telling number or word in the place of one in a text."""
    found = list(re.finditer(rb"-?\d+", data[:4096]))
    if not found:
        return data
    match = random.choice(found[: random.choice((3, len(found)))])
    value = random.choice(
        (str(random.choice(NUMBERS)).encode(), random.choice(WORDS), str(random.randrange(9)).encode())
    )
    return data[: match.start()] + value + data[match.end() :]


def insert_word(random: Random, data: bytes) -> bytes:
    """Insert a telling word."""
    place = random.randrange(len(data) + 1)
    return data[:place] + random.choice(WORDS) + data[place:]


def change_lines(random: Random, data: bytes) -> bytes:
    """Swap, double, empty, join or leave out lines."""
    lines = data.split(b"\n")
    here, there = random.randrange(len(lines)), random.randrange(len(lines))
    match random.randrange(5):
        case 0:
            lines[here], lines[there] = lines[there], lines[here]
        case 1:
            lines.insert(there, lines[here])
        case 2:
            lines[here] = b""
        case 3:
            lines[here : here + 2] = [b" ".join(lines[here : here + 2])]
        case _:
            del lines[here]
    return b"\n".join(lines)


def change_ends(random: Random, data: bytes) -> bytes:
    """Change the line ends, or what separates columns."""
    old, new = random.choice(
        ((b"\n", b"\r\n"), (b"\n", b"\r"), (b" ", b"\t"), (b" ", b","), (b",", b" "), (b" ", b"  "))
    )
    return data.replace(old, new, random.choice((1, -1)))


def mark_order(random: Random, data: bytes) -> bytes:
    """Begin with a byte order mark, or write UTF-16."""
    return b"\xef\xbb\xbf" + data if random.random() < 0.8 else data.decode("latin-1").encode("utf-16")


def lengthen(random: Random, data: bytes) -> bytes:
    """Put in a very long word, run of blanks, or line of numbers."""
    place = random.randrange(len(data) + 1)
    piece = random.choice((b"7", b"x", b" ", b"1 ", b"#", b"1 2\n", b"\0", b'"'))
    return (data[:place] + piece * random.choice((100, 5000, 40_000)) + data[place:])[:_LONGEST]


BINARY = (flip_bits, flip_bits, set_bytes, truncate, cut_out, repeat, set_number, set_number, set_number)
TEXT = (flip_bits, truncate, cut_out, repeat, change_number, change_number, change_number, change_number, insert_word,
        insert_word, insert_word, change_lines, change_lines, change_ends, mark_order)  # fmt: skip


def spoil(random: Random, data: bytes, changes: Sequence[Change], others: Sequence[bytes] = ()) -> bytes:
    """Make one to five changes, now and then a splice with another good file or something very long."""
    for _ in range(random.choice((1, 1, 1, 2, 2, 3, 5))):
        data = random.choice(changes)(random, data)
    chance = random.random()
    if others and chance < 0.05:
        other = random.choice(others)
        data = data[: random.randrange(len(data) + 1)] + other[random.randrange(len(other) + 1) :]
    elif changes is TEXT and chance > 0.99:
        data = lengthen(random, data)
    return data


def odd_value(random: Random) -> Any:
    """Return a value that hardly anything expects."""
    return random.choice(
        (None, True, False, "", "x", "\n", "\0", "a\u2028b", "../../etc/passwd", "/etc/passwd", [], {}, [[]], [None],
         {"": 0}, 1.5, -0.5, 1e308, float("nan"), float("inf"), float("-inf"), 10**400, "9" * 5000, "<script>", "%{x}",
         *NUMBERS)
    )  # fmt: skip


def change_tree(random: Random, tree: Any) -> Any:
    """Change one value somewhere in nested dictionaries and lists, in place; return the root."""
    places = list(_places(tree))
    if not places or random.random() < 0.01:
        return odd_value(random)
    holder, key = random.choice(places)
    match random.randrange(6):
        case 0 | 1 | 2:
            holder[key] = odd_value(random)
        case 3:
            del holder[key]
        case 4:
            other, name = random.choice(places)
            holder[key] = json.loads(json.dumps(other.get(name) if isinstance(other, dict) else other[name]))
        case _ if isinstance(holder, dict):
            holder[random.choice((key + "x", "", "format", "\u2028"))] = holder[key]
        case _:
            holder.extend(holder[key : key + 1] * random.choice((1, 2, 100)))
    return tree


def _places(tree: Any) -> Any:
    """Yield every place of a value as its holder and key."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in list(items):
        yield tree, key
        yield from _places(value)


def write_json(random: Random, tree: Any) -> bytes:
    """Return a tree as JSON, now and then with a name twice or nested so deep that a parser may give up."""
    text = json.dumps(tree)
    names = list(re.finditer(r'"(\w+)": ', text))
    chance = random.random()
    if names and chance < 0.05:
        match = random.choice(names)
        text = text[: match.start()] + match[0] + json.dumps(odd_value(random)) + ", " + text[match.start() :]
    elif names and chance < 0.06:
        match = random.choice(names)
        text = text[: match.end()] + "[" * 100_000 + "]" * 100_000 + "," + text[match.start() :]
    return text.encode("utf-8", "surrogatepass")
