"""Entries of tables, action profiles and counters of an emulated switch, by name and with integer values."""

from dataclasses import dataclass
from typing import NamedTuple


class SwitchError(Exception):
    """A request that a switch refuses; it has changed nothing. Subclasses name the kind of error."""


class NotFoundError(SwitchError):
    """The entry, member or group does not exist."""


class AlreadyExistsError(SwitchError):
    """An entry with the same match and priority exists, or a member or group with the same id."""


class InvalidRequestError(SwitchError):
    """The request contradicts the program: an unknown name, a wrong number of fields, a missing member."""


class ResourceExhaustedError(SwitchError):
    """The table, profile or group is full."""


class FieldMatch(NamedTuple):
    """One field of a match: accepts packets whose field equals ``value`` under ``mask``.

    An exact match has a full mask, LPM a prefix mask, an omitted field mask 0.
    """

    value: int
    mask: int


@dataclass(frozen=True, slots=True, order=True)
class RangeMatch:
    """One field of a match: accepts packets whose field lies between ``low`` and ``high``, inclusive."""

    low: int
    high: int


@dataclass(frozen=True, slots=True)
class ActionCall:
    """An action of the program with its arguments in order.

    ``unused`` are those of parameters that only the P4Info has, for whoever reads the entry.
    """

    action: str
    arguments: tuple[int, ...] = ()
    unused: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class MemberReference:
    """Refers to a member of the table's action profile."""

    member_id: int


@dataclass(frozen=True, slots=True)
class GroupReference:
    """Refers to a group; its selector picks the member."""

    group_id: int


@dataclass(frozen=True, slots=True)
class WeightedAction:
    """One action of an action set; it counts ``weight`` times while its ``watch_port``, if any, is up."""

    call: ActionCall
    weight: int = 1
    watch_port: int | None = None


@dataclass(frozen=True, slots=True)
class ActionSet:
    """Actions that the selector picks from, written with their entry and used by it alone (one-shot)."""

    actions: tuple[WeightedAction, ...]


EntryAction = ActionCall | MemberReference | GroupReference | ActionSet


class EntryKey(NamedTuple):
    """Identity of an entry in its table; ``priority`` is 0 in tables whose entries cannot overlap."""

    match: tuple[FieldMatch | RangeMatch, ...]
    priority: int = 0


@dataclass(frozen=True, slots=True)
class CounterValue:
    """Content of a counter cell."""

    packets: int
    bytes: int
