"""Shape of a program's tables, profiles and counters, shared by compiled code and the control plane."""

from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from emulator.compiler.expressions import first_words
from emulator.compiler.layout import WORD_BITS, Field, Json, Layout, UnsupportedError, words_of
from emulator.entries import ActionCall, EntryKey, FieldMatch, RangeMatch
from emulator.memory import COUNTER_WORDS, DESCRIPTOR_WORDS, INDIRECT_WORDS, METER_WORDS

HIGHEST_PRIORITY = (1 << 31) - 1
"""Entry n of the program has this priority less n, as on BMv2: before any entry of a controller."""


class MatchKind(StrEnum):
    """Kind of match of a key's field."""

    EXACT = "exact"
    LPM = "lpm"
    TERNARY = "ternary"
    RANGE = "range"
    OPTIONAL = "optional"


_OVERLAPPING = frozenset({MatchKind.TERNARY, MatchKind.RANGE, MatchKind.OPTIONAL})


@dataclass(frozen=True)
class KeyField:
    """A field of a table's key; it begins in word ``key_word`` of the slot's key, shifted left by ``shift``.

    Only the bits in ``visible`` of the packet's field count. If ``valid_word`` says that the header is invalid, the
    field reads as 0 (None: it is always valid). A range, a prefix and a field of more than one word share no word with
    others.
    """

    name: str
    kind: MatchKind
    field: Field
    key_word: int
    shift: int
    visible: int
    valid_word: int | None

    @cached_property
    def key_words(self) -> range:
        """Words of the slot's key that hold the field, lowest bits first."""
        return range(self.key_word, self.key_word + len(self.field.words))


@dataclass(frozen=True)
class Action:
    """An action of the program; slots store its ``number``."""

    name: str
    number: int
    parameter_bits: tuple[int, ...]

    @cached_property
    def parameter_words(self) -> list[int]:
        """First word of each argument among the words of all, and the number of words."""
        return first_words(self.parameter_bits)


@dataclass(frozen=True)
class Profile:
    """An action profile; ``selector`` is the hash that picks a member, or None."""

    name: str
    max_members: int
    selector: Json | None


@dataclass(frozen=True)
class Meter:
    """An indirect array of ``size`` meters, or the direct meter of a table.

    A direct meter writes its colour to ``target``.
    """

    name: str
    size: int
    counts_bytes: bool
    target: Field | None


@dataclass(frozen=True)
class Table:
    """A match-action table.

    A slot holds its state, ``key_words`` words of key, counters, meter, the time of the last hit if the table ``ages``,
    then the action and its arguments. ``entries`` are those of the program.
    """

    name: str
    number: int
    key: tuple[KeyField, ...]
    actions: tuple[Action, ...]
    size: int
    profile: Profile | None
    has_counters: bool
    meter: Meter | None
    default: tuple[int, tuple[int, ...]] | None
    has_constant_default: bool
    ages: bool
    entries: tuple[tuple[EntryKey, ActionCall], ...]

    @cached_property
    def is_scanned(self) -> bool:
        """Whether entries have priorities and are tried one after the other."""
        return any(field.kind in _OVERLAPPING for field in self.key)

    @cached_property
    def lpm_field(self) -> KeyField | None:
        """LPM field of the key, None if there is none."""
        return next((field for field in self.key if field.kind is MatchKind.LPM), None)

    @cached_property
    def key_words(self) -> int:
        """Words of key in a slot.

        First come the values, then the masks of a scanned table, or the prefix mask of an LPM table. The lower end of a
        range is among the values, the upper end among the masks.
        """
        if self.is_scanned:
            return 2 * self.value_words
        return self.value_words + (len(self.lpm_field.field.words) if self.lpm_field else 0)

    @cached_property
    def value_words(self) -> int:
        """Words of key that hold values."""
        return max((field.key_words.stop for field in self.key), default=0)

    @property
    def is_statement(self) -> bool:
        """Whether the table can do nothing but execute its one action, which takes no arguments."""
        return (
            not self.key
            and self.profile is None
            and self.has_constant_default
            and len(self.actions) == 1
            and not self.actions[0].parameter_bits
        )

    @property
    def counter_offset(self) -> int:
        """Offset of the direct counter in a slot."""
        return 1 + self.key_words

    @property
    def meter_offset(self) -> int:
        """Offset of the direct meter in a slot."""
        return self.counter_offset + COUNTER_WORDS * self.has_counters

    @property
    def hit_offset(self) -> int:
        """Offset of the time of the last hit in a slot, in picoseconds."""
        return self.meter_offset + (METER_WORDS if self.meter else 0)

    @property
    def action_offset(self) -> int:
        """Offset of the action in a slot."""
        return self.hit_offset + self.ages

    @cached_property
    def action_words(self) -> int:
        """Words of the table's longest action with its arguments."""
        return 1 + max((action.parameter_words[-1] for action in self.actions), default=0)

    @property
    def slot_words(self) -> int:
        """Words of a slot."""
        return self.action_offset + (INDIRECT_WORDS if self.profile else self.action_words)


