# SPDX-License-Identifier: Apache-2.0
"""Write the exchanges between devices: structures over the values they carry, and the statements of the rounds.

What is exchanged, and when, is as on a CPU (see ``backends/cpu/generator/exchange.py``).
"""

from __future__ import annotations

from shoal.backends.cuda.exports import Argument, c_type
from shoal.backends.cuda.generator.writer import INT32, INT64, KernelWriter, meeting, method
from shoal.backends.loops.specialize import GLOBAL_IDS, RuleCall
from shoal.backends.loops.values import Values, declared_vertex
from shoal.backends.loops.writer import earlier_name, field_name, mail_name
from shoal.exchanges import Exchange, combining_rule
from shoal.operators import Operator

ANY_LENGTH = "(1ll << 40)"  # of an array that nobody indexes from its end
_ROUNDS = "for (Index round = 0; round < world[WORLD_ROUNDS]; round++) {"
_END = "end_round(control, border, round);"
_NOTHING_LISTED = "control[BORDER] = 0;"
_OPTIONS = ("IS_ORDERED", "CAN_PULL", "REACHES_ALL", "IS_DECIDED", "IS_CERTAIN", "IS_REPLICATED", "IS_SPLIT",
            "ANNOUNCES")  # fmt: skip


def _serial(*statements: str) -> str:
    """Return the meeting of all blocks at which one thread does some statements."""
    return meeting(f"if (threadIdx.x == 0) {{ {' '.join(statements)} }}")


def write_exchanges(writer: KernelWriter, operator: Operator) -> None:
    """Add the statements of the exchanges behind an operator."""
    if writer.sharing is None:
        return
    for found in writer.sharing.exchanges(writer.number(operator)):
        writer.serial.one("begin_round(control, border);")
        writer.lines.append(writer.serial.take())
        if found.kind == "mirror":
            writer.lines += _mirror(writer, operator, found, announces=False)
        else:
            writer.lines += _collection(writer, operator, found)


def write_preparation(writer: KernelWriter, operator: Operator) -> None:
    """Add the statements before an operator whose changes will be looked for: they note what there is."""
    found = [] if writer.sharing is None else writer.sharing.exchanges(writer.number(operator))
    names = [name for exchange in found if exchange.kind == "replicate" for name in exchange.fields]
    if names:
        values = Carried(writer, names, f"{writer.number(operator)}_before")
        writer.rules.remembered.update(dict.fromkeys(names))
        values.add("remember", values.write_remember())
        writer.lines += [f"remember_values({values.structure({})}, border);", meeting()]


def announcement(writer: KernelWriter, operator: Operator) -> list[str]:
    """Return the statements that tell a pull of the sources in its frontier that other devices own."""
    if writer.sharing is None or operator.frontier is None:
        return []
    number = writer.number(operator)
    fields = writer.sharing.announced(number)
    if writer.flow.sends_ids(operator):
        lines = _mirror(writer, operator, Exchange("mirror", fields, operator.frontier), announces=True)
    else:
        lines = _bits()
    lines = [_serial("begin_round(control, border);"), *lines]
    is_covered = writer.sharing.is_announced_by_push(number)
    return ["if (control[SHARES_OWN] == 0) {", *lines, "}"] if is_covered else lines


def emptying(writer: KernelWriter, operator: Operator) -> list[str]:
    """Return the statements that empty copies which a pull was told of, before a push adds to them again."""
    if writer.sharing is None:
        return []
    number = writer.number(operator)
    names = writer.sharing.pulled_resets(number)
    if not names:
        return []
    values = Carried(writer, list(names), f"{number}_pulled")
    values.add("reset", values.write_reset(set(names)))
    return [f"empty_copies({values.structure({})}, border);"]


def visiting(writer: KernelWriter, operator: Operator, visit: str) -> str:
    """Return the body of a push's visit: at a copy, what the rule says and changes is for its owner to hear."""
    if writer.sharing is None:
        return f"return {visit};"
    names = [n for n in writer.sharing.collected(writer.number(operator))
             if declared_vertex(writer.rules, n).width is None]  # fmt: skip
    before = [f"const auto before_{name} = load({field_name(name)} + dst);" for name in names]
    tests = [f"load({field_name(name)} + dst) != before_{name}" for name in names]
    own = f"return {visit};"
    if operator is writer.flow.ordered:
        own = (f"const bool is_in = {visit}; if (is_in && border.control[SHARES_OWN] != 0) "
               "tell(border, dst, true, true); return is_in;")  # fmt: skip
    has_changed, tells = f"joins || {' || '.join(tests) or 'false'}", "tell(border, dst, joins, {});"
    telling = tells.format(has_changed)
    if "on_send" in operator.rules:
        telling = f"if (({has_changed}) && (on_send(dst, 0) & PASS) != 0) {tells.format('true')}"
    return " ".join([
        f"if (border.owner[dst] == border.device) {{ {own} }}", *before, f"const bool joins = {visit};", telling,
        "return false;",
    ])  # fmt: skip


