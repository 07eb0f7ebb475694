"""Slots of a table with ternary keys, in the order in which compiled code tries them."""

from bisect import bisect_left
from itertools import count

from emulator.compiler.tables import Table
from emulator.memory import SLOT_COUNT, SLOTS, USED, Arena
from emulator.slots import DefaultAction

_FIRST_SLOTS = 16


class ScannedSlots:
    """Entries by falling priority, then by age, without gaps.

    A key is the words of the values, then those of the masks.
    """

    def __init__(self, arena: Arena, descriptor: int, table: Table) -> None:
        self._arena = arena
        self._descriptor = descriptor
        self._table = table
        self._ages = count()
        self._order: list[tuple[int, int]] = []
        self._ranks: dict[tuple[tuple[int, ...], int], tuple[int, int]] = {}
        self._default = DefaultAction(arena, descriptor, table)
        self._allocate(_FIRST_SLOTS)

    def insert(self, key: tuple[int, ...], priority: int, action: tuple[int, ...]) -> None:
        """Add an entry; no entry may have this key and priority."""
        if len(self._order) == self._num_slots:
            self._grow()
        rank = -priority, next(self._ages)
        index = bisect_left(self._order, rank)
        start, end, width = self._place(index), self._place(len(self._order)), self._table.slot_words
        words = self._arena.words
        words[start + width : end + width] = words[start:end].copy()
        words[start : start + width] = 0
        words[start] = USED
        words[start + 1 : start + 1 + len(key)] = key
        self._order.insert(index, rank)
        self._ranks[key, priority] = rank
        self._write_action(start, action)
        self._write_count()

    def modify(self, key: tuple[int, ...], priority: int, action: tuple[int, ...]) -> None:
        """Replace the action of an existing entry."""
        self._write_action(self._place_of(key, priority), action)

    def delete(self, key: tuple[int, ...], priority: int) -> None:
        """Remove an existing entry."""
        start = self._place_of(key, priority)
        end, width = self._place(len(self._order)), self._table.slot_words
        words = self._arena.words
        words[start : end - width] = words[start + width : end].copy()
        self._order.remove(self._ranks.pop((key, priority)))
        self._write_count()

    def counter_offset(self, key: tuple[int, ...], priority: int) -> int:
        """Return the current arena offset of an entry's direct counter."""
        return self._place_of(key, priority) + self._table.counter_offset

    def set_default(self, action: tuple[int, ...] | None) -> None:
        """Replace the default action; None removes it."""
        self._default.set(action)

    def free(self) -> None:
        """Free everything; the descriptor is invalid afterwards."""
        self._arena.free(self._slots, self._num_slots * self._table.slot_words)
        self._default.free()

    def _place(self, index: int) -> int:
        return self._slots + index * self._table.slot_words

    def _place_of(self, key: tuple[int, ...], priority: int) -> int:
        return self._place(bisect_left(self._order, self._ranks[key, priority]))

    def _allocate(self, num_slots: int) -> None:
        self._num_slots = num_slots
        self._slots = self._arena.allocate(num_slots * self._table.slot_words)
        self._arena.words[self._descriptor + SLOTS] = self._slots
        self._write_count()

    def _grow(self) -> None:
        old, size = self._slots, self._num_slots * self._table.slot_words
        self._allocate(2 * self._num_slots)
        words = self._arena.words
        words[self._slots : self._slots + size] = words[old : old + size]
        self._arena.free(old, size)

    def _write_action(self, place: int, action: tuple[int, ...]) -> None:
        start = place + self._table.action_offset
        self._arena.words[start : start + len(action)] = action

    def _write_count(self) -> None:
        self._arena.words[self._descriptor + SLOT_COUNT] = len(self._order)
