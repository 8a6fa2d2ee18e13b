# SPDX-License-Identifier: Apache-2.0
"""The kinds of files that shoal reads: good ones, how they are spoilt, and the code that reads them.

Containers that are guarded by a checksum get a right one most of the time after they were spoilt, as whoever means harm
would give them; so what stands behind the checksum is reached.
"""

from __future__ import annotations

import bz2
import contextlib
import functools
import gzip
import io
import json
import os
import struct
import warnings
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

import shoal
from fuzzing import seeds
from fuzzing.mutations import BINARY, TEXT, change_number, change_tree, set_number, spoil, write_json
from fuzzing.properties import BrokenError, check_graph, require
from fuzzing.seeds import Input

#: What a caller may ask for; each input is read with one of them.
OPTIONS: tuple[dict[str, Any], ...] = (
    {}, {}, {}, {}, {"directed": True}, {"directed": False, "deduplicate": True},
    {"weighted": True, "drop_self_loops": True}, {"weighted": False},
    {"num_vertices": 4}, {"vertex_dtype": "int64"}, {"edge_dtype": "int32"},
    {"src_column": 1, "dst_column": 0}, {"src_column": "source", "dst_column": "target", "weight_column": "w"},
)  # fmt: skip


@dataclass(frozen=True)
class Target:
    """A kind of file.

    Parameters
    ----------
    seeds : good inputs
    mutate : spoils an input
    read : reads the files in a folder and checks what comes of them; raises what the reader raises
    share : of all executions, the higher the cheaper one is and the more there is to find
    num_options : how many ways there are to read an input
    """

    name: str
    seeds: Callable[[], list[Input]]
    mutate: Callable[[Random, Input, list[Input]], Input]
    read: Callable[[str, list[str], int], None]
    share: int
    num_options: int = 1


def _change_one(change: Callable[[Random, bytes, list[bytes]], bytes]) -> Callable[[Random, Input, list[Input]], Input]:
    """Return a mutation of an input of one file."""

    def mutate(random: Random, files: Input, pool: list[Input]) -> Input:
        ((name, content),) = files.items()
        return {name: change(random, content, [next(iter(other.values())) for other in pool])}

    return mutate


_change_text = _change_one(lambda random, content, others: spoil(random, content, TEXT, others))
_change_bytes = _change_one(lambda random, content, others: spoil(random, content, BINARY, others))


def _read_graph(folder: str, names: list[str], option: int) -> None:
    """Read a graph from the one file in a folder."""
    check_graph(shoal.read(os.path.join(folder, names[0]), **OPTIONS[option]))


# Compressed text

_SQUEEZERS: dict[str, tuple[Callable[[bytes], bytes], Callable[[bytes], bytes]]] = {
    ".gz": (gzip.decompress, lambda text: gzip.compress(text, 1)),
    ".bz2": (bz2.decompress, lambda text: bz2.compress(text, 1)),
    ".zst": (
        lambda content: pa.input_stream(pa.py_buffer(content), compression="zstd").read(),
        lambda text: pa.compress(text, "zstd", asbytes=True),
    ),
}


def _change_compressed(random: Random, files: Input, pool: list[Input]) -> Input:
    ((name, content),) = files.items()
    expand, squeeze = _SQUEEZERS[os.path.splitext(name)[1]]
    if random.random() < 0.5:
        return {name: spoil(random, content, BINARY)}
    with contextlib.suppress(Exception):  # a regression among the seeds may be no whole stream
        content = squeeze(spoil(random, expand(content), TEXT))
    return {name: content}


# shoal's own format

_HEADER, _HEADER_BYTES, _CRC_AT = struct.Struct("<8sIIQQQII"), 512, 44
_TYPE_NAMES = (b"<i4", b"<i8", b"<f4", b"<f8", b"|u1", b"|O", b"<u8", b">i4", b"<U9", b"|V8", b"\xff\xfe", b"")
_ARRAY_NAMES = (b"indptr", b"indices", b"weights", b"labels", b"label_offsets", b"label_bytes", b"../x", b"\xff", b"")


