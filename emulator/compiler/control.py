"""Compiler of control flow: tables and conditions as functions of the generated module.

A control flow has no loops. A pipeline is therefore the list of its nodes in topological order; each node sets the
number of its successor, and the nodes between them are skipped. Conditions and statements are part of the pipeline's
function; each table has a function of its own.
"""

from enum import Enum

from emulator.compiler.actions import ACTION_PARAMETERS, ActionCompiler
from emulator.compiler.expressions import ExpressionCompiler, constant, tuple_of, word
from emulator.compiler.functions import Function, function_name, tell
from emulator.compiler.hashes import HashCompiler
from emulator.compiler.layout import Json, Layout, UnsupportedError, part_of
from emulator.compiler.resources import Resources
from emulator.compiler.tables import MatchKind, Table
from emulator.compiler.wide import call
from emulator.memory import (
    BYTES,
    DEFAULT,
    EMPTY,
    NUM_ENTRIES,
    NUM_PREFIXES,
    PACKETS,
    PREFIXES,
    SLOT_COUNT,
    SLOT_MASK,
    SLOTS,
    TO_GROUP,
    USED,
)

NODE_PARAMETERS = "phv, memory, block"
MISS = 0  # offset 0 means none
END = -1
_NO_ACTION = "U(0xffffffff)"


