"""Objects of a P4Info by id, with their references resolved."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum, auto
from functools import cached_property
from typing import ClassVar, Protocol, TypeVar

from finsy.proto import p4i

from emulator.p4runtime.controller_packets import PACKET_IN, PACKET_OUT, ControllerHeader, read_controller_header
from emulator.p4runtime.digest_types import Digest, read_digest
from emulator.p4runtime.errors import invalid_argument, unimplemented
from emulator.p4runtime.texts import Texts


class MatchKind(StrEnum):
    """Comparison of a match field; the values are BMv2's names."""

    EXACT = "exact"
    LPM = "lpm"
    TERNARY = "ternary"
    RANGE = "range"
    OPTIONAL = "optional"


class ActionScope(Enum):
    """Where a table may use an action."""

    EVERYWHERE = auto()
    ENTRIES_ONLY = auto()
    DEFAULT_ONLY = auto()


@dataclass(frozen=True)
class MatchField:
    """One field of the key of ``owner``, a table or a value set.

    Its type in the program may have another width if ``is_translated``, and its values are ``texts`` where there are
    such. A width of 0: the P4Info says none.
    """

    id: int
    name: str
    width_bits: int
    kind: MatchKind
    owner: str
    is_translated: bool = False
    texts: Texts | None = field(default=None, compare=False)

    @cached_property
    def place(self) -> str:
        """Name of the field in error messages."""
        return f"{self.owner}, field {self.name}"

    @cached_property
    def full_mask(self) -> int:
        """Mask of an exact match."""
        return (1 << self.width_bits) - 1


@dataclass(frozen=True)
class Parameter:
    """One parameter that the control plane gives to an action; see MatchField for ``is_translated``.

    The compiled action does not have it if ``is_dropped``, because it does not use it.
    """

    id: int
    name: str
    width_bits: int
    action: str
    is_translated: bool = False
    is_dropped: bool = False
    texts: Texts | None = field(default=None, compare=False)

    @cached_property
    def place(self) -> str:
        """Name of the parameter in error messages."""
        return f"action {self.action}, parameter {self.name}"


@dataclass(frozen=True)
class Action:
    """An action; ``parameters`` are in the program's order."""

    id: int
    name: str
    parameters: tuple[Parameter, ...]

    @cached_property
    def parameter_ids(self) -> frozenset[int]:
        """Ids of all parameters."""
        return frozenset(parameter.id for parameter in self.parameters)


@dataclass(frozen=True, slots=True)
class Profile:
    """An action profile, or an action selector if ``has_selector``.

    The size of a group is the sum of its weights, or the number of its members if ``counts_members``. No weight may
    exceed ``max_weight`` (0: any may).
    """

    id: int
    name: str
    has_selector: bool
    size: int
    max_group_size: int
    table_ids: tuple[int, ...]
    counts_members: bool = False
    max_weight: int = 0

    def group_size(self, weights: Collection[int]) -> int:
        """Return the size of a group of members with these weights."""
        return len(weights) if self.counts_members else sum(weights)


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


@dataclass(frozen=True)
class Matched:
    """Something with a key; ``match_fields`` are in its order."""

    id: int
    name: str
    match_fields: tuple[MatchField, ...]
    kind: ClassVar[str]

    @cached_property
    def place(self) -> str:
        """Name of the object in error messages."""
        return f"{self.kind} {self.name}"

    @cached_property
    def field_ids(self) -> frozenset[int]:
        """Ids of all fields of the key."""
        return frozenset(field.id for field in self.match_fields)


@dataclass(frozen=True)
class ValueSet(Matched):
    """A value set of the parser."""

    kind = "value set"
    size: int


