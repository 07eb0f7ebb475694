"""Slots of one table of one switch: the hash table that the control plane writes and compiled code searches."""

from emulator.compiler.tables import Table
from emulator.memory import (
    DEFAULT,
    DELETED,
    EMPTY,
    NUM_ENTRIES,
    NUM_PREFIXES,
    PREFIXES,
    SLOT_MASK,
    SLOTS,
    USED,
    Arena,
    key_hash,
)

_FIRST_SLOTS = 16


class DefaultAction:
    """Default action of a table, in a block of its own that the table's descriptor points to."""

    def __init__(self, arena: Arena, descriptor: int, table: Table) -> None:
        self._arena = arena
        self._pointer = descriptor + DEFAULT
        self._num_words = table.action_words

    def set(self, action: tuple[int, ...] | None) -> None:
        """Replace the default action; None removes it."""
        if action is None:
            self.free()
            return
        if self._arena.words[self._pointer] == 0:
            offset = self._arena.allocate(self._num_words)
            self._arena.words[self._pointer] = offset
        offset = int(self._arena.words[self._pointer])
        self._arena.words[offset : offset + len(action)] = action

    def free(self) -> None:
        """Remove the default action and free the block."""
        if self._arena.words[self._pointer]:
            self._arena.free(int(self._arena.words[self._pointer]), self._num_words)
            self._arena.words[self._pointer] = 0


class TableSlots:
    """Open addressing over a power of two of slots, at most half of them used; deleted slots stay marked."""

    def __init__(self, arena: Arena, descriptor: int, table: Table) -> None:
        self._arena = arena
        self._descriptor = descriptor
        self._table = table
        self._places: dict[tuple[int, ...], int] = {}
        self._default = DefaultAction(arena, descriptor, table)
        self._allocate(_FIRST_SLOTS)
        self._prefixes: dict[tuple[int, ...], int] = {}
        if table.lpm_field:
            self._write(PREFIXES, arena.allocate(self._prefix_words))

    def insert(self, key: tuple[int, ...], _priority: int, action: tuple[int, ...]) -> None:
        """Add an entry with a new key; an LPM table's key ends with the prefix mask."""
        if 2 * (self._taken + 1) > self._num_slots:
            self._rebuild()
        self._place(key, action)
        self._write(NUM_ENTRIES, len(self._places))
        if self._table.lpm_field:
            self._count_prefix(key[self._table.value_words :], 1)

    def modify(self, key: tuple[int, ...], _priority: int, action: tuple[int, ...]) -> None:
        """Replace the action of an existing entry."""
        self._write_action(self._places[key], action)

    def delete(self, key: tuple[int, ...], _priority: int) -> None:
        """Remove an existing entry."""
        self._arena.words[self._places.pop(key)] = DELETED
        self._write(NUM_ENTRIES, len(self._places))
        if self._table.lpm_field:
            self._count_prefix(key[self._table.value_words :], -1)

    def counter_offset(self, key: tuple[int, ...], _priority: int) -> int:
        """Return the arena offset of an entry's direct counter."""
        return self._places[key] + self._table.counter_offset

    def set_default(self, action: tuple[int, ...] | None) -> None:
        """Replace the default action; None removes it."""
        self._default.set(action)

    def free(self) -> None:
        """Free everything; the descriptor is invalid afterwards."""
        words = self._arena.words
        self._arena.free(self._slots, self._num_slots * self._table.slot_words)
        if self._table.lpm_field:
            self._arena.free(int(words[self._descriptor + PREFIXES]), self._prefix_words)
            self._write(NUM_PREFIXES, 0)
        self._default.free()
        self._write(NUM_ENTRIES, 0)

    def _allocate(self, num_slots: int) -> None:
        self._num_slots, self._taken = num_slots, 0
        self._slots = self._arena.allocate(num_slots * self._table.slot_words)
        self._write(SLOTS, self._slots)
        self._write(SLOT_MASK, num_slots - 1)

    def _rebuild(self) -> None:
        old_slots, old_words = self._slots, self._num_slots * self._table.slot_words
        places, self._places = self._places, {}
        self._allocate(4 * _FIRST_SLOTS if len(places) < _FIRST_SLOTS else 1 << (4 * len(places)).bit_length())
        width = self._table.slot_words
        for key, place in places.items():
            words = self._arena.words
            new = self._find_free(key)
            words[new : new + width] = words[place : place + width]
            self._places[key] = new
            self._taken += 1
        self._arena.free(old_slots, old_words)

    def _find_free(self, key: tuple[int, ...]) -> int:
        position = (key_hash(key) & 0x7FFF_FFFF) & self._num_slots - 1
        while True:
            place = self._slots + position * self._table.slot_words
            if self._arena.words[place] == EMPTY:
                return place
            position = position + 1 & self._num_slots - 1

    def _place(self, key: tuple[int, ...], action: tuple[int, ...]) -> None:
        place = self._find_free(key)
        words = self._arena.words
        words[place + 1 : place + 1 + len(key)] = key
        self._write_action(place, action)
        words[place] = USED
        self._places[key] = place
        self._taken += 1

    def _write_action(self, place: int, action: tuple[int, ...]) -> None:
        start = place + self._table.action_offset
        self._arena.words[start : start + len(action)] = action

    def _write(self, column: int, value: int) -> None:
        self._arena.words[self._descriptor + column] = value

    @property
    def _prefix_words(self) -> int:
        """Number of words for the masks of prefixes of every length."""
        assert self._table.lpm_field is not None
        field = self._table.lpm_field.field
        return (field.bits + 1) * len(field.words)

    def _count_prefix(self, prefix: tuple[int, ...], change: int) -> None:
        self._prefixes[prefix] = self._prefixes.get(prefix, 0) + change
        if self._prefixes[prefix] == 0:
            del self._prefixes[prefix]
        longest_first = sorted(self._prefixes, key=lambda words: words[::-1], reverse=True)
        start = int(self._arena.words[self._descriptor + PREFIXES])
        flat = [word for words in longest_first for word in words]
        self._arena.words[start : start + len(flat)] = flat
        self._write(NUM_PREFIXES, len(longest_first))
