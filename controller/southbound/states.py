"""What a switch holds, whatever protocol it speaks: entries by identity, and updates that change them."""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum, auto
from typing import Generic, NamedTuple, TypeVar

EntryT = TypeVar("EntryT")


class EntryKind(IntEnum):
    """The kinds of entries; an entry refers only to entries of smaller kinds. No protocol has all of them."""

    SETTING = 0  # the default entry of a table, which can only be modified
    LEVEL = 1
    NEXT_HOP = 2
    MEMBER = 3
    GROUP = 4
    ROUTING = 5
    PASSAGE = 6  # what leads packets from table to table
    ADMISSION = 7  # which packets are let in
    RULE_GROUP = 8
    MEASURING = 9  # what counts by links what a job sends
    JOB = 10
    FLOW = 11


RULES = EntryKind.RULE_GROUP, EntryKind.MEASURING, EntryKind.JOB, EntryKind.FLOW
"""The kinds that a Plan asks for."""

DECISIONS = EntryKind.JOB, EntryKind.FLOW
"""The kinds of those that carry out one of its rules each."""

TRIED = EntryKind.NEXT_HOP, EntryKind.MEMBER, EntryKind.GROUP
"""The kinds of base entries that change nothing for packets before a route leads to them."""


class EntryKey(NamedTuple):
    """The identity of an entry on its switch: its kind, and what tells it from others of this kind."""

    kind: EntryKind
    identity: Hashable


State = Mapping[EntryKey, EntryT]
"""Entries of a switch by identity."""


class UpdateKind(Enum):
    """The effect of an update on its entry."""

    INSERT = auto()
    MODIFY = auto()
    DELETE = auto()


class Update(NamedTuple, Generic[EntryT]):
    """One update of a request to write."""

    kind: UpdateKind
    entity: EntryT


Stage = tuple[Update[EntryT], ...]
"""Updates that do not depend on one another: a switch may carry out those of one request in any order."""


def _fits(_: Iterable[EntryKey]) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class Meaning(Generic[EntryT]):
    """What entries of a protocol do, as far as keeping them in their desired state asks for it.

    Attributes:
        key_of: The identity of an entry.
        holds_same: Whether two entries with the same key do the same.
        next_hop_of: The next hop that a rule steers to; None if it steers nowhere, or is no rule.
        is_known_neighbour: Whether an entry leads to a known neighbour, in the place of one to an unknown neighbour.
        overflow: What a switch has no room for of entries with these keys; empty where they fit, or nobody knows.
    """

    key_of: Callable[[EntryT], EntryKey]
    holds_same: Callable[[EntryT, EntryT], bool]
    next_hop_of: Callable[[EntryT], int | None]
    is_known_neighbour: Callable[[EntryT, EntryT], bool]
    overflow: Callable[[Iterable[EntryKey]], str] = _fits

    def state_of(self, entries: Iterable[EntryT]) -> dict[EntryKey, EntryT]:
        """Return entries by identity."""
        return {self.key_of(entry): entry for entry in entries}


def without_levels(base: State[EntryT]) -> State[EntryT]:
    """Base entries without those that tell levels by marks."""
    return {key: entry for key, entry in base.items() if key.kind is not EntryKind.LEVEL}
