# SPDX-License-Identifier: Apache-2.0
"""How shoal's docstrings are read: types are in the signatures, so what follows a parameter's colon describes it."""

import re
from typing import Any

from griffe import Extension, Object

_SECTION = re.compile(r"^(?:Parameters|Attributes)\n-+\n(?:.+\n?)*", re.MULTILINE)
_ENTRY = re.compile(r"^(\*{0,2}\w[\w, ]*?) : (\S.*(?:\n +.*)*)", re.MULTILINE)


class Descriptions(Extension):
    """Give the words behind a parameter's colon to its description."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Rewrite the sections of one docstring."""
        if obj.docstring is not None:
            obj.docstring.value = _SECTION.sub(_describe, obj.docstring.value)


def _describe(section: re.Match[str]) -> str:
    return _ENTRY.sub(_entries, section[0])


def _entries(entry: re.Match[str]) -> str:
    """Return an entry for each of the names, since each has a default of its own."""
    return "\n".join(f"{name}\n    {entry[2]}" for name in entry[1].split(", "))
