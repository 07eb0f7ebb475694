"""What a table, an action profile or a counter of an emulated switch holds, by name and as integers."""

from dataclasses import dataclass
from typing import NamedTuple


class SwitchError(Exception):
    """A request that a switch refuses; it has changed nothing. The subclass says which kind of error it is."""


class NotFoundError(SwitchError):
    """The entry, member or group is not there."""


class AlreadyExistsError(SwitchError):
    """An entry with the same match and priority, or a member or group with the same id, is there."""


class InvalidRequestError(SwitchError):
    """The request contradicts the program: an unknown name, a wrong number of fields, a missing member…"""


class ResourceExhaustedError(SwitchError):
    """The table, profile or group is full."""


class FieldMatch(NamedTuple):
    """One field of a match: packets whose field equals ``value`` under ``mask``.

    Exact match has all bits set in the mask, LPM the leading ones, a field left out has mask 0.
    """

    value: int
    mask: int


@dataclass(frozen=True, slots=True, order=True)
class RangeMatch:
    """One field of a match: packets whose field is at least ``low`` and at most ``high``."""

    low: int
    high: int


@dataclass(frozen=True, slots=True)
class ActionCall:
    """An action of the program with its arguments, in order."""

    action: str
    arguments: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class MemberReference:
    """The action of one member of the table's action profile."""

    member_id: int


@dataclass(frozen=True, slots=True)
class GroupReference:
    """The action of the member that the selector picks from a group."""

    group_id: int


@dataclass(frozen=True, slots=True)
class WeightedAction:
    """One action of an action set; it counts ``weight`` times, and only while ``watch_port``, if any, is up."""

    call: ActionCall
    weight: int = 1
    watch_port: int | None = None


@dataclass(frozen=True, slots=True)
class ActionSet:
    """Actions that the selector picks from, written with their entry and known to it alone (one shot)."""

    actions: tuple[WeightedAction, ...]


EntryAction = ActionCall | MemberReference | GroupReference | ActionSet


class EntryKey(NamedTuple):
    """Identity of an entry in its table; ``priority`` is 0 where entries of the table cannot overlap."""

    match: tuple[FieldMatch | RangeMatch, ...]
    priority: int = 0


@dataclass(frozen=True, slots=True)
class CounterValue:
    """What a counter cell has counted."""

    packets: int
    bytes: int