@dataclass(frozen=True)
class Counter:
    """An indirect counter array."""

    name: str
    size: int


@dataclass(frozen=True)
class Register:
    """A register array."""

    name: str
    size: int
    bits: int

    @property
    def cell_words(self) -> int:
        """Words of a cell, lowest bits first."""
        return words_of(self.bits)


@dataclass(frozen=True)
class ValueSet:
    """A value set of the parser: a member has a match for each part of the key, of these widths.

    For each part a member holds the lower end, the upper end and the mask under which the key must lie between them.
    """

    name: str
    size: int
    widths_bits: tuple[int, ...]

    @property
    def member_words(self) -> int:
        """Words of a member."""
        return 3 * sum(words_of(bits) for bits in self.widths_bits)


@dataclass(frozen=True)
class Resources:
    """All objects of a program that the control plane can write, and the layout of a switch's descriptor block.

    ``action_numbers`` maps the actions' ids in the JSON to their numbers. The block's last word is the state of the
    switch's random numbers.
    """

    tables: dict[str, Table]
    profiles: dict[str, Profile]
    counters: dict[str, Counter]
    registers: dict[str, Register]
    meters: dict[str, Meter]
    action_numbers: dict[int, int]
    replicates: bool = False
    value_sets: dict[str, ValueSet] = field(default_factory=dict)

    def table_descriptor(self, table: Table) -> int:
        """Return the offset of a table's descriptor in a switch's block."""
        return table.number * DESCRIPTOR_WORDS

    def counter_descriptor(self, name: str) -> int:
        """Return the offset of the word that points to a counter's cells."""
        return len(self.tables) * DESCRIPTOR_WORDS + list(self.counters).index(name)

    def register_descriptor(self, name: str) -> int:
        """Return the offset of the word that points to a register's cells."""
        return len(self.tables) * DESCRIPTOR_WORDS + len(self.counters) + list(self.registers).index(name)

    def meter_descriptor(self, name: str) -> int:
        """Return the offset of the word that points to an array of meters."""
        before = len(self.tables) * DESCRIPTOR_WORDS + len(self.counters) + len(self.registers)
        return before + list(self.meters).index(name)

    @property
    def group_descriptor(self) -> int:
        """Offset of the word that points to the multicast groups, in a program that copies packets."""
        before = len(self.tables) * DESCRIPTOR_WORDS + len(self.counters) + len(self.registers)
        return before + len(self.meters)

    @property
    def session_descriptor(self) -> int:
        """Offset of the word that points to the clone sessions, in a program that copies packets."""
        return self.group_descriptor + 1

    @cached_property
    def ages(self) -> bool:
        """Whether the entries of any table age."""
        return any(table.ages for table in self.tables.values())

    @property
    def block_words(self) -> int:
        """Words of one switch's descriptor block."""
        return self.random_word + 1

    def value_set_descriptor(self, name: str) -> int:
        """Return the offset of the word that points to a value set."""
        return self.group_descriptor + 2 * self.replicates + list(self.value_sets).index(name)

    @property
    def random_word(self) -> int:
        """Offset of the state of a switch's random numbers."""
        return self.group_descriptor + 2 * self.replicates + len(self.value_sets)


