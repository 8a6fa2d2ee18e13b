# SPDX-License-Identifier: Apache-2.0
"""Any bytes make a graph or an error of one line, never anything else; numbers are read as Python reads them."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.errors import ShoalError
from shoal.graph import Graph
from shoal.io import read, write

pytestmark = pytest.mark.host_only("about files: nothing is run")

ALPHABET = "0123456789   \t\n\n\n\r,;#%\"'.-+eanpcsptw:"
HEADERS = {
    ".txt": ["", "# Directed graph\n", "# Vertex ids: 0 to 5\n"],
    ".csv": ["", "src,dst\n", "src,dst,weight\n"],
    ".mtx": ["", "%%MatrixMarket matrix coordinate real general\n5 5 2\n", "%%MatrixMarket matrix coordinate pattern"],
    ".gr": ["", "p sp 5 2\n", "p tw 5 2\n", "a "],
    ".graph": ["", "3 2\n", "3 2 11 2\n", "3 2 111\n"],
}
FEW = 100


def read_or_refuse(path, **options):
    message = None
    try:
        graph = read(path, **options)
    except ShoalError as error:
        message = str(error)
    if message is not None:
        assert "\n" not in message
        assert str(path) in message
    else:
        assert graph.indptr[-1] == graph.num_edges
        assert graph.num_edges == 0 or (graph.indices.min() >= 0 and graph.indices.max() < graph.num_vertices)


@pytest.mark.parametrize("suffix", HEADERS)
@given(data=st.data())
def test_any_text(suffix, data):
    text = data.draw(st.sampled_from(HEADERS[suffix])) + data.draw(st.text(ALPHABET, max_size=60))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"g{suffix}")
        path.write_bytes(text.encode())
        read_or_refuse(path)
        read_or_refuse(path, num_vertices=3)


@pytest.mark.parametrize("suffix", [".sg", ".wsg", ".npz", ".parquet", ".arrow", ".shoal"])
def test_any_damage(tmp_path, suffix):
    path = tmp_path / f"g{suffix}"
    write(Graph.from_edges([0, 1, 2, 0], [1, 2, 3, 3], None if suffix == ".sg" else [1, 2, 3, 4]), path)
    content = path.read_bytes()
    generator = np.random.default_rng(3)
    for _ in range(FEW):
        damaged = bytearray(content)
        for _ in range(generator.integers(1, 4)):
            damaged[generator.integers(len(damaged))] = generator.integers(256)
        path.write_bytes(damaged)
        read_or_refuse(path, mmap=False)


@given(st.lists(st.floats(allow_nan=False), min_size=1, max_size=20))
def test_decimals_as_python_writes_them(weights):
    check_numbers([repr(weight) for weight in weights])


@given(
    st.lists(
        st.from_regex(r"[+-]?([0-9]{1,20}\.[0-9]{0,20}|\.[0-9]{1,20})([eE][+-]?[0-9]{1,2})?", fullmatch=True),
        min_size=1,
    )
)
def test_decimals_in_any_form(tokens):
    check_numbers(tokens)


def check_numbers(tokens):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "g.wel")
        path.write_text("".join(f"{i} {i + 1} {token}\n" for i, token in enumerate(tokens)))
        assert read(path, directed=True).weights.tolist() == [float(token) for token in tokens]


@given(st.lists(st.tuples(st.integers(0, 10**18 - 1), st.integers(0, 3)), min_size=1, max_size=20))
def test_whole_numbers_of_any_length(rows):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "g.txt")
        path.write_text("".join(f"{u} {v}\n" for u, v in rows))
        graph = read(path, directed=True)
    labels = sorted({vertex for row in rows for vertex in row})
    names = labels if graph.labels is None else graph.labels.tolist()
    assert names == labels
    src = np.repeat(np.arange(graph.num_vertices), graph.degree)
    found = sorted((names[u], names[v]) for u, v in zip(src, graph.indices, strict=True))
    assert found == sorted(rows)