class ControlCompiler:
    """Compiles one pipeline (ingress or egress)."""

    def __init__(
        self, pipeline: Json, layout: Layout, resources: Resources, hashes: HashCompiler, actions: ActionCompiler
    ) -> None:
        self._pipeline = pipeline
        self._layout = layout
        self._resources = resources
        self._hashes = hashes
        self._actions = actions
        kinds = ("tables", "conditionals", "action_calls")
        self._nodes = {node["name"]: node for kind in kinds for node in pipeline.get(kind) or ()}
        self._numbers = {name: number for number, name in enumerate(self._in_order())}

    def functions(self) -> list[Function]:
        """Return the functions of all nodes, and last the pipeline's own, named after it."""
        functions: list[Function] = []
        lines = [f"step = {self._number(self._pipeline['init_table'])}"]
        if self._layout.exit_word is not None:
            lines.append(f"{word(self._layout.exit_word)} = U(0)")
        for name, number in self._numbers.items():
            lines += [f"if step == {number}:", *(f"    {line}" for line in self._lines(self._nodes[name]))]
            functions += self._functions_of(name)
        return [*functions, Function(self._pipeline["name"], NODE_PARAMETERS, lines)]

    def _in_order(self) -> list[str]:
        """Return the names of the reachable nodes, each before its successors."""
        finished: list[str] = []

        def visit(name: str | None, above: tuple[str, ...]) -> None:
            if name in above:
                raise UnsupportedError(f"loop through node {name!r}")
            if name is not None and name not in finished:
                for successor in _successors_of(self._nodes[name]):
                    visit(successor, (*above, name))
                finished.append(name)

        visit(self._pipeline["init_table"], ())
        return finished[::-1]

    def _lines(self, node: Json) -> list[str]:
        """Return a node's lines in the pipeline's function; they end by setting ``step`` or leaving the pipeline."""
        if self._layout.exit_word is None or "expression" in node:
            return self._steps(node)
        return [*self._steps(node), f"if {word(self._layout.exit_word)} != U(0):", "    return"]

    def _steps(self, node: Json) -> list[str]:
        if "expression" in node:
            with part_of(node):
                condition = ExpressionCompiler(self._layout).value(node["expression"])
            source = node.get("source_info", {}).get("source_fragment", "")
            told = tell("condition", repr(node["name"]), repr(source), condition)
            step = f"step = {self._number(node['true_next'])} if {condition} else {self._number(node['false_next'])}"
            return [told, step]
        if "action_id" in node:
            number = self._resources.action_numbers[node["action_id"]]
            told = tell("statement", repr(node["name"]))
            return [told, *self._actions.lines(number), f"step = {self._number(node['next_node'])}"]
        table = self._resources.tables[node["name"]]
        if table.is_statement:
            [action] = table.actions
            default, following = node["base_default_next"], node["next_tables"]
            # A table without a key never hits.
            way = "__MISS__" if _result(node) is _Result.HIT else action.name
            told = tell("statement", repr(action.name))
            return [told, *self._actions.lines(action.number), f"step = {self._number(following.get(way, default))}"]
        return self._after(node, table, f"{self._function_name(table.name)}({NODE_PARAMETERS})")

    def _after(self, node: Json, table: Table, called: str) -> list[str]:
        """Apply a table and continue by hit or miss, by action, or unconditionally.

        The branch is here and not in the table's function, so that LLVM knows where each case leads.
        """
        default, following = node["base_default_next"], node["next_tables"]
        match _result(node):
            case _Result.HIT:
                hit, miss = (self._number(following.get(key, default)) for key in ("__HIT__", "__MISS__"))
                return [f"if {called}:", f"    step = {hit}", "else:", f"    step = {miss}"]
            case _Result.ACTION:
                lines = [f"number = {called}", f"step = {self._number(default)}"]
                for action in table.actions:
                    lines += [f"if number == U({action.number}):", f"    step = {self._number(following[action.name])}"]
                return lines
        return [called, f"step = {self._number(default)}"]

    def _functions_of(self, name: str) -> list[Function]:
        table = self._resources.tables.get(name)
        if table is None or table.is_statement:
            return []
        apply = self._apply(self._nodes[name], table)
        return [self._lookup(table), apply] if table.key else [apply]

    def _number(self, name: str | None) -> int:
        return END if name is None else self._numbers[name]

    def _function_name(self, node: str) -> str:
        return function_name(self._pipeline["name"], self._numbers[node], node)

    def _lookup(self, table: Table) -> Function:
        """Return a function that finds the offset of the matching slot, or MISS."""
        lines = [
            f"descriptor = block + U({self._resources.table_descriptor(table)})",
            f"slots = memory[descriptor + U({SLOTS})]",
        ]
        if not table.is_scanned:
            lines += [f"if memory[descriptor + U({NUM_ENTRIES})] == U(0):", f"    return U({MISS})"]
            lines.append(f"last = memory[descriptor + U({SLOT_MASK})]")
        lines += [f"key_{number} = {source}" for number, source in enumerate(_key_sources(table))]
        if table.is_scanned:
            lines += [
                "at = slots",
                f"for _ in range(memory[descriptor + U({SLOT_COUNT})]):",
                f"    if {_matches(table)}:",
                "        return at",
                f"    at += U({table.slot_words})",
                f"return U({MISS})",
            ]
        elif table.lpm_field is None:
            lines += [*_probe(table, [f"key_{number}" for number in range(table.key_words)]), f"return U({MISS})"]
        else:
            names = [f"key_{number}" for number in range(table.value_words)]
            masks = [f"prefix_{number}" for number in range(len(table.lpm_field.key_words))]
            for key_word, mask in zip(table.lpm_field.key_words, masks, strict=True):
                names[key_word] += f" & {mask}"
            lines += [
                f"prefixes = memory[descriptor + U({PREFIXES})]",
                f"for _ in range(memory[descriptor + U({NUM_PREFIXES})]):",
                *(f"    {mask} = memory[prefixes + U({number})]" for number, mask in enumerate(masks)),
                *(f"    {line}" for line in _probe(table, [*names, *masks])),
                f"    prefixes += U({len(masks)})",
                f"return U({MISS})",
            ]
        return Function(f"{self._function_name(table.name)}_lookup", NODE_PARAMETERS, lines)

    def _apply(self, node: Json, table: Table) -> Function:
        lines = [tell("applies"), "hit = False", "call = U(0)"]
        default = f"memory[block + U({self._resources.table_descriptor(table) + DEFAULT})]"
        if table.key:
            lines += [
                f"slot = {self._function_name(table.name)}_lookup({NODE_PARAMETERS})",
                f"if slot != U({MISS}):",
                "    hit = True",
                *(f"    {line}" for line in self._hit(table)),
                "else:",
                f"    call = {default}",
            ]
        else:
            lines.append(f"call = {default}")
        lines.append(tell("table", repr(table.name), "slot" if table.key else "0", "call"))
        lines += [f"number = {_NO_ACTION}", "if call != U(0):", "    number = memory[call]", "    data = call + U(1)"]
        for position, action in enumerate(table.actions):
            keyword = "elif" if position else "if"
            lines += [
                f"    {keyword} number == U({action.number}):",
                f"        action_{action.number}({ACTION_PARAMETERS})",
            ]
        match _result(node):
            case _Result.HIT:
                lines.append("return hit")
            case _Result.ACTION:
                lines.append("return number")
        return Function(self._function_name(table.name), NODE_PARAMETERS, lines)

    def _hit(self, table: Table) -> list[str]:
        lines = []
        if table.has_counters:
            length = word(self._layout.field(["standard_metadata", "packet_length"]).word)
            lines += [f"memory[slot + U({table.counter_offset + PACKETS})] += U(1)"]
            lines += [f"memory[slot + U({table.counter_offset + BYTES})] += {length}"]
        if table.meter and table.meter.target:
            target = table.meter.target
            colour = self._actions.colour(table.meter, f"slot + U({table.meter_offset})")
            lines.append(f"{word(target.word)} = {colour} & {constant(target.mask)}")
        if table.ages:
            assert self._layout.now_word is not None
            lines.append(f"memory[slot + U({table.hit_offset})] = {word(self._layout.now_word)}")
        if table.profile is None:
            return [*lines, f"call = slot + U({table.action_offset})"]
        lines.append(f"call = memory[slot + U({table.action_offset + 1})]")
        if table.profile.selector:
            selector = table.profile.selector
            hashed = self._hashes.over(selector["algo"], selector["input"], selector)
            lines += [
                f"if memory[slot + U({table.action_offset})] == U({TO_GROUP}):",
                "    size = memory[call]",
                "    if size == U(0):",
                "        call = U(0)",
                "    else:",
                f"        call = memory[call + U(1) + {hashed} % size]",
            ]
        return lines


