"""The shape of a program's tables, profiles and counters: what compiled code and control side must agree on."""

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from emulator.compiler.layout import Field, Json, Layout, UnsupportedError
from emulator.memory import COUNTER_WORDS, DESCRIPTOR_WORDS, INDIRECT_WORDS, METER_WORDS

WORD_BITS = 64


class MatchKind(StrEnum):
    """How one field of a key is matched."""

    EXACT = "exact"
    LPM = "lpm"
    TERNARY = "ternary"
    OPTIONAL = "optional"


@dataclass(frozen=True)
class KeyField:
    """A field of a table's key: word ``key_word`` of the slot's key holds it, shifted left by ``shift``.

    Of the packet's field only the bits of ``visible`` count.
    """

    name: str
    kind: MatchKind
    field: Field
    key_word: int
    shift: int
    visible: int


@dataclass(frozen=True)
class Action:
    """An action that the program declares; ``number`` is what slots store."""

    name: str
    number: int
    parameter_bits: tuple[int, ...]


@dataclass(frozen=True)
class Profile:
    """An action profile; ``selector`` is the hash that picks a member, or None."""

    name: str
    max_members: int
    selector: Json | None


@dataclass(frozen=True)
class Meter:
    """An indirect array of meters, or the direct meter of a table; ``size`` is that of the array.

    ``target`` is the field that gets the colour of a direct meter.
    """

    name: str
    size: int
    counts_bytes: bool
    target: Field | None


@dataclass(frozen=True)
class Table:
    """A match-action table.

    A slot: state, ``key_words`` words of key, counters, meter, then the action and its arguments.
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

    @cached_property
    def is_scanned(self) -> bool:
        """Entries have priorities and are tried one after the other."""
        return any(field.kind in (MatchKind.TERNARY, MatchKind.OPTIONAL) for field in self.key)

    @cached_property
    def lpm_field(self) -> KeyField | None:
        return next((field for field in self.key if field.kind is MatchKind.LPM), None)

    @cached_property
    def key_words(self) -> int:
        """Words of key in a slot.

        The values, then the masks where the table is scanned, or the prefix mask of an LPM table.
        """
        fields = max((field.key_word + 1 for field in self.key), default=0)
        if self.is_scanned:
            return 2 * fields
        return fields + (self.lpm_field is not None)

    @property
    def is_statement(self) -> bool:
        """No entry and no other default can ever make it do anything but its one action, which takes no arguments."""
        return (
            not self.key
            and self.profile is None
            and self.has_constant_default
            and len(self.actions) == 1
            and not self.actions[0].parameter_bits
        )

    @property
    def counter_offset(self) -> int:
        return 1 + self.key_words

    @property
    def meter_offset(self) -> int:
        return self.counter_offset + COUNTER_WORDS * self.has_counters

    @property
    def action_offset(self) -> int:
        return self.meter_offset + (METER_WORDS if self.meter else 0)

    @cached_property
    def action_words(self) -> int:
        """Words of an action with its arguments, the largest of the table's."""
        return 1 + max((len(action.parameter_bits) for action in self.actions), default=0)

    @property
    def slot_words(self) -> int:
        return self.action_offset + (INDIRECT_WORDS if self.profile else self.action_words)


@dataclass(frozen=True)
class Counter:
    """An indirect counter array."""

    name: str
    size: int


@dataclass(frozen=True)
class Register:
    """A register array; cells are of at most 64 bits."""

    name: str
    size: int
    bits: int


@dataclass(frozen=True)
class Resources:
    """Everything of a program that the control side can write, and where its descriptors stand in a switch's block."""

    tables: dict[str, Table]
    profiles: dict[str, Profile]
    counters: dict[str, Counter]
    registers: dict[str, Register]
    meters: dict[str, Meter]
    replicates: bool = False

    def table_descriptor(self, table: Table) -> int:
        """Offset of a table's descriptor in the block of a switch."""
        return table.number * DESCRIPTOR_WORDS

    def counter_descriptor(self, name: str) -> int:
        """Offset of the word that points to a counter's cells."""
        return len(self.tables) * DESCRIPTOR_WORDS + list(self.counters).index(name)

    def register_descriptor(self, name: str) -> int:
        """Offset of the word that points to a register's cells."""
        return len(self.tables) * DESCRIPTOR_WORDS + len(self.counters) + list(self.registers).index(name)

    def meter_descriptor(self, name: str) -> int:
        """Offset of the word that points to an array of meters."""
        before = len(self.tables) * DESCRIPTOR_WORDS + len(self.counters) + len(self.registers)
        return before + list(self.meters).index(name)

    @property
    def group_descriptor(self) -> int:
        """Offset of the word that points to the multicast groups, of a program that copies packets."""
        before = len(self.tables) * DESCRIPTOR_WORDS + len(self.counters) + len(self.registers)
        return before + len(self.meters)

    @property
    def session_descriptor(self) -> int:
        """Offset of the word that points to the clone sessions, of a program that copies packets."""
        return self.group_descriptor + 1

    @property
    def block_words(self) -> int:
        """Size of the block of descriptors of one switch."""
        return self.group_descriptor + 2 * self.replicates


def resources(program: Json, layout: Layout, *, replicates: bool) -> Resources:
    """Read tables, profiles and counters from a program.

    Raises UnsupportedError for what the emulator does not execute: digests, range keys, ageing, constant
    entries, registers of more than 64 bits.
    """
    for construct in ("learn_lists", "extern_instances"):
        if program.get(construct):
            raise UnsupportedError(f"{construct.replace('_', ' ')} ({program[construct][0]['name']})")
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
    registers = {}
    for node in program["register_arrays"]:
        if node["bitwidth"] > WORD_BITS:
            raise UnsupportedError(f"register {node['name']!r} of {node['bitwidth']} bits", node)
        registers[node["name"]] = Register(node["name"], node["size"], node["bitwidth"])
    arrays = {name: meter for name, meter in meters.items() if meter.target is None}
    return Resources(tables, profiles, counters, registers, arrays, replicates)


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
    for construct in ("support_timeout", "entries"):
        if node.get(construct):
            raise UnsupportedError(f"{construct.replace('_', ' ')} of table {node['name']!r}", node)
    default = node.get("default_entry")
    return Table(
        name=node["name"],
        number=number,
        key=_key(node, layout),
        actions=actions,
        size=node["max_size"],
        profile=profile,
        has_counters=node["with_counters"],
        meter=meters[node["direct_meters"]] if node.get("direct_meters") else None,
        default=default
        and (action_numbers[default["action_id"]], tuple(int(text, 16) for text in default["action_data"])),
        has_constant_default=bool(default and default.get("action_const")),
    )


def _key(node: Json, layout: Layout) -> tuple[KeyField, ...]:
    """Pack the key's fields into words in order; an LPM field has a word of its own."""
    fields: list[KeyField] = []
    current, used = -1, WORD_BITS
    for key in node["key"]:
        if key["match_type"] not in set(MatchKind):
            raise UnsupportedError(f"{key['match_type']} match on {key['name']!r} in table {node['name']!r}", node)
        kind, field = MatchKind(key["match_type"]), layout.field(key["target"])
        if used + field.bits > WORD_BITS or kind is MatchKind.LPM:
            current, used = current + 1, 0
        visible = int(key["mask"], 16) if key.get("mask") else field.mask
        fields.append(KeyField(key["name"], kind, field, current, used, visible))
        used = WORD_BITS if kind is MatchKind.LPM else used + field.bits
    return tuple(fields)
