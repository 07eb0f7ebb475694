"""Objects of a P4Info that are not in the BMv2 JSON, because p4c has found out that no packet can reach them."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TypeVar

from emulator.p4runtime.device_config import CompiledTable, DeviceConfig
from emulator.p4runtime.differences import LOG, disagreement
from emulator.p4runtime.objects_by_id import Named
from emulator.p4runtime.schema import Schema

_Object = TypeVar("_Object", bound=Named)


def without_dropped(schema: Schema, config: DeviceConfig) -> Schema:
    """Return the schema without what p4c has dropped, which ``dropped`` names.

    Raises RequestError, INVALID_ARGUMENT, where the program has another object of the kind instead, because then it is
    another program.
    """
    tables = {table.name: table for pipeline in config.pipelines for table in pipeline.tables}
    profiles = {profile.name for pipeline in config.pipelines for profile in pipeline.action_profiles}
    counters, meters = (
        {a.name for a in arrays if not a.is_direct} for arrays in (config.counter_arrays, config.meter_arrays)
    )
    direct = {array.name for array in (*config.counter_arrays, *config.meter_arrays) if array.is_direct}
    written = {name for name, table in tables.items() if _takes_entries(table)}
    dropped: dict[int, str] = {}
    kept_tables = _kept("table", schema.tables, tables.keys(), written, dropped)
    kept_profiles = _kept("action profile", schema.profiles, profiles, profiles, dropped)
    kept_counters = _kept("counter", schema.counters, counters | direct, counters, dropped)
    kept_meters = _kept("meter", schema.meters, meters | direct, meters, dropped)
    registers = {register.name for register in config.register_arrays}
    kept_registers = _kept("register", schema.registers, registers, registers, dropped)
    value_sets = {value_set.name for value_set in config.parse_vsets}
    kept_value_sets = _kept("value set", schema.value_sets, value_sets, value_sets, dropped)
    kept_profiles = {
        number: replace(profile, table_ids=tuple(table for table in profile.table_ids if table in kept_tables))
        for number, profile in kept_profiles.items()
    }
    kept_tables = {
        number: replace(table, profile=kept_profiles.get(table.profile.id) if table.profile else None)
        for number, table in kept_tables.items()
    }
    return replace(
        schema,
        tables=kept_tables,
        profiles=kept_profiles,
        counters=kept_counters,
        meters=kept_meters,
        registers=kept_registers,
        value_sets=kept_value_sets,
        dropped=dropped,
    )


def _takes_entries(table: CompiledTable) -> bool:
    """Return whether a controller could write entries, so that the P4Info must have the table."""
    return bool(table.key) and table.entries is None


def _kept(
    kind: str,
    declared: Mapping[int, _Object],
    compiled: Collection[str],
    expected: Collection[str],
    dropped: dict[int, str],
) -> dict[int, _Object]:
    """Return the objects that the program has; add the others to ``dropped``."""
    names = {item.name for item in declared.values()}
    others = sorted(set(expected) - names)
    kept: dict[int, _Object] = {}
    for number, item in declared.items():
        if item.name in compiled:
            kept[number] = item
        elif others:
            raise disagreement(
                f"{kind} {item.name} with id {number:#010x}", f"the JSON has none of this name, but {others[0]}"
            )
        else:
            dropped[number] = f"{kind} {item.name}"
            LOG.info("%s is not in the compiled program", dropped[number])
    return kept
