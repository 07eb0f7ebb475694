"""MeterEntry and DirectMeterEntry (P4Runtime specification, section 9.4)."""

from collections.abc import Iterator

from finsy.proto import p4r

from emulator.meters import MeterRates
from emulator.p4runtime.cells import require_modify, selected_cells
from emulator.p4runtime.errors import invalid_argument, not_found, unimplemented
from emulator.p4runtime.table_entries import select_entries
from emulator.p4runtime.table_types import Table
from emulator.p4runtime.target import Target
from emulator.p4runtime.translate import decode_key, decode_rates, encode_key, encode_rates


def write_meter(target: Target, kind: p4r.Update.Type.ValueType, message: p4r.MeterEntry) -> None:
    """Set the rates of a meter, or of a whole array if the index is not set; without a config all is green.

    Raises RequestError or SwitchError, and then changes nothing.
    """
    require_modify(kind, "a meter entry")
    _refuse_counters(message)
    meter = target.schema.meter(message.meter_id)
    rates = _rates_of(message)
    for index in selected_cells(f"meter {meter.name}", meter.size, message):
        target.switch.meter(meter.name).set(index, rates)


def read_meters(target: Target, request: p4r.MeterEntry) -> Iterator[p4r.MeterEntry]:
    """Return the meters that a request selects; id 0 selects all arrays, no index all meters. Raises RequestError."""
    _refuse_counters(request)
    if request.meter_id:
        meters = [target.schema.meter(request.meter_id)]
    elif request.HasField("index"):
        raise invalid_argument("a read of all meters (meter_id 0) takes no index")
    else:
        meters = list(target.schema.meters.values())
    for meter in meters:
        for index in selected_cells(f"meter {meter.name}", meter.size, request):
            rates = target.switch.meter(meter.name).get(index)
            yield p4r.MeterEntry(
                meter_id=meter.id, index=p4r.Index(index=index), config=None if rates is None else encode_rates(rates)
            )


def write_direct_meter(target: Target, kind: p4r.Update.Type.ValueType, message: p4r.DirectMeterEntry) -> None:
    """Set the rates of a table entry's meter; without a config all is green. Raises RequestError or SwitchError."""
    require_modify(kind, "a direct meter entry")
    _refuse_counters(message)
    entry = message.table_entry
    table = _metered_table(target, entry)
    target.switch.set_direct_meter(table.name, decode_key(table, entry.match, entry.priority), _rates_of(message))


def read_direct_meters(target: Target, request: p4r.DirectMeterEntry) -> Iterator[p4r.DirectMeterEntry]:
    """Return the meters of the table entries that a request selects, with wildcards as for table entries.

    Raises RequestError, NOT_FOUND for a whole key without an entry.
    """
    _refuse_counters(request)
    selector = request.table_entry
    if selector.table_id:
        _metered_table(target, selector)
    found = False
    for table, key, _ in select_entries(target, selector):
        if table.direct_meter is not None:
            rates = target.switch.direct_meter(table.name, key)
            config = None if rates is None else encode_rates(rates)
            yield p4r.DirectMeterEntry(table_entry=encode_key(table, key), config=config)
            found = True
    if selector.match and not found:
        raise not_found(f"table {target.schema.table(selector.table_id).name} has no such entry")


def _rates_of(message: p4r.MeterEntry | p4r.DirectMeterEntry) -> MeterRates | None:
    return decode_rates(message.config) if message.HasField("config") else None


def _metered_table(target: Target, entry: p4r.TableEntry) -> Table:
    if entry.is_default_action:
        raise unimplemented("the direct meter of a default entry is not supported")
    table = target.schema.table(entry.table_id)
    if table.direct_meter is None:
        raise invalid_argument(f"table {table.name} has no direct meter")
    return table


def _refuse_counters(message: p4r.MeterEntry | p4r.DirectMeterEntry) -> None:
    if message.HasField("counter_data"):
        raise unimplemented("counters by colour are not supported")
