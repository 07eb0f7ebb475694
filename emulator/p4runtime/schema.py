"""Objects of a P4Info by id, with their references resolved."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from finsy.proto import p4i

from emulator.p4runtime.action_types import Action, Profile, read_action, read_profile
from emulator.p4runtime.controller_packets import PACKET_IN, PACKET_OUT, ControllerHeader, read_controller_header
from emulator.p4runtime.digest_types import Digest, read_digest
from emulator.p4runtime.errors import unimplemented
from emulator.p4runtime.objects_by_id import find_by_id, index_by_id
from emulator.p4runtime.table_types import Table, ValueSet, read_table, read_value_set
from emulator.p4runtime.texts import Texts

_Object = TypeVar("_Object")


@dataclass(frozen=True, slots=True)
class Counter:
    """An indirect counter of ``size`` cells."""

    id: int
    name: str
    size: int


@dataclass(frozen=True, slots=True)
class Meter:
    """An indirect meter of ``size`` cells."""

    id: int
    name: str
    size: int


@dataclass(frozen=True, slots=True)
class Register:
    """A register array of ``size`` cells."""

    id: int
    name: str
    size: int
    width_bits: int


@dataclass(frozen=True, slots=True)
class Schema:
    """Objects of a P4Info that this server can read or write."""

    tables: Mapping[int, Table]
    actions: Mapping[int, Action]
    profiles: Mapping[int, Profile]
    counters: Mapping[int, Counter]
    meters: Mapping[int, Meter]
    registers: Mapping[int, Register]
    actions_by_name: Mapping[str, Action]
    packet_out: ControllerHeader
    packet_in: ControllerHeader
    digests: Mapping[int, Digest] = field(default_factory=dict)
    value_sets: Mapping[int, ValueSet] = field(default_factory=dict)
    dropped: Mapping[int, str] = field(default_factory=dict)
    """What the P4Info declares and the compiled program no longer has, by id."""

    def table(self, table_id: int) -> Table:
        """Return a table. Raises RequestError, INVALID_ARGUMENT, for an unknown id."""
        return self._found(self.tables, "table", table_id)

    def action(self, action_id: int) -> Action:
        """Return an action. Raises RequestError, INVALID_ARGUMENT, for an unknown id."""
        return self._found(self.actions, "action", action_id)

    def profile(self, profile_id: int) -> Profile:
        """Return an action profile. Raises RequestError, INVALID_ARGUMENT, for an unknown id."""
        return self._found(self.profiles, "action profile", profile_id)

    def counter(self, counter_id: int) -> Counter:
        """Return a counter. Raises RequestError, INVALID_ARGUMENT, for an unknown id."""
        return self._found(self.counters, "counter", counter_id)

    def meter(self, meter_id: int) -> Meter:
        """Return a meter. Raises RequestError, INVALID_ARGUMENT, for an unknown id."""
        return self._found(self.meters, "meter", meter_id)

    def register(self, register_id: int) -> Register:
        """Return a register. Raises RequestError, INVALID_ARGUMENT, for an unknown id."""
        return self._found(self.registers, "register", register_id)

    def digest(self, digest_id: int) -> Digest:
        """Return a digest. Raises RequestError, INVALID_ARGUMENT, for an unknown id."""
        return self._found(self.digests, "digest", digest_id)

    def value_set(self, value_set_id: int) -> ValueSet:
        """Return a value set. Raises RequestError, INVALID_ARGUMENT, for an unknown id."""
        return self._found(self.value_sets, "value set", value_set_id)

    def _found(self, objects: Mapping[int, _Object], kind: str, object_id: int) -> _Object:
        if object_id in self.dropped:
            raise unimplemented(
                f"{self.dropped[object_id]} is not in the compiled program, because no packet can reach it"
            )
        return find_by_id(objects, kind, object_id)


def read_schema(p4info: p4i.P4Info) -> Schema:
    """Resolve a P4Info.

    Raises RequestError: INVALID_ARGUMENT for a duplicate id or a missing reference, UNIMPLEMENTED for a match kind of
    the architecture, a field without a width, and registers whose cells are not bit strings.
    """
    translated: dict[str, Texts | None] = {
        name: None if kind.translated_type.sdn_bitwidth else Texts()
        for name, kind in p4info.type_info.new_types.items()
        if kind.HasField("translated_type")
    }
    enum_bits = {name: kind.underlying_type.bitwidth for name, kind in p4info.type_info.serializable_enums.items()}
    actions = index_by_id(read_action(message, translated) for message in p4info.actions)
    profiles = index_by_id(read_profile(message) for message in p4info.action_profiles)
    counters = index_by_id(
        Counter(message.preamble.id, message.preamble.name, message.size) for message in p4info.counters
    )
    direct_counters = {message.direct_table_id: message.preamble.name for message in p4info.direct_counters}
    meters = index_by_id(Meter(message.preamble.id, message.preamble.name, message.size) for message in p4info.meters)
    registers = index_by_id(_read_register(message, enum_bits) for message in p4info.registers)
    direct_meters = {message.direct_table_id: message.preamble.name for message in p4info.direct_meters}
    tables = index_by_id(
        read_table(message, profiles, direct_counters, direct_meters, translated) for message in p4info.tables
    )
    schema = Schema(
        tables,
        actions,
        profiles,
        counters,
        meters,
        registers,
        {action.name: action for action in actions.values()},
        read_controller_header(p4info.controller_packet_metadata, PACKET_OUT, translated),
        read_controller_header(p4info.controller_packet_metadata, PACKET_IN, translated),
        index_by_id(read_digest(message, p4info.type_info) for message in p4info.digests),
        index_by_id(read_value_set(message, translated) for message in p4info.value_sets),
    )
    for table in tables.values():
        for action_id in table.scopes:
            schema.action(action_id)
    for table_id in (
        *direct_counters,
        *direct_meters,
        *(table_id for profile in profiles.values() for table_id in profile.table_ids),
    ):
        schema.table(table_id)
    return schema


def _read_register(message: p4i.Register, enum_bits: Mapping[str, int]) -> Register:
    name, cell = message.preamble.name, message.type_spec
    width_bits = cell.bitstring.bit.bitwidth or cell.bitstring.int.bitwidth
    if cell.HasField("serializable_enum"):
        width_bits = enum_bits.get(cell.serializable_enum.name, 0)
    if not width_bits:
        raise unimplemented(f"register {name}: cells that are not bit strings are not supported")
    return Register(message.preamble.id, name, message.size, width_bits)