def resources(program: Json, layout: Layout, *, replicates: bool) -> Resources:
    """Read tables, profiles and counters from a program.

    Raises UnsupportedError for constructs that the emulator does not execute: externs, some meters.
    """
    if program.get("extern_instances"):
        instance = program["extern_instances"][0]
        kind = instance.get("type", "unknown")
        raise UnsupportedError(
            f"{instance['name']!r}, an instance of the extern {kind!r}, which v1model does not have,"
        )
    profiles: dict[str, Profile] = {}
    meters = {node["name"]: _meter(node, layout) for node in program.get("meter_arrays", ())}
    tables: dict[str, Table] = {}
    actions = [
        Action(action["name"], number, tuple(parameter["bitwidth"] for parameter in action["runtime_data"]))
        for number, action in enumerate(program["actions"])
    ]
    action_numbers = {action["id"]: number for number, action in enumerate(program["actions"])}
    for pipeline in program["pipelines"]:
        for node in pipeline["action_profiles"]:
            profiles[node["name"]] = Profile(node["name"], node["max_size"], node.get("selector"))
        for node in pipeline["tables"]:
            profile = profiles[node["action_profile"]] if node["type"] != "simple" else None
            own = tuple(actions[action_numbers[identifier]] for identifier in node["action_ids"])
            tables[node["name"]] = _table(node, len(tables), layout, own, profile, action_numbers, meters)
    counters = {
        node["name"]: Counter(node["name"], node["size"]) for node in program["counter_arrays"] if not node["is_direct"]
    }
    registers = {
        node["name"]: Register(node["name"], node["size"], node["bitwidth"]) for node in program["register_arrays"]
    }
    arrays = {name: meter for name, meter in meters.items() if meter.target is None}
    sets = _value_sets(program, layout)
    return Resources(tables, profiles, counters, registers, arrays, action_numbers, replicates, sets)


def _value_sets(program: Json, layout: Layout) -> dict[str, ValueSet]:
    """Return the value sets that the parser uses; their members are as wide as the keys that are looked up in them."""
    sizes = {node["name"]: node["max_size"] for node in program.get("parse_vsets", ())}
    found: dict[str, ValueSet] = {}
    for parser in program["parsers"]:
        for state in parser.get("parse_states", ()):
            for transition in state["transitions"]:
                if transition["type"] == "parse_vset":
                    name = transition["value"]
                    widths = tuple(_key_part_bits(part, layout) for part in state["transition_key"])
                    before = found.setdefault(name, ValueSet(name, sizes[name], widths))
                    if before.widths_bits != widths:
                        raise UnsupportedError(f"value set {name!r} for keys of different widths", state)
    return found


def _key_part_bits(part: Json, layout: Layout) -> int:
    match part["type"]:
        case "field":
            return layout.field(part["value"]).bits
        case "stack_field":
            stack, name = part["value"]
            return layout.stacks[stack].headers[0].fields[name].bits
        case "lookahead":
            return int(part["value"][1])
    raise UnsupportedError(f"transition key of type {part['type']!r}")


def _meter(node: Json, layout: Layout) -> Meter:
    if node["rate_count"] != 2:
        raise UnsupportedError(f"meter {node['name']!r} of {node['rate_count']} rates", node)
    if node["type"] not in ("bytes", "packets"):
        raise UnsupportedError(f"meter {node['name']!r} of {node['type']}", node)
    target = layout.field(node["result_target"]) if node["is_direct"] else None
    return Meter(node["name"], node["size"], node["type"] == "bytes", target)


