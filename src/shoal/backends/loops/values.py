# SPDX-License-Identifier: Apache-2.0
"""Values: the small functions that carry some fields' values between devices, and know their types.

Backends call them from their own kernels: to put a vertex's values into the mail, to combine mail with what is there,
to empty a copy.  An array is a parameter of each, by its name in generated code.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any

from shoal.backends.loops.specialize import RuleCall, float_text
from shoal.backends.loops.writer import PhaseWriter, earlier_name, field_name, indent, mail_name, write_function
from shoal.exchanges import combining_rule
from shoal.program import Combiner, Vertex

#: By combiner, what merges a value; ``{kind}`` is atomic or plain: a device of one thread needs no atomics.
_MERGE = {
    "minimum": "if {kind}_min({field}, {at}, {mail}): changed = True",
    "maximum": "if {kind}_max({field}, {at}, {mail}): changed = True",
    "add": "{kind}_add({field}, {at}, {mail}); changed = True",
    "bit_or": "if {kind}_or({field}, {at}, {mail}) & {mail} != {mail}: changed = True",
    "first": "if {field}[{at}] == {none} and {exchange}({field}, {at}, {none}, {mail}): changed = True",
}
_KINDS = ({"kind": "plain", "exchange": "plain_compare_exchange"}, {"kind": "atomic", "exchange": "compare_exchange"})


def declared_vertex(writer: PhaseWriter, name: str) -> Vertex:
    """Return the declaration of a field of the vertices."""
    declared = writer.fields[name]
    assert isinstance(declared, Vertex)
    return declared


class Values:
    """The values of some fields on their way between devices; writes the functions that know their types."""

    is_mailed = True  # or read where their owners have them

    def __init__(self, writer: PhaseWriter, names: list[str], suffix: str) -> None:
        self.writer, self.names, self.suffix = writer, names, suffix
        if self.is_mailed:
            writer.mailed.update(dict.fromkeys(names))

    @property
    def item_bytes(self) -> int:
        """Bytes of the values of one vertex."""
        return sum(self.writer.dtypes[n].itemsize * (declared_vertex(self.writer, n).width or 1) for n in self.names)

    def _function(self, kind: str, parameters: tuple[str, ...], arrays: list[str], body: list[str]) -> RuleCall:
        name = f"{kind}_{self.suffix}"
        self.writer.parts.append(write_function(name, (*parameters, *arrays), body))
        return RuleCall(name, (*parameters, *arrays), {array: array for array in arrays})

    def _each(self, statement: str, names: Iterable[str] | None = None, **values: Any) -> list[str]:
        """Return a statement for each element of each field; ``{at}`` is its index, ``{mail_at}`` that in the mail."""
        lines = []
        for name in self.names if names is None else names:
            width = declared_vertex(self.writer, name).width
            at, slot = ("vertex", "slot") if width is None else ("(vertex, k)", "(slot, k)")
            known = {"field": field_name(name), "mail_array": mail_name(name), "at": at, "slot": slot,
                     "earlier": earlier_name(name),
                     **{key: value(name) if callable(value) else value for key, value in values.items()}}  # fmt: skip
            line = statement.format(**known)
            lines += [line] if width is None else [f"for k in range({width}):", f"    {line}"]
        return lines

    def _arrays(self, *kinds: Any) -> list[str]:
        return [kind(name) for name in self.names for kind in kinds]

    def write_pack(self, names: Iterable[str] | None = None, kind: str = "") -> RuleCall:
        """Write PACK: a vertex's values, or those of some fields, into the mail."""
        body = self._each("{mail_array}[{slot}] = {field}[{at}]", names)
        return self._function(f"pack{kind}", ("slot", "vertex"), self._arrays(mail_name, field_name), body)

    def write_take(self) -> RuleCall:
        """Write TAKE: mail in the place of a vertex's values."""
        body = self._each("{field}[{at}] = {mail_array}[{slot}]")
        return self._function("take", ("slot", "vertex"), self._arrays(mail_name, field_name), body)

    def write_reset(self, resets: set[str]) -> RuleCall:
        """Write RESET: the value that changes nothing, for fields whose copies are emptied."""
        names = [name for name in self.names if name in resets]
        body = self._each("{field}[{at}] = {none}", names, none=self._identity)
        return self._function("reset", ("vertex",), self._arrays(field_name), body)

    def write_merge(self, names: Iterable[str] | None = None, kind: str = "") -> RuleCall:
        """Write MERGE: each field, or some, by its combiner; True if any changed."""
        body = [f"changed = {not self.names}"]  # without values there are only vertices that join
        arrays = self._arrays(mail_name, field_name)
        for name in self.names if names is None else names:
            rule = combining_rule(declared_vertex(self.writer, name))
            if rule is None:
                combiner = declared_vertex(self.writer, name).combine
                assert isinstance(combiner, Combiner)
                text = _MERGE[combiner.name].replace("{mail}", "{mail_array}[{slot}]")
                alone, shared = (self._each(text, [name], none=self._identity, **kind) for kind in _KINDS)
                body += ["if is_alone:", *indent(alone), "else:", *indent(shared)]
            else:
                call = self.writer.call(rule, is_serial=True)
                arrays += self.writer.state(rule)
                value = ast.parse(f"{mail_name(name)}[slot]", mode="eval").body
                provided = {"vertex": ast.Name("vertex"), "value": value}
                body.append(f"if {ast.unparse(call.to_ast(provided))}: changed = True")
        arrays = list(dict.fromkeys(arrays))
        return self._function(f"merge{kind}", ("slot", "vertex", "is_alone"), arrays, [*body, "return changed"])

    def write_differs(self) -> RuleCall:
        """Write DIFFERS: whether a vertex's values are other than they were noted."""
        tests = " or ".join(f"{field_name(n)}[vertex] != {earlier_name(n)}[vertex]" for n in self.names)
        return self._function("differs", ("vertex",), self._arrays(field_name, earlier_name), [f"return {tests}"])

    def write_remember(self) -> RuleCall:
        """Write REMEMBER: note a vertex's values."""
        body = self._each("{earlier}[{at}] = {field}[{at}]")
        return self._function("remember", ("vertex",), self._arrays(field_name, earlier_name), body)

    def _identity(self, name: str) -> str:
        """Return the text of the value that changes nothing."""
        declared, dtype = declared_vertex(self.writer, name), self.writer.dtypes[name]
        assert isinstance(declared.combine, Combiner)
        value = declared.combine.identity(dtype, declared.fill)
        return f"np.{dtype.name}({float_text(value) if dtype.kind == 'f' else value.item()})"