# Collections


def _collection(writer: KernelWriter, operator: Operator, found: Exchange) -> list[str]:
    """Write the structure of a collection, or of a replication; return its statements."""
    sharing, flow, number = writer.sharing, writer.flow, writer.number(operator)
    assert sharing is not None
    is_replicated, is_ordered = found.kind == "replicate", operator is flow.ordered
    names = list(found.fields)
    has_output = flow.has_output(operator) and not is_replicated
    options = {
        "IS_ORDERED": is_ordered,
        "CAN_PULL": flow.pulls,
        "REACHES_ALL": is_replicated or sharing.reaches_all(number),
        "IS_DECIDED": bool(names) and all(combining_rule(declared_vertex(writer.rules, n)) is not None for n in names),
        "IS_CERTAIN": sharing.is_certain(number) and not is_replicated,
        "IS_REPLICATED": is_replicated,
    }
    values = Carried(writer, names, f"{number}_{found.kind}")
    read = names if is_replicated else sharing.read_at_copies(number)
    values.add("pack", values.write_pack())
    values.add("pack_copy", values.write_pack(read, "_copy"))
    values.add("merge_copy", values.write_merge(read, "_copy"))
    # A rule that combines may look at other fields: they must be as they were before.
    rest = [name for name in names if name not in read]
    options["IS_SPLIT"] = bool(names) and not any(combining_rule(declared_vertex(writer.rules, n)) for n in names)
    if options["IS_SPLIT"]:
        values.add("merge_rest", values.write_merge(rest, "_rest"))
    else:
        values.add("merge", values.write_merge())
    values.add("reset", values.write_reset(set() if is_replicated else sharing.resets(number)))
    listing: list[str] = []
    if is_replicated:
        writer.rules.remembered.update(dict.fromkeys(names))
        values.add("differs", values.write_differs())
        listing = ["list_changes(values, border);", meeting()]
    base, output, capacity = flow.target(operator).rsplit(", ", 2)
    joining = f"Join<Id>{{make_outbox<0>(control, Output<Id>{{queue, {base}, {output}, {capacity}}}), back}}"
    num_own = f"(control[SHARES_OWN] != 0 ? control[{output}] : 0)" if has_output and not is_ordered else "Index(0)"
    if is_ordered:
        boxes = "make_outbox<0>(control, near), make_outbox<1>(control, far)"
        joining = f"Enter<decltype(op), Id>{{op, {boxes}, back, remaining, control[CURRENT]}}"
    elif not has_output:
        joining = "JoinNothing{}"
    posting = f"post_items(control, border, round, {num_own}, sizeof(Id) + {values.item_bytes});"
    cleaning = [] if is_replicated else ["clean_border(values, border, back);"]
    lines = [
        "{",
        f"const auto values = {values.structure(options)};",
        _ROUNDS,
        "if (is_packed(border, round)) {",
        *listing,
        # How many of the device's own vertices joined, as the last meeting has seen it.
        f"pack_collected(values, border, back, queue, {base}, {num_own});",
        "}",
        _serial(posting),
        f"merge_collected(values, border, round, back, {joining});",
        _serial(_END, *([_NOTHING_LISTED] if is_replicated else [])),
        "}",
        *_after_rounds(cleaning),
        "}",
    ]
    if operator.options.get("direction") != "auto":
        return lines
    # A pull writes at this device's own vertices only, of which others hear when they are announced.
    return ["if (control[DIRECTION] != PULL || control[SHARES_OWN] != 0) {", *lines, "}"]


def _after_rounds(cleaning: list[str]) -> list[str]:
    """Return the statements behind the rounds: what was sent on is forgotten only now."""
    return ["if (world[WORLD_FORWARDS] == FORWARDS_ALL) {", *cleaning, _serial(_NOTHING_LISTED), "}"]


# Mirrors


