"""Tables: entries that a control plane writes, and what a packet finds."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tests.p4src.tna.externs import DirectCounter, Values

Run = Callable[..., None]


@dataclass(frozen=True, slots=True)
class KeyField:
    """One field of a key; match kinds are P4's."""

    name: str
    bits: int
    match_kind: str


@dataclass(frozen=True, slots=True)
class TableAction:
    """An action of a table: what its entries and the IR call it, and the names of its arguments."""

    name: str
    ir_name: str
    run: Run
    parameters: tuple[str, ...]


@dataclass(slots=True)
class Entry:
    """An entry: the bits that it wants of a key, and what it does. The lowest ``order`` of those that match wins."""

    value: int
    mask: int
    order: tuple[int, int]
    name: str
    run: Run
    arguments: tuple[int, ...]
    counted: list[int] = field(default_factory=lambda: [0, 0])


class Table:
    """A table of a program; ``ran`` is the name that the IR gives to the action that the last packet ran."""

    def __init__(
        self,
        name: str,
        key: Sequence[KeyField],
        key_of: Callable[[Values], int],
        actions: Sequence[TableAction],
        counter: DirectCounter | None,
    ) -> None:
        self.name = name
        self.key = tuple(key)
        self.actions = {action.name: action for action in actions}
        self.ran = ""
        self._names = {action.run: action.ir_name for action in actions}
        self._key_of = key_of
        self._counter = counter
        self._is_exact = all(part.match_kind == "exact" for part in key)
        self._exact: dict[int, Entry] = {}
        self._entries: list[Entry] = []
        self._default: tuple[Run, tuple[int, ...]] | None = None

    def insert(
        self, match: Sequence[tuple[int, int]], action: str, arguments: Sequence[int] = (), priority: int = 0
    ) -> Entry:
        """Add an entry of one (value, mask) for each field; of those that match, the highest priority wins.

        Raises ``ValueError`` where number of fields or arguments is wrong, ``KeyError`` for an unknown action.
        """
        value = mask = 0
        for part, (wanted, bits) in zip(self.key, match, strict=True):
            value, mask = value << part.bits | wanted & bits, mask << part.bits | bits
        run = self._checked(action, arguments)
        entry = Entry(value, mask, (-priority, -mask.bit_count()), action, run, tuple(arguments))
        if self._is_exact:
            self._exact[value] = entry
        else:
            self._entries = sorted([*self._entries, entry], key=lambda found: found.order)
        return entry

    def set_default(self, action: str, arguments: Sequence[int] = ()) -> None:
        """What packets without an entry do; raises like ``insert``."""
        self._default = self._checked(action, arguments), tuple(arguments)

    def _checked(self, action: str, arguments: Sequence[int]) -> Run:
        known = self.actions[action]
        if len(known.parameters) != len(arguments):
            raise ValueError(f"{action} takes {len(known.parameters)} arguments, not {len(arguments)}")
        return known.run

    def apply(self, values: Values) -> bool:
        """Run the action for a packet; whether an entry has matched."""
        entry = self._found(self._key_of(values)) if self.key else None
        if entry is not None:
            if self._counter is not None:
                self._counter.cell = entry.counted
            run, arguments = entry.run, entry.arguments
        elif self._default is not None:
            if self._counter is not None:
                self._counter.cell = [0, 0]
            run, arguments = self._default
        else:
            self.ran = ""
            return False
        self.ran = self._names[run]
        run(values, *arguments)
        return entry is not None

    def _found(self, key: int) -> Entry | None:
        if self._is_exact:
            return self._exact.get(key)
        return next((entry for entry in self._entries if key & entry.mask == entry.value), None)