def _change_native(random: Random, files: Input, pool: list[Input]) -> Input:
    ((name, content),) = files.items()
    if random.random() < 0.3:
        return {name: spoil(random, content, BINARY, [next(iter(other.values())) for other in pool])}
    for _ in range(random.choice((1, 1, 2, 3))):
        content = random.choice((_change_header, _change_entry, _change_arrays, _change_arrays))(random, content)
    return {name: _sealed(random, content) if random.random() < 0.9 else content}


def _change_header(random: Random, content: bytes) -> bytes:
    place = random.choice((8, 12, 16, 24, 32, 40))
    size = 8 if place in (16, 24, 32) else 4
    value = int.from_bytes(content[place : place + size], "little") + random.choice((-1, 1, 2**31, 2**32, 2**62, 2**63))
    if random.random() < 0.3:
        return set_number(random, content[:_HEADER_BYTES]) + content[_HEADER_BYTES:]
    return content[:place] + (value % 2 ** (8 * size)).to_bytes(size, "little") + content[place + size :]


def _change_entry(random: Random, content: bytes) -> bytes:
    place = _HEADER.size + 40 * random.randrange(5)
    part, size = random.choice(((0, 16), (16, 8), (24, 8), (32, 8)))
    value = {
        0: lambda: random.choice(_ARRAY_NAMES).ljust(16, b"\0"),
        16: lambda: random.choice(_TYPE_NAMES).ljust(8, b"\0"),
        24: lambda: struct.pack("<Q", random.choice((0, 8, 64, 512, 576, 2**31, 2**32, 2**63 - 64, 2**64 - 64))),
        32: lambda: struct.pack("<Q", random.choice((0, 1, 4, 8, 2**31, 2**32, 2**63, 2**64 - 1, 2**64 - 576))),
    }[part]()
    return content[: place + part] + value + content[place + part + size :]


def _change_arrays(random: Random, content: bytes) -> bytes:
    return content[:_HEADER_BYTES] + spoil(random, content[_HEADER_BYTES:], (*BINARY, set_number, set_number))


def _sealed(random: Random, content: bytes) -> bytes:
    """Return a file whose header has a right checksum and, most of the time, the right size."""
    start = content[:_HEADER_BYTES].ljust(_HEADER_BYTES, b"\0")
    if random.random() < 0.9:
        start = start[:32] + struct.pack("<Q", max(len(content), _HEADER_BYTES)) + start[40:]
    start = start[:_CRC_AT] + bytes(4) + start[_HEADER.size :]
    checksum = struct.pack("<I", zlib.crc32(start))
    return start[:_CRC_AT] + checksum + start[_HEADER.size :] + content[_HEADER_BYTES:]


def _read_mapped(folder: str, names: list[str], option: int) -> None:
    check_graph(shoal.read(os.path.join(folder, names[0]), **OPTIONS[option]), is_mapped=True)


def _read_whole(folder: str, names: list[str], option: int) -> None:
    check_graph(shoal.read(os.path.join(folder, names[0]), mmap=False, **OPTIONS[option]))


# NumPy archives

_SHAPES = (
    "(0,)", "(1,)", "(2,)", "(3,)", "()", "(-1,)", "(2**58,)", "(288230376151711744,)", "(1000000000000000,)", "(2, 3)",
    "(4294967296, 4294967296)", "(0, 4294967296)", "(9999999999,)", "(True,)", "('x',)", "(1.5,)", "3", "((1,),)",
)  # fmt: skip
_DESCRIPTIONS = (
    "'<i4'", "'<i8'", "'<u8'", "'>i8'", "'<f8'", "'<f2'", "'|O'", "'|b1'", "'<U5'", "'<U99999999'", "'|V8'", "'<M8[s]'",
    "'<c16'", "[('a', '<i4'), ('b', '|O')]", "None", "'\\xff'", "__import__('os').getpid()", "'|S0'",
)  # fmt: skip


