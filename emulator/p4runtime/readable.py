"""Entries as people write them: names of tables, fields and actions, and values such as ``10.0.1.0/24``.

Values are numbers, or text: ``255``, ``0xff``, ``10.0.0.1``, ``2000::1``, ``00:00:00:00:00:01``, ``true``. An LPM field
takes ``10.0.1.0/24`` or a pair of value and length, a ternary one ``10.0.0.1/&255.255.255.0`` or a pair of value and
mask, and a range ``1...5`` or a pair. A single value in a list is that value.

Names may leave out what no other object needs to be told apart: ``ipv4_lpm`` for ``MyIngress.ipv4_lpm``, and
``dstAddr`` for the field ``hdr.ipv4.dstAddr``.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import finsy
from finsy.proto import p4i, p4r

NO_VALUES: Mapping[str, Any] = {}
Replica = tuple[int, int]
"""An egress port and the instance of its copy."""


class EntryError(ValueError):
    """An entry that the program cannot have; the text names the table, field or action."""


class Readable:
    """Makes P4Runtime messages of what people write, by the names of a P4Info."""

    def __init__(self, p4info: p4i.P4Info) -> None:
        self.schema = finsy.P4Schema(p4info)
        self._p4info = p4info

    def table_entry(
        self,
        table: str,
        match: Mapping[str, Any] = NO_VALUES,
        action: str | None = None,
        parameters: Mapping[str, Any] = NO_VALUES,
        *,
        priority: int = 0,
        is_default: bool = False,
    ) -> p4r.TableEntry:
        """Return an entry of a table. Raises EntryError."""
        found = next(each for each in self._p4info.tables if each.preamble.name == self.table(table))
        name = found.preamble.name
        fields = {self._unique(key, f"field of table {name}", self._fields(found)): key for key in match}
        shown = {field: _plain(match[key]) for field, key in fields.items()}
        kinds = {each.name: each.match_type for each in found.match_fields}
        wildcards = [field for field, value in shown.items() if value is None]
        for field in wildcards:  # left out, they match everything
            if kinds[field] == p4i.MatchField.EXACT:
                raise EntryError(f"table {name}, field {field}: an exact field needs a value")
            del shown[field]
        call = None if action is None else self._action(found, action, parameters)
        entry = finsy.P4TableEntry(
            name, match=finsy.P4TableMatch(shown), action=call, priority=priority, is_default_action=is_default
        )
        return self._encoded(entry, f"table {name}").table_entry

    def multicast_group(self, group: int, replicas: Iterable[Replica]) -> p4r.PacketReplicationEngineEntry:
        """Return a multicast group. Raises EntryError."""
        entry = finsy.P4MulticastGroupEntry(group, replicas=list(replicas))
        return self._encoded(entry, f"multicast group {group}").packet_replication_engine_entry

    def clone_session(
        self, session: int, replicas: Iterable[Replica], packet_length_bytes: int = 0
    ) -> p4r.PacketReplicationEngineEntry:
        """Return a clone session; a length of 0 clones whole packets. Raises EntryError."""
        entry = finsy.P4CloneSessionEntry(session, replicas=list(replicas), packet_length_bytes=packet_length_bytes)
        return self._encoded(entry, f"clone session {session}").packet_replication_engine_entry

    def table(self, name: str) -> str:
        """Return the full name of a table. Raises EntryError."""
        return self._unique(name, "table", [table.preamble.name for table in self._p4info.tables])

    def object_name(self, name: str, kind: str) -> str:
        """Return the full name of one of the program's objects of a kind of P4Info, such as ``counters``.

        Raises EntryError.
        """
        names = [each.preamble.name for each in getattr(self._p4info, kind)]
        return self._unique(name, kind.removesuffix("s").replace("_", " "), names)

    def _action(self, table: p4i.Table, name: str, parameters: Mapping[str, Any]) -> finsy.P4TableAction:
        of_table = {reference.id for reference in table.action_refs}
        actions = {each.preamble.name: each for each in self._p4info.actions if each.preamble.id in of_table}
        full = self._unique(name, f"action of table {table.preamble.name}", actions)
        wanted = [parameter.name for parameter in actions[full].params]
        if parameters.keys() != set(wanted):
            listed = ", ".join(wanted) or "none"
            raise EntryError(f"action {full}: its parameters are {listed}; given are {', '.join(parameters) or 'none'}")
        values = {key: _plain(value) for key, value in parameters.items()}
        for parameter in actions[full].params:
            try:
                self.schema.actions[full].params[parameter.name].encode_param(values[parameter.name])
            except (ValueError, TypeError, OverflowError) as error:
                raise EntryError(f"action {full}, parameter {parameter.name}: {error}") from error
        return finsy.P4TableAction(full, **values)

    def _encoded(self, entry: Any, where: str) -> p4r.Entity:
        try:
            entity: p4r.Entity = entry.encode(self.schema)
        except (ValueError, TypeError, OverflowError) as error:
            text = str(error)
            raise EntryError(text if where.split()[-1] in text else f"{where}: {text}") from error
        return entity

    @staticmethod
    def _fields(table: p4i.Table) -> list[str]:
        return [field.name for field in table.match_fields]

    @staticmethod
    def _unique(name: str, kind: str, names: Iterable[str]) -> str:
        names = list(names)
        if name in names:
            return name
        found = [each for each in names if each.endswith(f".{name}")]
        if len(found) == 1:
            return found[0]
        if found:
            raise EntryError(f"there is more than one {kind} {name!r}: {', '.join(found)}")
        raise EntryError(f"there is no {kind} {name!r}; there is {', '.join(names) or 'none'}")


def _plain(value: Any) -> Any:
    """Return a value as ``finsy`` takes it: pairs as tuples, and what stands alone in a list as it is."""
    if isinstance(value, str) and value in ("true", "false"):
        return int(value == "true")
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return _plain(value[0]) if len(value) == 1 else tuple(_plain(each) for each in value)
    return value