class _Result(Enum):
    """Result of a table by which the pipeline continues."""

    NOTHING = "nothing"
    HIT = "hit"
    ACTION = "action"


def _result(node: Json) -> _Result:
    following = node["next_tables"]
    if "__HIT__" in following or "__MISS__" in following:
        return _Result.HIT
    return _Result.NOTHING if {*following.values()} <= {node["base_default_next"]} else _Result.ACTION


def _successors_of(node: Json) -> list[str | None]:
    if "expression" in node:
        return [node["true_next"], node["false_next"]]
    if "action_id" in node:
        return [node["next_node"]]
    return [*node["next_tables"].values(), node["base_default_next"]]


def _key_sources(table: Table) -> list[str]:
    """Return the words of the packet's key; a field of several words shares none of them with other fields."""
    words: dict[int, list[str]] = {}
    for field in table.key:
        for number, (key_word, index) in enumerate(zip(field.key_words, field.field.words, strict=True)):
            source, visible = word(index), field.visible >> 64 * number
            if visible != field.field.mask >> 64 * number:
                source = f"({source} & {constant(visible)})"
            if field.valid_word is not None:
                source = f"({source} if {word(field.valid_word)} != U(0) else U(0))"
            words.setdefault(key_word, []).append(f"({source} << U({field.shift}))" if field.shift else source)
    return [" | ".join(parts) for _, parts in sorted(words.items())]


def _matches(table: Table) -> str:
    """Return a condition: whether the entry at ``at`` matches the key by masks and ranges."""
    values, masks = 1, 1 + table.value_words
    ranges = [field for field in table.key if field.kind is MatchKind.RANGE]
    ranged = {key_word for field in ranges for key_word in field.key_words}
    tests = [
        f"key_{number} & memory[at + U({masks + number})] == memory[at + U({values + number})]"
        for number in range(table.value_words)
        if number not in ranged
    ]
    for field in ranges:
        key, low, high = (
            tuple_of([part.format(start + number) for number in field.key_words])
            for part, start in (("key_{}", 0), ("memory[at + U({})]", values), ("memory[at + U({})]", masks))
        )
        count = len(field.key_words)
        if count == 1:
            tests += [f"{low} <= {key}", f"{key} <= {high}"]
        else:
            tests += [f"not {call('less', count, key, low)}", f"not {call('less', count, high, key)}"]
    return " and ".join(tests)


def _probe(table: Table, keys: list[str]) -> list[str]:
    """Return a search through the slots from the key's hash on, until the key or an empty slot is found."""
    lines = [f"wanted_{number} = {key}" for number, key in enumerate(keys)]
    lines.append("hashed = U(0)")
    lines += [f"hashed = mix(hashed, wanted_{number})" for number in range(len(keys))]
    equal = " and ".join(
        [f"state == {constant(USED)}", *(f"memory[at + U({1 + n})] == wanted_{n}" for n in range(len(keys)))]
    )
    return [
        *lines,
        "position = hashed & last",
        "while True:",
        f"    at = slots + position * U({table.slot_words})",
        "    state = memory[at]",
        f"    if state == {constant(EMPTY)}:",
        "        break",
        f"    if {equal}:",
        "        return at",
        "    position = (position + U(1)) & last",
    ]
