# SPDX-License-Identifier: Apache-2.0
"""JSON and TOML: what both parsers would take and nobody behind them expects is one line that names the file."""

import pytest

from shoal.errors import FileFormatError
from shoal.io.trees import read_json, read_toml

pytestmark = pytest.mark.host_only("about files: nothing is run")

REFUSED = {
    "name twice": (read_json, '{"a": 1, "b": {"c": 1, "c": 2}}', "the name 'c' is there twice"),
    "name twice in TOML": (read_toml, "a = 1\na = 2", "is not TOML"),
    "more than 64 bits": (read_json, str(2**64), "65 bits does not fit 64 bits"),
    "less than 64 bits": (read_json, str(-(2**63) - 1), "64 bits does not fit 64 bits"),
    "thousands of digits": (read_json, "9" * 5000, "99999999999999999999... does not fit"),
    "thousands of digits in TOML": (read_toml, "a = " + "9" * 5000, "is not TOML"),
    "hexadecimal": (read_toml, "a = [1, {b = 0x" + "f" * 5000 + "}]", "20000 bits does not fit 64 bits"),
    "deep": (read_json, "[" * 100_000, "nested too deep"),
    "deep TOML": (read_toml, "a = " + "[" * 100_000, "nested too deep"),
    "no text": (read_json, b"\xff\xfe", "is not JSON"),
    "no text in TOML": (read_toml, b"\xff\xfe", "is not TOML"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(tmp_path, case):
    read, text, words = REFUSED[case]
    path = tmp_path / "values"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(FileFormatError) as caught:
        read(path)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert words in message
    assert message.isprintable()
    assert len(message) < 1100


def test_what_is_read(tmp_path):
    path = tmp_path / "values"
    path.write_text(f"[{2**64 - 1}, {-(2**63)}, 1.5, null]")
    assert read_json(path) == [2**64 - 1, -(2**63), 1.5, None]
    path.write_text("[a]\nb = 0xff")
    assert read_toml(path) == {"a": {"b": 255}}
