"""Shape of a program's tables and of their slots, shared by compiled code and the control plane."""

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from emulator.compiler.expressions import first_words
from emulator.compiler.layout import Field, Json
from emulator.entries import ActionCall, EntryKey
from emulator.memory import COUNTER_WORDS, INDIRECT_WORDS, METER_WORDS


class MatchKind(StrEnum):
    """Kind of match of a key's field; the values are BMv2's names."""

    EXACT = "exact"
    LPM = "lpm"
    TERNARY = "ternary"
    RANGE = "range"
    OPTIONAL = "optional"


OVERLAPPING = frozenset({MatchKind.TERNARY, MatchKind.RANGE, MatchKind.OPTIONAL})
"""Kinds under which several entries may match a packet, so that each has a priority."""


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
    parameter_names: tuple[str, ...] = ()

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
        return any(field.kind in OVERLAPPING for field in self.key)

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
