"""Check that a P4Info describes the program of a BMv2 JSON: names, widths, sizes and references.

An undetected difference would corrupt entries: a value cut to the width of another field, for example.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Protocol, TypeVar

from emulator.compiler.tables import MatchKind
from emulator.p4runtime.action_types import Action, Parameter, Profile
from emulator.p4runtime.controller_headers import agreed_header
from emulator.p4runtime.device_config import (
    CompiledAction,
    CompiledArray,
    CompiledProfile,
    CompiledTable,
    DeviceConfig,
)
from emulator.p4runtime.differences import LOG, disagreement
from emulator.p4runtime.digest_types import agreed_digests
from emulator.p4runtime.dropped import without_dropped
from emulator.p4runtime.schema import Schema
from emulator.p4runtime.table_types import Table


class _Named(Protocol):
    @property
    def name(self) -> str: ...


_Part = TypeVar("_Part", bound=_Named)


def agreed(schema: Schema, config: DeviceConfig) -> Schema:
    """Return the schema of what the program has, with the program's widths.

    What p4c has dropped from the program and other harmless differences are logged. Raises RequestError,
    INVALID_ARGUMENT, naming the first object that differs otherwise.
    """
    schema = without_dropped(schema, config)
    actions = {action.id: action for action in config.actions}
    profiles = _by_name(profile for pipeline in config.pipelines for profile in pipeline.action_profiles)
    tables = _by_name(table for pipeline in config.pipelines for table in pipeline.tables)
    counters, meters = _by_name(config.counter_arrays), _by_name(config.meter_arrays)
    for profile in schema.profiles.values():
        _check_profile(profile, profiles[profile.name])
    agreed_tables: dict[int, Table] = {}
    agreed_actions = dict(schema.actions)
    for table in schema.tables.values():
        found = tables[table.name]
        agreed_tables[table.id] = _agreed_table(schema, table, found, config)
        if len(found.action_ids) != len(found.actions):
            raise disagreement(f"table {table.name}", "its actions in the JSON have other ids than names")
        compiled = {name: actions.get(number) for number, name in zip(found.action_ids, found.actions, strict=True)}
        for action_id in table.scopes:
            action = schema.actions[action_id]
            agreed_actions[action_id] = _agreed_action(action, compiled[action.name])
        _check_direct("direct counter", table.direct_counter, table, counters)
        _check_direct("direct meter", table.direct_meter, table, meters)
    for counter in schema.counters.values():
        _check_array("counter", counter.name, counter.size, counters[counter.name])
    for meter in schema.meters.values():
        _check_array("meter", meter.name, meter.size, meters[meter.name])
    registers = _by_name(config.register_arrays)
    for register in schema.registers.values():
        where, cells = f"register {register.name}", registers[register.name]
        _same(where, "size", register.size, cells.size)
        _same(where, "width in bits", register.width_bits, cells.bitwidth)
    value_sets = _by_name(config.parse_vsets)
    for value_set in schema.value_sets.values():
        where, members = f"value set {value_set.name}", value_sets[value_set.name]
        _same(where, "size", value_set.size, members.max_size)
        width_bits = sum(field.width_bits for field in value_set.match_fields)
        if not any(field.is_translated for field in value_set.match_fields):
            _same(where, "width in bits", width_bits, members.compressed_bitwidth)
    return replace(
        schema,
        tables=agreed_tables,
        actions=agreed_actions,
        actions_by_name={action.name: action for action in agreed_actions.values()},
        packet_out=agreed_header(schema.packet_out, config),
        packet_in=agreed_header(schema.packet_in, config),
        digests=agreed_digests(schema.digests, config),
    )


def _check_profile(profile: Profile, found: CompiledProfile) -> None:
    where = f"action profile {profile.name}"
    _same(where, "size", profile.size, found.max_size)
    _same(where, "a selector", profile.has_selector, found.selector is not None)


def _agreed_table(schema: Schema, table: Table, found: CompiledTable, config: DeviceConfig) -> Table:
    where = f"table {table.name}"
    declared = [(field.name, _compiled_kind(field.kind.value)) for field in table.match_fields]
    key = [field for field in found.key if field.match_type != "selector"]
    _same(where, "key", declared, [(field.name, _compiled_kind(field.match_type)) for field in key])
    fields = []
    for field, compiled in zip(table.match_fields, key, strict=True):
        width_bits = config.key_width_bits(compiled)
        if field.width_bits and not field.is_translated:
            _same(f"{where}: field {field.name}", "width in bits", field.width_bits, width_bits)
        if not width_bits:
            raise disagreement(f"{where}: field {field.name}", "the JSON has no such field")
        fields.append(replace(field, width_bits=width_bits))
    own = {schema.actions[action_id].name for action_id in table.scopes}
    for name in sorted(own.symmetric_difference(found.actions)):
        which = "JSON" if name in own else "P4Info"
        raise disagreement(f"{where}: action {name}", f"the table of the {which} does not have it")
    _same(where, "profile", None if table.profile is None else table.profile.name, found.action_profile)
    constant = table.const_default_action_id
    name_of_constant = schema.action(constant).name if constant else None
    if table.profile is None:
        _same(where, "constant default action", name_of_constant, found.constant_default)
    elif name_of_constant:
        LOG.info(
            "%s: as on BMv2, a table with an action profile executes no default action, not %s", where, name_of_constant
        )
    _same(where, "ageing", table.has_idle_timeout, found.support_timeout)
    if not found.entries and table.size != found.max_size:
        if found.key:
            _same(where, "size", table.size, found.max_size)
        LOG.info("%s: its size, %d, means nothing, because it has no key", where, table.size)
    return replace(table, match_fields=tuple(fields))


def _agreed_action(action: Action, found: CompiledAction | None) -> Action:
    where = f"action {action.name}"
    if found is None:
        raise disagreement(f"{where} with id {action.id:#010x}", "the JSON has none of this name")
    declared = [(parameter.name, parameter.width_bits) for parameter in action.parameters]
    widths = {parameter.name: parameter.bitwidth for parameter in found.runtime_data}
    parameters = tuple(_agreed_parameter(parameter, widths) for parameter in action.parameters)
    used = [(parameter.name, parameter.width_bits) for parameter in parameters if not parameter.is_dropped]
    if used != list(widths.items()):
        _same(where, "parameters", declared, list(widths.items()))
    return replace(action, parameters=parameters)


def _agreed_parameter(parameter: Parameter, widths: Mapping[str, int]) -> Parameter:
    if parameter.name not in widths:
        LOG.info("%s: the program does not use it", parameter.place)
        return replace(parameter, is_dropped=True)
    return replace(parameter, width_bits=widths[parameter.name]) if parameter.is_translated else parameter


def _check_direct(kind: str, name: str | None, table: Table, compiled: Mapping[str, CompiledArray]) -> None:
    if name is None:
        return
    found = compiled.get(name)
    if found is None or not found.is_direct or found.binding != table.name:
        raise disagreement(f"{kind} {name}", f"the JSON has none on {table.name}")


def _check_array(kind: str, name: str, size: int, found: CompiledArray) -> None:
    if found.is_direct:
        raise disagreement(f"{kind} {name}", f"it is that of table {found.binding} in the JSON")
    _same(f"{kind} {name}", "size", size, found.size)


def _compiled_kind(kind: str) -> str:
    """Return BMv2's name of a match kind: p4c turns an optional match into a ternary one."""
    return MatchKind.TERNARY.value if kind == MatchKind.OPTIONAL.value else kind


def _by_name(parts: Iterable[_Part]) -> dict[str, _Part]:
    return {part.name: part for part in parts}


def _same(where: str, what: str, declared: object, compiled: object) -> None:
    if declared != compiled:
        raise disagreement(where, f"{what}: {declared}, but {compiled} in the JSON")
