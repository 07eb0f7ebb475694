"""Tables and value sets of a P4Info, with the fields of their keys."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import cached_property
from typing import ClassVar

from finsy.proto import p4i

from emulator.compiler.tables import MatchKind
from emulator.p4runtime.action_types import Profile
from emulator.p4runtime.errors import invalid_argument, unimplemented
from emulator.p4runtime.objects_by_id import find_by_id, index_by_id
from emulator.p4runtime.texts import Texts


class ActionScope(Enum):
    """Where a table may use an action."""

    EVERYWHERE = auto()
    ENTRIES_ONLY = auto()
    DEFAULT_ONLY = auto()


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


def read_table(
    message: p4i.Table,
    profiles: Mapping[int, Profile],
    direct_counters: Mapping[int, str],
    direct_meters: Mapping[int, str],
    translated: Mapping[str, Texts | None],
) -> Table:
    """Return a table of a P4Info.

    Args:
        message: The table.
        profiles: The action profiles of the P4Info by id.
        direct_counters: Names of direct counters by the ids of their tables.
        direct_meters: Names of direct meters by the ids of their tables.
        translated: By name of each translated type, its texts, or None for numbers.

    Raises:
        RequestError: INVALID_ARGUMENT for two fields of one id, an unknown profile or scope; UNIMPLEMENTED for a match
            kind of the architecture, a field without a width, and a text under another match than exact or optional.
    """
    name = message.preamble.name
    owner = f"table {name}"
    fields = index_by_id((_match_field(owner, field, translated) for field in message.match_fields), owner)
    return Table(
        id=message.preamble.id,
        name=name,
        match_fields=tuple(fields.values()),
        scopes={reference.id: _scope(name, reference) for reference in message.action_refs},
        profile=find_by_id(profiles, "action profile", message.implementation_id)
        if message.implementation_id
        else None,
        direct_counter=direct_counters.get(message.preamble.id),
        direct_meter=direct_meters.get(message.preamble.id),
        has_const_entries=message.is_const_table,
        const_default_action_id=message.const_default_action_id,
        has_idle_timeout=message.idle_timeout_behavior != p4i.Table.NO_TIMEOUT,
        size=message.size,
    )


def read_value_set(message: p4i.ValueSet, translated: Mapping[str, Texts | None]) -> ValueSet:
    """Return a value set of a P4Info; it raises what ``read_table`` raises for fields."""
    owner = f"value set {message.preamble.name}"
    fields = index_by_id((_match_field(owner, field, translated) for field in message.match), owner)
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