@dataclass(frozen=True)
class Table(Matched):
    """A table; ``scopes`` has every action it may use."""

    kind = "table"
    scopes: Mapping[int, ActionScope]
    profile: Profile | None
    direct_counter: str | None
    direct_meter: str | None
    has_const_entries: bool
    const_default_action_id: int
    has_idle_timeout: bool
    size: int

    @property
    def has_const_default(self) -> bool:
        """Whether the default action is constant."""
        return self.const_default_action_id != 0

    @cached_property
    def has_priorities(self) -> bool:
        """Whether entries may overlap, so that each needs a priority."""
        return any(field.kind in _OVERLAPPING for field in self.match_fields)


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

    def _found(self, objects: Mapping[int, "_Object"], kind: str, object_id: int) -> "_Object":
        if object_id in self.dropped:
            raise unimplemented(
                f"{self.dropped[object_id]} is not in the compiled program, because no packet can reach it"
            )
        return _by_id(objects, kind, object_id)


_OVERLAPPING = frozenset({MatchKind.TERNARY, MatchKind.RANGE, MatchKind.OPTIONAL})
_MATCH_KINDS = {
    p4i.MatchField.EXACT: MatchKind.EXACT,
    p4i.MatchField.LPM: MatchKind.LPM,
    p4i.MatchField.TERNARY: MatchKind.TERNARY,
    p4i.MatchField.RANGE: MatchKind.RANGE,
    p4i.MatchField.OPTIONAL: MatchKind.OPTIONAL,
}
_SCOPES = {
    p4i.ActionRef.TABLE_AND_DEFAULT: ActionScope.EVERYWHERE,
    p4i.ActionRef.TABLE_ONLY: ActionScope.ENTRIES_ONLY,
    p4i.ActionRef.DEFAULT_ONLY: ActionScope.DEFAULT_ONLY,
}


def read_schema(p4info: p4i.P4Info) -> Schema:
    """Resolve a P4Info.

    Raises RequestError: INVALID_ARGUMENT for a duplicate id or a missing reference, UNIMPLEMENTED for a match kind of
    the architecture, groups whose size is not the sum of weights, and text values.
    """
    translated: dict[str, Texts | None] = {
        name: None if kind.translated_type.sdn_bitwidth else Texts()
        for name, kind in p4info.type_info.new_types.items()
        if kind.HasField("translated_type")
    }
    enum_bits = {name: kind.underlying_type.bitwidth for name, kind in p4info.type_info.serializable_enums.items()}
    actions = _unique(_action(message, translated) for message in p4info.actions)
    profiles = _unique(_profile(message) for message in p4info.action_profiles)
    counters = _unique(Counter(message.preamble.id, message.preamble.name, message.size) for message in p4info.counters)
    direct_counters = {message.direct_table_id: message.preamble.name for message in p4info.direct_counters}
    meters = _unique(Meter(message.preamble.id, message.preamble.name, message.size) for message in p4info.meters)
    registers = _unique(_register(message, enum_bits) for message in p4info.registers)
    direct_meters = {message.direct_table_id: message.preamble.name for message in p4info.direct_meters}
    tables = _unique(_table(message, profiles, direct_counters, direct_meters, translated) for message in p4info.tables)
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
        _unique(read_digest(message, p4info.type_info) for message in p4info.digests),
        _unique(_value_set(message, translated) for message in p4info.value_sets),
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


def _action(message: p4i.Action, translated: Mapping[str, Texts | None]) -> Action:
    name = message.preamble.name
    parameters = _unique(
        (
            Parameter(
                *(parameter.id, parameter.name, parameter.bitwidth, name),
                is_translated=parameter.type_name.name in translated,
                texts=translated.get(parameter.type_name.name),
            )
            for parameter in message.params
        ),
        f"action {name}",
    )
    return Action(message.preamble.id, name, tuple(parameters.values()))


def _profile(message: p4i.ActionProfile) -> Profile:
    name = message.preamble.name
    return Profile(
        message.preamble.id,
        name,
        message.with_selector,
        message.size,
        message.max_group_size,
        tuple(message.table_ids),
        message.HasField("sum_of_members"),
        1 if message.weights_disallowed else message.sum_of_members.max_member_weight,
    )


