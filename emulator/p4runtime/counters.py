"""CounterEntry and DirectCounterEntry (P4Runtime specification, section 9.3)."""

from collections.abc import Iterator

from finsy.proto import p4r

from emulator.p4runtime.cells import require_modify, selected_cells
from emulator.p4runtime.errors import invalid_argument, not_found, unimplemented
from emulator.p4runtime.table_entries import decode_counter, encode_counter, select_entries
from emulator.p4runtime.table_types import Table
from emulator.p4runtime.target import Target
from emulator.p4runtime.translate import decode_key, encode_key


def write_counter(target: Target, kind: p4r.Update.Type.ValueType, message: p4r.CounterEntry) -> None:
    """Set a cell, or all cells if the index is not set; does nothing without data. Raises RequestError."""
    require_modify(kind, "a counter entry")
    counter = target.schema.counter(message.counter_id)
    indices = selected_cells(f"counter {counter.name}", counter.size, message)
    if not message.HasField("data"):
        return
    value = decode_counter(message.data)
    for index in indices:
        target.switch.set_counter(counter.name, index, value)


def read_counters(target: Target, request: p4r.CounterEntry) -> Iterator[p4r.CounterEntry]:
    """Return the cells that a request selects; id 0 selects all counters, no index all cells. Raises RequestError."""
    if request.counter_id:
        counters = [target.schema.counter(request.counter_id)]
    elif request.HasField("index"):
        raise invalid_argument("a read of all counters (counter_id 0) takes no index")
    else:
        counters = list(target.schema.counters.values())
    for counter in counters:
        for index in selected_cells(f"counter {counter.name}", counter.size, request):
            data = encode_counter(target.switch.counter(counter.name, index))
            yield p4r.CounterEntry(counter_id=counter.id, index=p4r.Index(index=index), data=data)


def write_direct_counter(target: Target, kind: p4r.Update.Type.ValueType, message: p4r.DirectCounterEntry) -> None:
    """Set the counter of a table entry; does nothing without data. Raises RequestError or SwitchError."""
    require_modify(kind, "a direct counter entry")
    entry = message.table_entry
    table = _counted_table(target, entry)
    _refuse_default(entry)
    key = decode_key(table, entry.match, entry.priority)
    target.switch.entry(table.name, key)
    if message.HasField("data"):
        target.switch.set_direct_counter(table.name, key, decode_counter(message.data))


def read_direct_counters(target: Target, request: p4r.DirectCounterEntry) -> Iterator[p4r.DirectCounterEntry]:
    """Return the counters of the table entries that a request selects, with wildcards as for table entries.

    Raises RequestError, NOT_FOUND for a whole key without an entry.
    """
    selector = request.table_entry
    _refuse_default(selector)
    if selector.table_id:
        _counted_table(target, selector)
    found = False
    for table, key, _ in select_entries(target, selector):
        if table.direct_counter is not None:
            data = encode_counter(target.switch.direct_counter(table.name, key))
            yield p4r.DirectCounterEntry(table_entry=encode_key(table, key), data=data)
            found = True
    if selector.match and not found:
        raise not_found(f"table {target.schema.table(selector.table_id).name} has no such entry")


def _counted_table(target: Target, entry: p4r.TableEntry) -> Table:
    table = target.schema.table(entry.table_id)
    if table.direct_counter is None:
        raise invalid_argument(f"table {table.name} has no direct counter")
    return table


def _refuse_default(entry: p4r.TableEntry) -> None:
    if entry.is_default_action:
        raise unimplemented("the direct counter of a default entry is not supported")