def _table(
    node: Json,
    number: int,
    layout: Layout,
    actions: tuple[Action, ...],
    profile: Profile | None,
    action_numbers: dict[int, int],
    meters: dict[str, Meter],
) -> Table:
    default = node.get("default_entry")
    key = _key(node, layout)
    named = {
        action_numbers[identifier]: name for identifier, name in zip(node["action_ids"], node["actions"], strict=True)
    }
    entries = [_entry(entry, key, action_numbers, named) for entry in node.get("entries") or ()]
    _require_room(node, [key for key, _ in entries])
    return Table(
        name=node["name"],
        number=number,
        key=key,
        actions=actions,
        size=node["max_size"],
        profile=profile,
        has_counters=node["with_counters"],
        meter=meters[node["direct_meters"]] if node.get("direct_meters") else None,
        default=default
        and (action_numbers[default["action_id"]], tuple(int(text, 16) for text in default["action_data"])),
        has_constant_default=bool(default and default.get("action_const")),
        ages=bool(node.get("support_timeout")) and bool(key),
        entries=tuple(entries),
    )


def _require_room(node: Json, keys: list[EntryKey]) -> None:
    """Raise UnsupportedError if a table cannot hold the program's entries."""
    first: dict[EntryKey, int] = {}
    for number, (key, entry) in enumerate(zip(keys, node.get("entries") or (), strict=True)):
        if first.setdefault(key, number) != number:
            raise UnsupportedError(
                f"entry {number} of table {node['name']!r}, with the key of entry {first[key]},", entry
            )
    if len(keys) > node["max_size"]:
        raise UnsupportedError(f"table {node['name']!r} of size {node['max_size']} with {len(keys)} entries", node)


def _entry(
    node: Json, key: tuple[KeyField, ...], action_numbers: dict[int, int], names: dict[int, str]
) -> tuple[EntryKey, ActionCall]:
    """Return an entry of the program."""
    match = tuple(_match(part, field) for part, field in zip(node["match_key"], key, strict=True))
    has_priority = any(field.kind in _OVERLAPPING for field in key)
    action = node["action_entry"]
    arguments = tuple(int(text, 16) for text in action["action_data"])
    call = ActionCall(names[action_numbers[action["action_id"]]], arguments)
    return EntryKey(match, HIGHEST_PRIORITY - node["priority"] if has_priority else 0), call


def _match(part: Json, field: KeyField) -> FieldMatch | RangeMatch:
    full = field.field.mask
    match part["match_type"]:
        case "range":
            return RangeMatch(int(part["start"], 16), int(part["end"], 16))
        case "lpm":
            mask = full & ~(full >> part["prefix_length"])
        case "ternary" | "optional" if "mask" in part:
            mask = int(part["mask"], 16)
        case _:
            mask = full
    return FieldMatch(int(part["key"], 16) & mask, mask)


def _key(node: Json, layout: Layout) -> tuple[KeyField, ...]:
    """Pack the key's fields into words, in order."""
    if sum(key["match_type"] == MatchKind.LPM for key in node["key"]) > 1:
        raise UnsupportedError(f"more than one LPM field in the key of table {node['name']!r}", node)
    fields: list[KeyField] = []
    current, used = -1, WORD_BITS
    for key in node["key"]:
        if key["match_type"] not in set(MatchKind):
            name = key.get("name") or ".".join(key["target"])
            raise UnsupportedError(f"{key['match_type']} match on {name!r} in table {node['name']!r}", node)
        kind, field = MatchKind(key["match_type"]), layout.field(key["target"])
        if field.most_bytes:
            raise UnsupportedError(f"match on the variable-length field {field.name} in table {node['name']!r}", node)
        alone = kind in (MatchKind.LPM, MatchKind.RANGE) or len(field.words) > 1
        if used + field.bits > WORD_BITS or alone:
            current, used = current + 1, 0
        visible = int(key["mask"], 16) if key.get("mask") else field.mask
        header = layout.headers[key["target"][0]]
        valid_word = None if header.metadata or key["target"][1] == "$valid$" else header.valid_word
        # Tables that p4c makes of a switch over a value have keys without a name.
        fields.append(KeyField(key.get("name") or field.name, kind, field, current, used, visible, valid_word))
        current += len(field.words) - 1
        used = WORD_BITS if alone else used + field.bits
    return tuple(fields)
