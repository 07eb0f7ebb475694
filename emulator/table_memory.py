"""Entries of one table of one switch, in the memory that compiled code reads."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from emulator.cells import read_counter, write_counter
from emulator.compiler.tables import Table
from emulator.entries import (
    ActionCall,
    ActionSet,
    AlreadyExistsError,
    CounterValue,
    EntryAction,
    EntryKey,
    GroupReference,
    InvalidRequestError,
    MemberReference,
    NotFoundError,
    ResourceExhaustedError,
)
from emulator.keys import key_words
from emulator.memory import TO_GROUP, TO_MEMBER, Arena
from emulator.meters import MeterRates, read_rates, write_rates
from emulator.profile import EncodedSet, ProfileMemory, encode_call
from emulator.scanned_slots import ScannedSlots
from emulator.slots import TableSlots


class TableMemory:
    """Entries and the default action of a table; a method that fails raises a ``SwitchError`` and changes nothing.

    Args:
        arena: The memory.
        descriptor: Offset of the table's descriptor.
        table: The table.
        profile: The action profile that the table takes its actions from, None if it has its own.
        now_ps: The time, for entries that age.
    """

    def __init__(
        self,
        arena: Arena,
        descriptor: int,
        table: Table,
        profile: ProfileMemory | None,
        now_ps: Callable[[], int],
    ) -> None:
        self._arena = arena
        self._table = table
        self._profile = profile
        self._now_ps = now_ps
        self._slots = slots_of(arena, descriptor, table)
        self._entries: dict[EntryKey, EntryAction] = {}
        self._words: dict[EntryKey, tuple[int, ...]] = {}
        self._default: ActionCall | None = None
        self.restore_default()

    @property
    def entries(self) -> Mapping[EntryKey, EntryAction]:
        """Entries in order of insertion."""
        return MappingProxyType(self._entries)

    def free(self) -> None:
        """Return all words to the arena."""
        self._slots.free()

    def insert(self, key: EntryKey, action: EntryAction) -> None:
        """Add an entry."""
        words, encoded = key_words(self._table, key), self._encode(key, action)
        if key in self._entries:
            raise AlreadyExistsError(f"table {self._table.name!r} has this entry")
        if len(self._entries) >= self._table.size:
            raise ResourceExhaustedError(f"table {self._table.name!r} is full ({self._table.size} entries)")
        self._slots.insert(words, key.priority, self._place(key, encoded))
        self._entries[key], self._words[key] = action, words
        if self._table.ages:
            self._arena.words[self._hit_cell(key)] = self._now_ps()

    def modify(self, key: EntryKey, action: EntryAction) -> None:
        """Replace the action of an entry; its counter continues."""
        words, encoded = self._words_of(key), self._encode(key, action)
        self._slots.modify(words, key.priority, self._place(key, encoded))
        self._entries[key] = action

    def delete(self, key: EntryKey) -> None:
        """Remove an entry."""
        self._slots.delete(self._words_of(key), key.priority)
        if self._profile:
            self._profile.drop_set((self._table.name, key))
        del self._entries[key], self._words[key]

    def action(self, key: EntryKey) -> EntryAction:
        """Return the action of an entry."""
        self.require_entry(key)
        return self._entries[key]

    def require_entry(self, key: EntryKey) -> None:
        """Raise NotFoundError for an unknown entry."""
        self._words_of(key)

    def entry_at(self, slot: int) -> tuple[EntryKey, EntryAction]:
        """Return the entry whose slot is at an arena offset. Raises NotFoundError where there is none."""
        for key, action in self._entries.items():
            if self._slot_of(key) == slot:
                return key, action
        raise NotFoundError(f"table {self._table.name!r} has no entry at {slot}")

    # ---- the default action -----------------------------------------------------------------------------------------

    def set_default(self, action: ActionCall | None) -> None:
        """Replace the default action; None restores the program's own."""
        if self._table.has_constant_default:
            raise InvalidRequestError(f"the default action of table {self._table.name!r} is constant")
        if action is None:
            self.restore_default()
            return
        if self._profile:
            raise InvalidRequestError(
                f"table {self._table.name!r} takes its actions from a profile and has no default action"
            )
        self._slots.set_default(encode_call(self._table, action))
        self._default = action

    def default(self) -> ActionCall:
        """Return the default action."""
        if self._default is None:
            raise NotFoundError(f"table {self._table.name!r} has no default action")
        return self._default

    def restore_default(self) -> None:
        """Make the program's own default action the default again."""
        own, names = self._table.default, {action.number: action.name for action in self._table.actions}
        call = ActionCall(names[own[0]], own[1]) if own else None
        self._slots.set_default(encode_call(self._table, call) if call else None)
        self._default = call

    # ---- groups -----------------------------------------------------------------------------------------------------

    def require_unreferenced(self, reference: MemberReference | GroupReference) -> None:
        """Raise InvalidRequestError where an entry refers to a member or a group of the profile."""
        if reference in self._entries.values():
            raise InvalidRequestError(f"an entry of table {self._table.name!r} refers to {reference}")

    def follow_group(self, group_id: int, place: int) -> None:
        """Have the entries that refer to a group find it where it now is."""
        for key, action in self._entries.items():
            if action == GroupReference(group_id):
                self._slots.modify(self._words_of(key), key.priority, (TO_GROUP, place))

    # ---- what belongs to an entry -----------------------------------------------------------------------------------

    def counter(self, key: EntryKey) -> CounterValue:
        """Return an entry's direct counter."""
        return read_counter(self._arena, self._counter_cell(key))

    def set_counter(self, key: EntryKey, value: CounterValue) -> None:
        """Overwrite an entry's direct counter."""
        write_counter(self._arena, self._counter_cell(key), value)

    def meter(self, key: EntryKey) -> MeterRates | None:
        """Return the rates of an entry's meter; None makes all packets green."""
        return read_rates(self._arena, self._meter_cell(key))

    def set_meter(self, key: EntryKey, rates: MeterRates | None) -> None:
        """Set the rates of an entry's meter, and fill its buckets."""
        write_rates(self._arena, self._meter_cell(key), rates)

    def last_hit_ps(self, key: EntryKey) -> int:
        """Return the time of an entry's last hit, or of its insertion before the first one."""
        self.require_ages()
        return int(self._arena.words[self._hit_cell(key)])

    def require_ages(self) -> None:
        """Raise InvalidRequestError if the table's entries do not age."""
        if not self._table.ages:
            raise InvalidRequestError(f"the entries of table {self._table.name!r} do not age")

    # ---- inside -----------------------------------------------------------------------------------------------------

    def _words_of(self, key: EntryKey) -> tuple[int, ...]:
        """Return the words of an entry's key. Raises NotFoundError for an unknown entry."""
        words = self._words.get(key)
        if words is None:
            raise NotFoundError(f"table {self._table.name!r} has no such entry")
        return words

    def _slot_of(self, key: EntryKey) -> int:
        return self._slots.counter_offset(self._words_of(key), key.priority) - self._table.counter_offset

    def _counter_cell(self, key: EntryKey) -> int:
        if not self._table.has_counters:
            raise InvalidRequestError(f"table {self._table.name!r} has no direct counter")
        return self._slot_of(key) + self._table.counter_offset

    def _meter_cell(self, key: EntryKey) -> int:
        if not self._table.meter:
            raise InvalidRequestError(f"table {self._table.name!r} has no direct meter")
        return self._slot_of(key) + self._table.meter_offset

    def _hit_cell(self, key: EntryKey) -> int:
        return self._slot_of(key) + self._table.hit_offset

    def _encode(self, key: EntryKey, action: EntryAction) -> tuple[int, ...] | EncodedSet:
        has_selector = self._table.profile is not None and self._table.profile.selector
        match action:
            case ActionCall() if self._profile is None:
                return encode_call(self._table, action)
            case MemberReference(member_id) if self._profile:
                return TO_MEMBER, self._profile.member_place(member_id)
            case GroupReference(group_id) if self._profile and has_selector:
                return TO_GROUP, self._profile.group_place(group_id)
            case ActionSet() if self._profile and has_selector:
                return self._profile.encode_set((self._table.name, key), action)
        raise InvalidRequestError(f"table {self._table.name!r} does not take {type(action).__name__} as an action")

    def _place(self, key: EntryKey, encoded: tuple[int, ...] | EncodedSet) -> tuple[int, ...]:
        """Store an entry's action and return its words; this cannot fail."""
        owner = self._table.name, key
        if isinstance(encoded, EncodedSet):
            assert self._profile is not None
            return TO_GROUP, self._profile.place_set(owner, encoded)
        if self._profile:
            self._profile.drop_set(owner)
        return encoded


def slots_of(arena: Arena, descriptor: int, table: Table) -> TableSlots | ScannedSlots:
    """Return slots of the kind that the table's compiled code searches."""
    return ScannedSlots(arena, descriptor, table) if table.is_scanned else TableSlots(arena, descriptor, table)