def _register(message: p4i.Register, enum_bits: Mapping[str, int]) -> Register:
    name, cell = message.preamble.name, message.type_spec
    width_bits = cell.bitstring.bit.bitwidth or cell.bitstring.int.bitwidth
    if cell.HasField("serializable_enum"):
        width_bits = enum_bits.get(cell.serializable_enum.name, 0)
    if not width_bits:
        raise unimplemented(f"register {name}: cells that are not bit strings are not supported")
    return Register(message.preamble.id, name, message.size, width_bits)


def _table(
    message: p4i.Table,
    profiles: Mapping[int, Profile],
    direct_counters: Mapping[int, str],
    direct_meters: Mapping[int, str],
    translated: Mapping[str, Texts | None],
) -> Table:
    name = message.preamble.name
    owner = f"table {name}"
    fields = _unique((_match_field(owner, field, translated) for field in message.match_fields), owner)
    return Table(
        id=message.preamble.id,
        name=name,
        match_fields=tuple(fields.values()),
        scopes={reference.id: _scope(name, reference) for reference in message.action_refs},
        profile=_by_id(profiles, "action profile", message.implementation_id) if message.implementation_id else None,
        direct_counter=direct_counters.get(message.preamble.id),
        direct_meter=direct_meters.get(message.preamble.id),
        has_const_entries=message.is_const_table,
        const_default_action_id=message.const_default_action_id,
        has_idle_timeout=message.idle_timeout_behavior != p4i.Table.NO_TIMEOUT,
        size=message.size,
    )


def _value_set(message: p4i.ValueSet, translated: Mapping[str, Texts | None]) -> ValueSet:
    owner = f"value set {message.preamble.name}"
    fields = _unique((_match_field(owner, field, translated) for field in message.match), owner)
    return ValueSet(message.preamble.id, message.preamble.name, tuple(fields.values()), message.size)


def _scope(table: str, message: p4i.ActionRef) -> ActionScope:
    scope = _SCOPES.get(message.scope)
    if scope is None:
        raise invalid_argument(f"table {table}: action {message.id:#010x} has an unknown scope")
    return scope


def _match_field(owner: str, message: p4i.MatchField, translated: Mapping[str, Texts | None]) -> MatchField:
    kind = _MATCH_KINDS.get(message.match_type)
    if kind is None:
        raise unimplemented(f"{owner}: the match kind of field {message.name} is not supported")
    texts = translated.get(message.type_name.name)
    if message.bitwidth < 0 or (not message.bitwidth and message.HasField("type_name") and texts is None):
        raise unimplemented(f"{owner}: field {message.name} has no width, and is no text")
    if texts is not None and kind not in (MatchKind.EXACT, MatchKind.OPTIONAL):
        raise unimplemented(f"{owner}: the {kind} match of field {message.name}, a text, is not supported")
    is_translated = message.type_name.name in translated
    return MatchField(message.id, message.name, message.bitwidth, kind, owner, is_translated, texts)


class _Named(Protocol):
    @property
    def id(self) -> int: ...
    @property
    def name(self) -> str: ...


_Object = TypeVar("_Object")
_NamedObject = TypeVar("_NamedObject", bound=_Named)


def _unique(objects: Iterable[_NamedObject], where: str = "P4Info") -> dict[int, _NamedObject]:
    by_id: dict[int, _NamedObject] = {}
    for item in objects:
        if item.id in by_id:
            raise invalid_argument(f"{where}: {by_id[item.id].name} and {item.name} have the same id {item.id:#010x}")
        by_id[item.id] = item
    return by_id


def _by_id(objects: Mapping[int, _Object], kind: str, object_id: int) -> _Object:
    try:
        return objects[object_id]
    except KeyError:
        raise invalid_argument(f"the P4Info has no {kind} with id {object_id:#010x}") from None