def _mirror(writer: KernelWriter, operator: Operator, found: Exchange, *, announces: bool) -> list[str]:
    """Write the structure of a mirror and return its statements."""
    values = Carried(writer, list(found.fields), f"{writer.number(operator)}_{'announce' if announces else 'mirror'}")
    values.add("pack", values.write_pack())
    values.add("take", values.write_take())
    assert found.over is not None
    source = writer.flow.place(found.over)
    return [
        "{",
        f"const auto values = {values.structure({'ANNOUNCES': announces})};",
        f"list_vertices(border, {source.array}, {source.begin}, {source.end});",
        _serial(f"control[BORDER] = {source.end} - ({source.begin});"),
        _ROUNDS,
        "if (is_packed(border, round)) pack_mirrored(values, border);",
        _serial(f"post_items(control, border, round, 0, sizeof(Id) + {values.item_bytes});"),
        "take_mirrored(values, border, round, front);",
        _serial(_END),
        "}",
        *_after_rounds([]),
        "}",
    ]


def _bits() -> list[str]:
    """Return the statements that send a frontier as a bitmap, where all devices number vertices alike."""
    return [
        _ROUNDS,
        "if (is_packed(border, round)) pack_bits(border, front, num_words);",
        _serial("post_bits(control, border, round, 4 * num_words);"),
        "take_bits(border, round, front, num_words);",
        _serial(_END),
        "}",
    ]


class Carried(Values):
    """The values of some fields on their way between devices, and the structure by which kernels carry them."""

    def __init__(self, kernel: KernelWriter, names: list[str], suffix: str) -> None:
        super().__init__(kernel.rules, names, suffix)
        self.kernel = kernel
        self.methods: list[str] = []
        self.members: dict[str, tuple[str, str]] = {"count": ("Index", "control[NUM_LOCAL]")}

    def add(self, kind: str, call: RuleCall) -> None:
        """Export a function that was written, and make it a method."""
        takes = [name for name in call.parameters if name not in call.arguments]
        arrays = [name for name in call.parameters if name in call.arguments]
        parameters = [name for name in takes if name != "is_alone"]
        arguments = [Argument("0" if name == "is_alone" else name, INT64) for name in takes]
        arguments += [self._array(name) for name in arrays]
        is_flag = kind.startswith("merge") or kind == "differs"
        name = f"carry_{call.function}"
        passed = [f"p{i}" for i in range(len(arguments))]
        inner = f"{call.function}({', '.join(passed)})"
        body = f"    return 1 if {inner} else 0" if is_flag else f"    {inner}"
        self.kernel.functions.append(f"def {name}({', '.join(passed)}):\n{body}")
        title = f"what devices send of {', '.join(self.names) or 'vertices'}"
        export = self.kernel.export(name, arguments, INT32 if is_flag else None, title)
        mails = [name for name in self.names if mail_name(name) in arrays]
        sender = "sender" if kind.startswith("merge") or kind == "take" else "device"
        local = " ".join(f"auto const {mail_name(n)} = mails_{n}[{sender}];" for n in mails)
        declared = ", ".join(f"Index {name}" for name in (["sender"] if sender == "sender" else []) + parameters)
        result = f"return {export.call} != 0;" if is_flag else f"{export.call};"
        self.methods.append(method(f"{'bool' if is_flag else 'void'} {kind}({declared}) const", f"{local} {result}"))

    def _array(self, name: str) -> Argument:
        """Return an array as a function takes it, and note the members that it needs."""
        kernel = self.kernel
        if name == GLOBAL_IDS:
            self.members[GLOBAL_IDS] = ("const Id*", GLOBAL_IDS)
            return Argument(GLOBAL_IDS, kernel.vertex, "count", is_constant=True)
        for field, declared in kernel.fields.items():
            dtype, width = kernel.dtypes[field], getattr(declared, "width", None)
            kind = c_type(dtype)
            if name == mail_name(field):
                self.members["device"] = ("Index", "border.device")
                self.members |= self.mail_member(field)
                return Argument(name, dtype, ANY_LENGTH, width)
            if name == earlier_name(field):
                self.members[name] = (f"{kind}*", name)
                return Argument(name, dtype, "count", width)
            if name == field_name(field):
                self.members |= kernel.whole_members(field)
                return kernel.whole_field(field)
        raise AssertionError(f"{name} is no array of a program's")

    def mail_member(self, field: str) -> dict[str, tuple[str, str]]:
        """Return the member with a field's mail, by sender."""
        return {f"mails_{field}": (f"{c_type(self.kernel.dtypes[field])}* const*", mail_name(field))}

    def structure(self, options: dict[str, bool]) -> str:
        """Write the structure and return the text that makes one."""
        constants = [f"static constexpr bool {name} = {str(options.get(name, False)).lower()};" for name in _OPTIONS]
        declared = [f"{kind} {member};" for member, (kind, _) in self.members.items()]
        name = f"Values_{self.suffix}"
        self.kernel.structures.append(
            f"struct {name} {{\n" + "\n".join([*constants, *declared, *self.methods]) + "\n};"
        )
        return f"{name}{{{', '.join(value for _, value in self.members.values())}}}"