def _change_npz(random: Random, files: Input, pool: list[Input]) -> Input:
    ((name, content),) = files.items()
    if random.random() < 0.3:
        return {name: spoil(random, content, BINARY)}
    members = {}
    with contextlib.suppress(Exception), zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {info.filename: archive.read(info.filename) for info in archive.infolist()}
    if not members:
        return {name: spoil(random, content, BINARY)}
    for _ in range(random.choice((1, 1, 2))):
        key = random.choice(list(members))
        members[key] = random.choice((_change_member, _change_member, _spoil_member))(random, members[key])
    if random.random() < 0.1:
        members[random.choice(("../x.npy", "/etc/passwd", "weights.npy", "labels.npy", "indptr", "x"))] = members[key]
    if random.random() < 0.05:
        del members[key]
    return {name: _zipped(random, members)}


def _spoil_member(random: Random, content: bytes) -> bytes:
    return (
        content[:80] + spoil(random, content[80:], BINARY) if random.random() < 0.7 else spoil(random, content, BINARY)
    )


def _change_member(random: Random, content: bytes) -> bytes:
    """Change the header of an array, which is the text of a Python dictionary."""
    header, start = content[10:128].decode("latin-1").strip(), 128
    if random.random() < 0.5:
        before, _, _ = header.partition("'shape': ")
        header = f"{before}'shape': {random.choice(_SHAPES)}, }}"
    else:
        _, _, after = header.partition(", 'fortran_order'")
        header = f"{{'descr': {random.choice(_DESCRIPTIONS)}, 'fortran_order'{after}"
    if random.random() < 0.05:
        header = random.choice(("{" * 9000, "[" * 5000, "1" * 9999, header * 3, "{}", "{'descr': '<i4'}"))
    encoded = header.encode("latin-1").ljust(max(117, len(header))) + b"\n"
    version = random.choice((b"\1\0", b"\1\0", b"\2\0", b"\4\0"))
    return b"\x93NUMPY" + version + struct.pack("<H", len(encoded) % 65536) + encoded + content[start:]


