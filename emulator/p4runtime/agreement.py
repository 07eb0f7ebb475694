"""Check that a P4Info describes the program of a BMv2 JSON: names, widths, sizes and references.

An undetected difference would corrupt entries: a value cut to the width of another field, for example.
"""

from collections.abc import Iterable, Mapping
from typing import Protocol, TypeVar

from finsy.proto import p4i

from emulator.p4runtime.controller_packets import ControllerHeader
from emulator.p4runtime.device_config import (
    CompiledAction,
    CompiledArray,
    CompiledProfile,
    CompiledTable,
    DeviceConfig,
)
from emulator.p4runtime.errors import RequestError, invalid_argument
from emulator.p4runtime.schema import Action, MatchKind, Profile, Schema, Table


class _Named(Protocol):
    @property
    def name(self) -> str: ...


_Part = TypeVar("_Part", bound=_Named)


def check_agreement(p4info: p4i.P4Info, schema: Schema, config: DeviceConfig) -> None:
    """Raise RequestError, INVALID_ARGUMENT, naming the first object that differs."""
    actions = _by_name(config.actions)
    tables = _by_name(table for pipeline in config.pipelines for table in pipeline.tables)
    profiles = _by_name(profile for pipeline in config.pipelines for profile in pipeline.action_profiles)
    counters, meters = _by_name(config.counter_arrays), _by_name(config.meter_arrays)
    for profile in schema.profiles.values():
        _check_profile(profile, _found(profiles, "action profile", profile.name, profile.id))
    for table in schema.tables.values():
        _check_table(schema, table, _found(tables, "table", table.name, table.id), config)
        for action_id in table.scopes:
            action = schema.actions[action_id]
            _check_action(action, _found(actions, "action", action.name, action.id))
        _check_direct("direct counter", table.direct_counter, table, counters)
        _check_direct("direct meter", table.direct_meter, table, meters)
    for counter in schema.counters.values():
        _check_array("counter", counter.name, counter.size, _found(counters, "counter", counter.name, counter.id))
    for meter in schema.meters.values():
        _check_array("meter", meter.name, meter.size, _found(meters, "meter", meter.name, meter.id))
    registers = _by_name(config.register_arrays)
    for register in schema.registers.values():
        where, found = f"register {register.name}", _found(registers, "register", register.name, register.id)
        _same(where, "size", register.size, found.size)
        _same(where, "width in bits", register.width_bits, found.bitwidth)
    value_sets = _by_name(config.parse_vsets)
    for value_set in p4info.value_sets:
        _found(value_sets, "value set", value_set.preamble.name, value_set.preamble.id)
    for header in (schema.packet_out, schema.packet_in):
        _check_controller_header(header, config)


def _check_profile(profile: Profile, found: CompiledProfile) -> None:
    where = f"action profile {profile.name}"
    _same(where, "size", profile.size, found.max_size)
    _same(where, "a selector", profile.has_selector, found.selector is not None)


def _check_table(schema: Schema, table: Table, found: CompiledTable, config: DeviceConfig) -> None:
    where = f"table {table.name}"
    declared = [(field.name, _compiled_kind(field.kind.value)) for field in table.match_fields]
    key = [field for field in found.key if field.match_type != "selector"]
    _same(where, "key", declared, [(field.name, _compiled_kind(field.match_type)) for field in key])
    for field, compiled in zip(table.match_fields, key, strict=True):
        width_bits = config.key_width_bits(compiled)
        _same(f"{where}: field {field.name}", "width in bits", field.width_bits, width_bits)
    own = {schema.actions[action_id].name for action_id in table.scopes}
    for name in sorted(own.symmetric_difference(found.actions)):
        which = "JSON" if name in own else "P4Info"
        raise _disagreement(f"{where}: action {name}", f"the table of the {which} does not have it")
    constant = table.const_default_action_id
    name_of_constant = schema.action(constant).name if constant else None
    _same(where, "constant default action", name_of_constant, found.constant_default)
    _same(where, "profile", None if table.profile is None else table.profile.name, found.action_profile)
    if not found.entries:
        _same(where, "size", table.size, found.max_size)


def _check_action(action: Action, found: CompiledAction) -> None:
    declared = [(parameter.name, parameter.width_bits) for parameter in action.parameters]
    expected = [(parameter.name, parameter.bitwidth) for parameter in found.runtime_data]
    _same(f"action {action.name}", "parameters", declared, expected)


def _check_direct(kind: str, name: str | None, table: Table, compiled: Mapping[str, CompiledArray]) -> None:
    if name is None:
        return
    found = compiled.get(name)
    if found is None or not found.is_direct or found.binding != table.name:
        raise _disagreement(f"{kind} {name}", f"the JSON has none on {table.name}")


def _check_array(kind: str, name: str, size: int, found: CompiledArray) -> None:
    if found.is_direct:
        raise _disagreement(f"{kind} {name}", f"it is that of table {found.binding} in the JSON")
    _same(f"{kind} {name}", "size", size, found.size)


def _check_controller_header(header: ControllerHeader, config: DeviceConfig) -> None:
    """Check a controller header by its name, or else by its fields, because a program may name it freely."""
    where = f"controller header {header.name}"
    declared = [(field.name, field.width_bits) for field in header.fields]
    compiled = config.fields_of.get(header.name)
    if compiled is not None:
        _same(where, "fields", declared, list(compiled.items()))
    elif declared and declared not in [list(fields.items()) for fields in config.fields_of.values()]:
        raise _disagreement(where, f"no header of the JSON has the fields {declared}")


def _compiled_kind(kind: str) -> str:
    """Return BMv2's name of a match kind: p4c turns an optional match into a ternary one."""
    return MatchKind.TERNARY.value if kind == MatchKind.OPTIONAL.value else kind


def _by_name(parts: Iterable[_Part]) -> dict[str, _Part]:
    return {part.name: part for part in parts}


def _found(parts: Mapping[str, _Part], kind: str, name: str, object_id: int) -> _Part:
    try:
        return parts[name]
    except KeyError:
        raise _disagreement(f"{kind} {name} with id {object_id:#010x}", "the JSON has none of this name") from None


def _same(where: str, what: str, declared: object, compiled: object) -> None:
    if declared != compiled:
        raise _disagreement(where, f"{what}: {declared}, but {compiled} in the JSON")


def _disagreement(where: str, what: str) -> RequestError:
    return invalid_argument(f"the P4Info does not agree with the BMv2 JSON: {where}: {what}")
