"""Counter and register arrays and value sets of a switch, read and written by the control plane between two packets."""

from collections.abc import Sequence

from emulator.compiler.layout import WORD_BITS, words_of
from emulator.compiler.resources import Counter, Register
from emulator.compiler.value_sets import ValueSet
from emulator.entries import (
    AlreadyExistsError,
    CounterValue,
    FieldMatch,
    InvalidRequestError,
    RangeMatch,
    ResourceExhaustedError,
)
from emulator.memory import BYTES, COUNTER_WORDS, PACKETS, Arena

Member = tuple[FieldMatch | RangeMatch, ...]
"""A member of a value set."""


def read_counter(arena: Arena, cell: int) -> CounterValue:
    """Return the counter cell at an offset of the arena."""
    return CounterValue(int(arena.words[cell + PACKETS]), int(arena.words[cell + BYTES]))


def write_counter(arena: Arena, cell: int, value: CounterValue) -> None:
    """Overwrite the counter cell at an offset of the arena."""
    arena.words[cell + PACKETS] = value.packets
    arena.words[cell + BYTES] = value.bytes


class CounterMemory:
    """One indirect counter array; compiled code finds its cells through the word ``pointer``."""

    def __init__(self, arena: Arena, counter: Counter, pointer: int) -> None:
        self._arena = arena
        self._counter = counter
        self._place = arena.allocate(COUNTER_WORDS * counter.size)
        arena.words[pointer] = self._place

    def get(self, index: int) -> CounterValue:
        """Return a cell. Raises InvalidRequestError for an index out of range."""
        return read_counter(self._arena, self._place_of(index))

    def set(self, index: int, value: CounterValue) -> None:
        """Overwrite a cell. Raises InvalidRequestError for an index out of range."""
        write_counter(self._arena, self._place_of(index), value)

    def free(self) -> None:
        """Return all words to the arena."""
        self._arena.free(self._place, COUNTER_WORDS * self._counter.size)

    def _place_of(self, index: int) -> int:
        return self._place + COUNTER_WORDS * _required(f"counter {self._counter.name!r}", self._counter.size, index)


class RegisterMemory:
    """One register array; compiled code finds its cells through the word ``pointer``."""

    def __init__(self, arena: Arena, register: Register, pointer: int) -> None:
        self._arena = arena
        self._register = register
        self._place = arena.allocate(register.cell_words * register.size)
        arena.words[pointer] = self._place

    def get(self, index: int) -> int:
        """Return a cell. Raises InvalidRequestError for an index out of range."""
        cell = self._place_of(index)
        return sum(
            int(self._arena.words[cell + number]) << WORD_BITS * number for number in range(self._register.cell_words)
        )

    def set(self, index: int, value: int) -> None:
        """Overwrite a cell. Raises InvalidRequestError for an index out of range or a value that does not fit."""
        cell, bits = self._place_of(index), self._register.bits
        if not 0 <= value < 1 << bits:
            raise InvalidRequestError(f"{value} does not fit into the {bits} bits of register {self._register.name!r}")
        for number in range(self._register.cell_words):
            self._arena.words[cell + number] = value >> WORD_BITS * number & (1 << WORD_BITS) - 1

    def free(self) -> None:
        """Return all words to the arena."""
        self._arena.free(self._place, self._register.cell_words * self._register.size)

    def _place_of(self, index: int) -> int:
        where = f"register {self._register.name!r}"
        return self._place + self._register.cell_words * _required(where, self._register.size, index)


class ValueSetMemory:
    """One value set of the parser; compiled code finds its members through the word ``pointer``."""

    def __init__(self, arena: Arena, value_set: ValueSet, pointer: int) -> None:
        self._arena = arena
        self._set = value_set
        self._num_words = 1 + value_set.member_words * value_set.size
        self._place = arena.allocate(self._num_words)
        self._members: tuple[Member, ...] = ()
        arena.words[pointer] = self._place

    @property
    def members(self) -> tuple[Member, ...]:
        """Members: of each a match for every part of the key."""
        return self._members

    def replace(self, members: Sequence[Member]) -> None:
        """Replace all members; a key is in the set if all its parts match those of a member.

        Raises ResourceExhaustedError for too many, AlreadyExistsError for one given twice, InvalidRequestError for one
        that does not fit.
        """
        where = f"value set {self._set.name!r}"
        if len(members) > self._set.size:
            raise ResourceExhaustedError(f"{where} has room for {self._set.size} members, not {len(members)}")
        words = [len(members)]
        for member in members:
            if len(member) != len(self._set.widths_bits):
                raise InvalidRequestError(f"a member of {where} has {len(self._set.widths_bits)} matches")
            for match, bits in zip(member, self._set.widths_bits, strict=True):
                for value in _bounds(match, (1 << bits) - 1):
                    if not 0 <= value < 1 << bits:
                        raise InvalidRequestError(f"{where}: {value} does not fit into {bits} bits")
                    words += [value >> WORD_BITS * number & (1 << WORD_BITS) - 1 for number in range(words_of(bits))]
        if len({*members}) < len(members):
            raise AlreadyExistsError(f"{where}: a member is given twice")
        self._arena.words[self._place : self._place + len(words)] = words
        self._members = tuple(members)

    def free(self) -> None:
        """Return all words to the arena."""
        self._arena.free(self._place, self._num_words)


def _bounds(match: FieldMatch | RangeMatch, full: int) -> tuple[int, int, int]:
    """Return the lower end, the upper end and the mask of a match."""
    if isinstance(match, RangeMatch):
        return match.low, match.high, full
    return match.value, match.value, match.mask


def _required(where: str, size: int, index: int) -> int:
    if not 0 <= index < size:
        raise InvalidRequestError(f"{where} has {size} cells, no index {index}")
    return index
