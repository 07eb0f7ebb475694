"""Objects of a program that the control plane can write, and where a switch's descriptor block has them."""

from dataclasses import dataclass, field
from functools import cached_property

from emulator.compiler.layout import Json, Layout, UnsupportedError, words_of
from emulator.compiler.table_nodes import read_table
from emulator.compiler.tables import Action, Meter, Profile, Table
from emulator.compiler.value_sets import ValueSet, value_sets
from emulator.memory import DESCRIPTOR_WORDS


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
        Action(
            action["name"],
            number,
            tuple(parameter["bitwidth"] for parameter in action["runtime_data"]),
            tuple(str(parameter.get("name", "")) for parameter in action["runtime_data"]),
        )
        for number, action in enumerate(program["actions"])
    ]
    action_numbers = {action["id"]: number for number, action in enumerate(program["actions"])}
    for pipeline in program["pipelines"]:
        for node in pipeline["action_profiles"]:
            profiles[node["name"]] = Profile(node["name"], node["max_size"], node.get("selector"))
        for node in pipeline["tables"]:
            profile = profiles[node["action_profile"]] if node["type"] != "simple" else None
            own = tuple(actions[action_numbers[identifier]] for identifier in node["action_ids"])
            tables[node["name"]] = read_table(node, len(tables), layout, own, profile, action_numbers, meters)
    counters = {
        node["name"]: Counter(node["name"], node["size"]) for node in program["counter_arrays"] if not node["is_direct"]
    }
    registers = {
        node["name"]: Register(node["name"], node["size"], node["bitwidth"]) for node in program["register_arrays"]
    }
    arrays = {name: meter for name, meter in meters.items() if meter.target is None}
    sets = value_sets(program, layout)
    return Resources(tables, profiles, counters, registers, arrays, action_numbers, replicates, sets)


def _meter(node: Json, layout: Layout) -> Meter:
    if node["rate_count"] != 2:
        raise UnsupportedError(f"meter {node['name']!r} of {node['rate_count']} rates", node)
    if node["type"] not in ("bytes", "packets"):
        raise UnsupportedError(f"meter {node['name']!r} of {node['type']}", node)
    target = layout.field(node["result_target"]) if node["is_direct"] else None
    return Meter(node["name"], node["size"], node["type"] == "bytes", target)