def _zipped(random: Random, members: dict[str, bytes]) -> bytes:
    target = io.BytesIO()
    method = random.choice(
        (zipfile.ZIP_STORED, zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
    )
    with warnings.catch_warnings(), zipfile.ZipFile(target, "w", method) as archive:
        warnings.simplefilter("ignore")  # a name that is there twice
        for name, content in members.items():
            archive.writestr(name, content)
            if random.random() < 0.02:
                archive.writestr(name, content)
    return target.getvalue()


# Folders of shards

_MANIFEST = "manifest.json"


def _change_shards(random: Random, files: Input, pool: list[Input]) -> Input:
    changed = dict(files)
    chance = random.random()
    if chance < 0.6:
        with contextlib.suppress(ValueError, RecursionError, AttributeError):
            changed[_MANIFEST] = _changed_manifest(random, changed[_MANIFEST])
    elif chance < 0.65:
        changed[_MANIFEST] = spoil(random, changed[_MANIFEST], TEXT)
    else:
        changed = _changed_part(random, changed)
    if random.random() < 0.02:
        del changed[random.choice(list(changed))]
    return changed


def _changed_manifest(random: Random, content: bytes) -> bytes:
    tree = json.loads(content)
    for _ in range(random.choice((1, 1, 2, 3))):
        tree = change_tree(random, tree)
    return _sealed_manifest(random, tree)


def _sealed_manifest(random: Random, tree: Any) -> bytes:
    if isinstance(tree, dict) and random.random() < 0.95:
        tree.pop("checksum", None)
        tree["checksum"] = zlib.crc32(json.dumps(tree, sort_keys=True).encode())
    return write_json(random, tree)


def _changed_part(random: Random, files: Input) -> Input:
    """Spoil the file of a device, and say of it in the manifest what a checksum and a size would say."""
    name = random.choice([name for name in files if name != _MANIFEST] or [_MANIFEST])
    content = files[name]
    content = (
        content[:64] + spoil(random, content[64:], BINARY) if random.random() < 0.8 else spoil(random, content, BINARY)
    )
    changed = files | {name: content}
    with contextlib.suppress(ValueError, KeyError, TypeError, RecursionError):
        tree = json.loads(files[_MANIFEST])
        for entry in tree["files"]:
            if entry["name"] == name:
                entry |= {"bytes": len(content), "crc32": zlib.crc32(content)}
        changed[_MANIFEST] = _sealed_manifest(random, tree)
    return changed


def _read_shards(folder: str, names: list[str], option: int) -> None:
    """Read the parts, and look at them as a placement does."""
    from shoal.io.shard_checks import check_edges
    from shoal.io.shards import read_shards

    manifest, parts = read_shards(folder, mmap=option == 0)
    require(len(parts) == manifest.num_devices, "there is a part for each device")
    for part in parts:
        check_edges(folder, part)  # as a placement of mapped parts does
        _check_edges(part.out_edges, part.num_local)
        if part.in_edges is not None:
            _check_edges(part.in_edges, part.num_local)
        ids = part.owned_ids
        require(len(ids) == 0 or 0 <= ids.min() <= ids.max() < manifest.num_vertices, "owned vertices are vertices")
        require(len(part.owner) == part.num_local, "every vertex has an owner")
        require(len(part.copy_here) == len(part.copy_there) == part.copy_indptr[-1], "copies are pairs")
        part.edge_ids(), part.in_edge_ids(), part.copies()


def _check_edges(edges: Any, num_local: int) -> None:
    require(len(edges.indptr) == num_local + 1, "there is a row for each vertex")
    require(edges.indptr[0] == 0 and edges.indptr[-1] == len(edges.indices), "offsets run to the number of edges")
    require(np.all(np.diff(edges.indptr) >= 0), "offsets do not descend")
    require(edges.weights is None or len(edges.weights) == len(edges.indices), "every edge has a weight")
    inside = len(edges.indices) == 0 or 0 <= edges.indices.min() <= edges.indices.max() < num_local
    require(inside, "neighbours are vertices of the device")


# Traces, models and settings


def _change_json(random: Random, files: Input, pool: list[Input]) -> Input:
    ((name, content),) = files.items()
    if not name.endswith(".json") or random.random() < 0.2:
        return {name: spoil(random, content, TEXT)}
    try:
        tree = json.loads(content)
        for _ in range(random.choice((1, 1, 1, 2, 3))):
            tree = change_tree(random, tree)
        return {name: write_json(random, tree)}
    except (ValueError, RecursionError):
        return {name: spoil(random, content, TEXT)}


def _read_trace(folder: str, names: list[str], option: int) -> None:
    """Do what ``shoal report`` and ``shoal compare`` do."""
    from shoal.report.comparison import compare_traces
    from shoal.report.page import make_page
    from shoal.report.perfetto import write_perfetto
    from shoal.report.tables import totals_of
    from shoal.report.trace import read_trace

    trace = read_trace(os.path.join(folder, names[0]))
    totals_of(trace)
    if option == 0:
        make_page(trace)
    elif option == 1:
        write_perfetto(trace, os.path.join(folder, "timeline.perfetto.json"))
    else:
        found = compare_traces(trace, trace, ("this", "that"))
        json.dumps(found.to_dict())
        [row.in_words() for row in found.rows()]
        if option == 3:
            found.make_page()


def _read_topology(folder: str, names: list[str], option: int) -> None:
    from shoal.model import load_topology

    topology = load_topology(os.path.join(folder, names[0]))
    matrix = np.array(topology.bandwidth)
    require(matrix.shape == (topology.num_devices,) * 2 and np.isfinite(matrix).all(), "bandwidths are a square matrix")
    require(topology.seconds_per_byte >= 0 and topology.seconds_per_superstep() >= 0, "times are not negative")


def _read_cost(folder: str, names: list[str], option: int) -> None:
    from shoal.model.cost_files import load_cost

    cost = load_cost(os.path.join(folder, names[0]))
    require(cost.seconds_per_edge([30, 30, 5000, 5000, 0.7, 0.9]) > 0, "an edge takes time")


@functools.cache
def _commands() -> tuple[Any, Any]:
    """Return the command line's root, and what stands for it while a command is parsed."""
    import typer

    from shoal.cli import app

    root = typer.main.get_command(app)
    return root, root.context_class(root, info_name="shoal")


def _read_settings(folder: str, names: list[str], option: int) -> None:
    """Make a file of settings the defaults of a command, and let it parse them."""
    from shoal.cli import _UsageError
    from shoal.commands import settings

    root, above = _commands()
    command = (root.commands["bfs"], root.commands["pagerank"], root.commands["generate"].commands["rmat"])[option]
    if option == 2:
        above = root.commands["generate"].context_class(root.commands["generate"], parent=above, info_name="generate")
    context = command.context_class(command, parent=above, info_name=command.name)
    settings.apply(context, os.path.join(folder, names[0]))
    try:
        with context:
            command.parse_args(context, ["g.shoal", *(("--source", "0"), (), ("--scale", "4"))[option]])
    except _UsageError as error:
        raise shoal.errors.ArgumentError(settings.explain_usage(error.format_message(), error)) from error


def _read_result(folder: str, names: list[str], option: int) -> None:
    from shoal.commands.result_files import Column, read_edges, read_result

    graph = (_PLAIN_GRAPH, _NAMED_GRAPH)[option % 2]
    path = os.path.join(folder, names[0])
    if option == 2:
        read_edges(path, graph, [Column("distance"), Column("parent", is_optional=True)])
        return
    found = read_result(path, graph, [Column("distance", is_fraction=True), Column("parent", is_optional=True)])
    require(all(len(values) == graph.num_vertices for values in found.values()), "every vertex has a value")


_PLAIN_GRAPH = shoal.Graph.from_edges([0, 1, 2, 0], [1, 2, 3, 4], num_vertices=6)
_NAMED_GRAPH = shoal.Graph.from_edges([0, 1, 2, 0], [1, 2, 3, 4], num_vertices=6, labels=list("abcdef"))

_NUMBERS_FIRST = _change_one(
    lambda random, content, others: (
        change_number(random, content) if random.random() < 0.3 else spoil(random, content, TEXT, others)
    )
)

TARGETS = {
    target.name: target
    for target in (
        Target("edge list", seeds.edge_lists, _change_text, _read_graph, 12, len(OPTIONS)),
        Target("compressed text", seeds.compressed, _change_compressed, _read_graph, 5, 8),
        Target("Matrix Market", seeds.matrices, _NUMBERS_FIRST, _read_graph, 10, 10),
        Target("DIMACS", seeds.dimacs, _NUMBERS_FIRST, _read_graph, 10, 10),
        Target("METIS", seeds.metis, _NUMBERS_FIRST, _read_graph, 10, 10),
        Target("GAP", seeds.gap, _change_bytes, _read_graph, 10, 10),
        Target("Parquet", seeds.parquet, _change_bytes, _read_graph, 8, len(OPTIONS)),
        Target("Arrow", seeds.arrow, _change_bytes, _read_graph, 7, len(OPTIONS)),
        Target("npz", seeds.npz, _change_npz, _read_graph, 5, 10),
        Target("shoal, mapped", seeds.native, _change_native, _read_mapped, 10, 4),
        Target("shoal, read", seeds.native, _change_native, _read_whole, 8, 10),
        Target("shards", seeds.shards, _change_shards, _read_shards, 7, 2),
        Target("trace", seeds.traces, _change_json, _read_trace, 1, 4),
        Target("topology", seeds.topologies, _change_json, _read_topology, 8),
        Target("cost model", seeds.costs, _change_json, _read_cost, 7),
        Target("settings", seeds.settings, _change_text, _read_settings, 2, 3),
        Target("result", seeds.results, _change_bytes, _read_result, 8, 3),
    )
}

__all__ = ["OPTIONS", "TARGETS", "BrokenError", "Target"]
