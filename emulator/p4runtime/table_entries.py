"""TableEntry: entries of tables and their default entries (P4Runtime specification, section 9.1)."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

from finsy.proto import p4r

from emulator.entries import ActionSet, CounterValue, EntryAction, EntryKey, NotFoundError
from emulator.p4runtime.errors import invalid_argument, permission_denied, unimplemented
from emulator.p4runtime.table_actions import decode_table_action, encode_table_action
from emulator.p4runtime.table_types import Table
from emulator.p4runtime.target import EntryMetadata, Target
from emulator.p4runtime.translate import (
    decode_action,
    decode_key,
    decode_match,
    decode_rates,
    encode_action,
    encode_key,
    encode_rates,
)

_NO_METADATA = EntryMetadata()
_PS_PER_NS = 1000


def write_table_entry(target: Target, kind: p4r.Update.Type.ValueType, message: p4r.TableEntry) -> None:
    """Insert, modify or delete an entry, or modify the default entry.

    Raises RequestError or SwitchError, and then changes nothing.
    """
    table = target.schema.table(message.table_id)
    if message.is_const:
        raise invalid_argument(f"table {table.name}: clients cannot set is_const")
    if message.is_default_action:
        _write_default(target, kind, table, message)
        return
    if not table.match_fields:
        raise invalid_argument(f"table {table.name} has no key and so no entries but its default")
    key = decode_key(table, message.match, message.priority)
    if kind == p4r.Update.DELETE:
        _refuse_constant(table)
        target.switch.delete(table.name, key)
        target.notes.entries.pop((table.name, key), None)
        return
    _refuse_unsupported(table, message)
    counter = decode_counter(message.counter_data) if message.HasField("counter_data") else None
    if counter is not None and table.direct_counter is None:
        raise invalid_argument(f"table {table.name} has no direct counter, but counter_data is given")
    if message.HasField("meter_config") and table.direct_meter is None:
        raise invalid_argument(f"table {table.name} has no direct meter, but meter_config is given")
    rates = decode_rates(message.meter_config) if message.HasField("meter_config") else None
    action = decode_table_action(target, table, message.action) if message.HasField("action") else None
    if kind == p4r.Update.INSERT:
        _refuse_constant(table)
        if action is None:
            raise invalid_argument(f"table {table.name}: an entry to insert needs an action")
        _refuse_mixture(target, table, key, action)
        target.switch.insert(table.name, key, action)
    elif action is not None:
        _refuse_constant(table)
        _refuse_mixture(target, table, key, action)
        target.switch.modify(table.name, key, action)
    else:
        target.switch.entry(table.name, key)
    if counter is not None:
        target.switch.set_direct_counter(table.name, key, counter)
    if table.direct_meter is not None:
        target.switch.set_direct_meter(table.name, key, rates)
    if table.has_idle_timeout:
        target.switch.set_idle_timeout(table.name, key, message.idle_timeout_ns * _PS_PER_NS)
    _note(target, table, key, message)


def read_table_entries(target: Target, request: p4r.TableEntry) -> Iterator[p4r.TableEntry]:
    """Return the entries, or the default entries, that a request selects.

    A counter is included if the request has ``counter_data`` and the table a direct counter; a meter's rates if the
    request has ``meter_config`` and the table a direct meter; the time since the last hit if the request has
    ``time_since_last_hit`` and the table's entries age. Raises RequestError.
    """
    if request.HasField("meter_counter_data"):
        raise unimplemented("counters by colour are not supported")
    if request.is_default_action:
        yield from _read_defaults(target, request)
        return
    for table, key, action in select_entries(target, request):
        metadata = target.notes.entries.get((table.name, key), _NO_METADATA)
        if request.metadata not in (b"", metadata.metadata):
            continue
        if request.controller_metadata not in (0, metadata.controller_metadata):
            continue
        entry = encode_key(table, key)
        entry.action.CopyFrom(encode_table_action(target.schema, action))
        if isinstance(action, ActionSet):
            entry.action.action_profile_action_set.action_selection_mode = metadata.selection_mode
            entry.action.action_profile_action_set.size_semantics = metadata.size_semantics
        if request.action.action.action_id not in (0, entry.action.action.action_id):
            continue
        entry.metadata = metadata.metadata
        entry.controller_metadata = metadata.controller_metadata
        entry.idle_timeout_ns = metadata.idle_timeout_ns
        entry.is_const = table.has_const_entries
        if request.HasField("time_since_last_hit") and table.has_idle_timeout:
            entry.time_since_last_hit.elapsed_ns = target.switch.idle_ps(table.name, key) // _PS_PER_NS
        if request.HasField("counter_data") and table.direct_counter is not None:
            value = target.switch.direct_counter(table.name, key)
            entry.counter_data.CopyFrom(encode_counter(value))
        if request.HasField("meter_config") and table.direct_meter is not None:
            rates = target.switch.direct_meter(table.name, key)
            if rates is not None:
                entry.meter_config.CopyFrom(encode_rates(rates))
        yield entry


def select_entries(target: Target, request: p4r.TableEntry) -> Iterator[tuple[Table, EntryKey, EntryAction]]:
    """Return the entries with the request's table, match and priority, each a wildcard if not set.

    Raises RequestError for a match or filter that the table cannot have.
    """
    for table in _selected_tables(target, request):
        if request.match and (request.priority or not table.has_priorities):
            key = decode_key(table, request.match, request.priority)
            with suppress(NotFoundError):
                yield table, key, target.switch.entry(table.name, key)
            return
        match = decode_match(table, request.match) if request.match else None
        for key, action in target.switch.entries(table.name):
            if match in (None, key.match) and request.priority in (0, key.priority):
                yield table, key, action


def decode_counter(message: p4r.CounterData) -> CounterValue:
    """Decode a counter. Raises RequestError, INVALID_ARGUMENT, for a negative count."""
    if message.packet_count < 0 or message.byte_count < 0:
        raise invalid_argument(f"a counter cannot be {min(message.packet_count, message.byte_count)}")
    return CounterValue(packets=message.packet_count, bytes=message.byte_count)


def encode_counter(value: CounterValue) -> p4r.CounterData:
    """Encode a counter."""
    return p4r.CounterData(packet_count=value.packets, byte_count=value.bytes)


def _selected_tables(target: Target, request: p4r.TableEntry) -> list[Table]:
    if request.table_id:
        tables = [target.schema.table(request.table_id)]
    elif request.match or request.priority or request.HasField("action") or _metadata_of(request) != _NO_METADATA:
        raise invalid_argument("a read of all tables (table_id 0) takes no other filter")
    else:
        return list(target.schema.tables.values())
    for table in tables:
        _refuse_idle_timeout(table, request)
    return tables


def _read_defaults(target: Target, request: p4r.TableEntry) -> Iterator[p4r.TableEntry]:
    if request.match or request.priority:
        raise invalid_argument("a default entry has no match and no priority")
    if request.idle_timeout_ns or request.HasField("time_since_last_hit"):
        raise invalid_argument("a default entry does not age")
    if request.HasField("counter_data"):
        raise unimplemented("the direct counter of a default entry is not supported")
    for table in _selected_tables(target, request):
        try:
            action = encode_action(target.schema, target.switch.default(table.name))
        except NotFoundError:
            # As on BMv2, a table that takes its actions from a profile has no default.
            continue
        metadata = target.notes.entries.get((table.name, None), _NO_METADATA)
        yield p4r.TableEntry(
            table_id=table.id,
            action=p4r.TableAction(action=action),
            is_default_action=True,
            is_const=table.has_const_default,
            metadata=metadata.metadata,
            controller_metadata=metadata.controller_metadata,
        )


def _write_default(target: Target, kind: p4r.Update.Type.ValueType, table: Table, message: p4r.TableEntry) -> None:
    if kind != p4r.Update.MODIFY:
        raise invalid_argument(f"table {table.name}: a default entry can only be modified")
    if message.match or message.priority:
        raise invalid_argument(f"table {table.name}: a default entry has no match and no priority")
    if table.has_const_default or table.profile is not None:
        raise permission_denied(f"table {table.name}: its default entry is constant")
    if message.HasField("counter_data"):
        raise unimplemented("the direct counter of a default entry is not supported")
    if message.HasField("meter_config"):
        raise unimplemented("the direct meter of a default entry is not supported")
    if message.idle_timeout_ns or message.HasField("time_since_last_hit"):
        raise invalid_argument(f"table {table.name}: its default entry does not age")
    _refuse_unsupported(table, message)
    if not message.HasField("action"):
        target.switch.set_default(table.name, None)
        target.notes.entries.pop((table.name, None), None)
        return
    if message.action.WhichOneof("type") != "action":
        raise invalid_argument(f"table {table.name}: its default entry takes an action")
    action = decode_action(target.schema, table, message.action.action, as_default=True)
    target.switch.set_default(table.name, action)
    _note(target, table, None, message)


def _refuse_mixture(target: Target, table: Table, key: EntryKey, action: EntryAction) -> None:
    """Refuse an entry whose profile has action sets and members or groups (section 9.2.3)."""
    for table_id in () if table.profile is None else table.profile.table_ids:
        for other, known in target.switch.entries(target.schema.table(table_id).name):
            if (table_id, other) != (table.id, key):
                if isinstance(known, ActionSet) != isinstance(action, ActionSet):
                    raise invalid_argument(
                        f"table {table.name}: entries with action sets cannot stand beside those with members or groups"
                    )
                break


def _note(target: Target, table: Table, key: EntryKey | None, message: p4r.TableEntry) -> None:
    metadata = _metadata_of(message)
    if not message.HasField("action"):
        known = target.notes.entries.get((table.name, key), _NO_METADATA)
        metadata = replace(metadata, selection_mode=known.selection_mode, size_semantics=known.size_semantics)
    if metadata == _NO_METADATA:
        target.notes.entries.pop((table.name, key), None)
    else:
        target.notes.entries[table.name, key] = metadata


def _metadata_of(message: p4r.TableEntry) -> EntryMetadata:
    kept = message.metadata, message.controller_metadata, message.idle_timeout_ns
    if message.action.WhichOneof("type") != "action_profile_action_set":
        return EntryMetadata(*kept)
    action_set = message.action.action_profile_action_set
    return EntryMetadata(*kept, action_set.action_selection_mode, action_set.size_semantics)


def _refuse_constant(table: Table) -> None:
    if table.has_const_entries:
        raise permission_denied(f"table {table.name}: its entries are constant")


def _refuse_unsupported(table: Table, message: p4r.TableEntry) -> None:
    _refuse_idle_timeout(table, message)
    if message.HasField("time_since_last_hit"):
        raise invalid_argument(f"table {table.name}: time_since_last_hit is only read")
    if message.idle_timeout_ns < 0:
        raise invalid_argument(f"table {table.name}: the idle timeout cannot be {message.idle_timeout_ns} ns")
    if message.HasField("meter_counter_data"):
        raise unimplemented(f"table {table.name}: meter_counter_data is not supported")


def _refuse_idle_timeout(table: Table, message: p4r.TableEntry) -> None:
    if not table.has_idle_timeout and (message.idle_timeout_ns or message.HasField("time_since_last_hit")):
        raise invalid_argument(f"table {table.name} has no idle timeout")
