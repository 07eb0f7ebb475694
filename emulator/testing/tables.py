"""A table of a switch under test: entries by names, with values as people write them."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from finsy import P4TableEntry
from finsy.proto import p4r

from emulator.entries import CounterValue
from emulator.p4runtime.readable import NO_VALUES

if TYPE_CHECKING:
    from emulator.testing.switches import Switch


class Table:
    """A table. Names and values are those of ``emulator.p4runtime.readable``."""

    def __init__(self, switch: "Switch", name: str) -> None:
        self.name = name
        self._switch = switch

    def add(
        self,
        match: Mapping[str, Any] = NO_VALUES,
        action: str | None = None,
        *,
        priority: int = 0,
        **parameters: Any,
    ) -> None:
        """Insert an entry.

            switch.table("routes").add({"destination": "10.0.1.0/24"}, "forward", port=1, next_hop="00:00:00:00:01:01")

        Raises EntryError where the program has no such entry, and AssertionError where the switch refuses it.
        """
        self._write(p4r.Update.INSERT, match, action, parameters, priority)

    def modify(
        self,
        match: Mapping[str, Any] = NO_VALUES,
        action: str | None = None,
        *,
        priority: int = 0,
        **parameters: Any,
    ) -> None:
        """Give an entry another action. Raises as ``add`` does."""
        self._write(p4r.Update.MODIFY, match, action, parameters, priority)

    def delete(self, match: Mapping[str, Any] = NO_VALUES, *, priority: int = 0) -> None:
        """Delete an entry. Raises as ``add`` does."""
        self._write(p4r.Update.DELETE, match, None, {}, priority)

    def set_default(self, action: str, **parameters: Any) -> None:
        """Set the action of packets that match no entry. Raises as ``add`` does."""
        readable = self._switch.readable
        entry = readable.table_entry(self.name, {}, action, parameters, is_default=True)
        self._switch.write(p4r.Update(type=p4r.Update.MODIFY, entity=p4r.Entity(table_entry=entry)))

    def entries(self) -> list[P4TableEntry]:
        """Return the entries, as finsy has them."""
        request = P4TableEntry(self.name).encode(self._switch.readable.schema)
        found = self._switch.read(request)
        return [P4TableEntry.decode(entity, self._switch.readable.schema) for entity in found]

    def counter(self, match: Mapping[str, Any] = NO_VALUES, *, priority: int = 0) -> CounterValue:
        """Return an entry's direct counter. Raises as ``add`` does."""
        entry = self._switch.readable.table_entry(self.name, match, priority=priority)
        request = p4r.Entity(direct_counter_entry=p4r.DirectCounterEntry(table_entry=entry))
        (found,) = self._switch.read(request)
        data = found.direct_counter_entry.data
        return CounterValue(data.packet_count, data.byte_count)

    def _write(
        self, kind: Any, match: Mapping[str, Any], action: str | None, parameters: Mapping[str, Any], priority: int
    ) -> None:
        make: Callable[..., p4r.TableEntry] = self._switch.readable.table_entry
        entry = make(self.name, match, action, parameters, priority=priority)
        self._switch.write(p4r.Update(type=kind, entity=p4r.Entity(table_entry=entry)))
