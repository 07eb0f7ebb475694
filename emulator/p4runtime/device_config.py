"""The names in a BMv2 JSON that a P4Info must agree with.

Only what P4Runtime refers to is read here; what the rest of the JSON means is for the compiler of the emulator.
"""

import hashlib
import json
from collections.abc import Iterable

from finsy.proto import p4i
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from emulator.p4runtime.errors import RequestError, invalid_argument
from emulator.p4runtime.schema import Action, Profile, Schema, Table

_Declared = p4i.Meter | p4i.DirectMeter | p4i.Register | p4i.ValueSet


class _Part(BaseModel):
    # The format is p4c's and has far more in it than is read here.
    model_config = ConfigDict(frozen=True, extra="ignore")


class _Parameter(_Part):
    name: str
    bitwidth: int


class _Action(_Part):
    name: str
    runtime_data: tuple[_Parameter, ...] = ()


class _KeyField(_Part):
    name: str = ""
    match_type: str


class _Table(_Part):
    name: str
    key: tuple[_KeyField, ...] = ()
    action_profile: str | None = None


class _Named(_Part):
    name: str


class _Pipeline(_Part):
    tables: tuple[_Table, ...] = ()
    action_profiles: tuple[_Named, ...] = ()


class _Counter(_Part):
    name: str
    size: int | None = None
    is_direct: bool = False
    binding: str | None = None


class DeviceConfig(_Part):
    """A program as p4c compiled it for BMv2; ``digest`` tells programs apart and ignores how the JSON is laid out."""

    program: str = "an unnamed program"
    actions: tuple[_Action, ...]
    pipelines: tuple[_Pipeline, ...]
    counter_arrays: tuple[_Counter, ...] = ()
    meter_arrays: tuple[_Named, ...] = ()
    register_arrays: tuple[_Named, ...] = ()
    parse_vsets: tuple[_Named, ...] = ()
    digest: str = Field(default="", exclude=True)

    def __str__(self) -> str:
        return f"{self.program} ({self.digest[:12]})"


def read_device_config(data: bytes) -> DeviceConfig:
    """Read a BMv2 JSON. Raises RequestError, INVALID_ARGUMENT, where the data is not one."""
    try:
        document = json.loads(data)
        canonical = json.dumps(document, sort_keys=True, separators=(",", ":")).encode()
        config = DeviceConfig.model_validate(document)
    except (ValueError, RecursionError) as error:
        raise invalid_argument(f"the device config is not a BMv2 JSON: {_first_line(error)}") from None
    return config.model_copy(update={"digest": hashlib.sha256(canonical).hexdigest()})


def check_agreement(p4info: p4i.P4Info, schema: Schema, config: DeviceConfig) -> None:
    """Raises RequestError, INVALID_ARGUMENT, naming the first object on which the two differ."""
    actions = {action.name: action for action in config.actions}
    tables = {table.name: table for pipeline in config.pipelines for table in pipeline.tables}
    profiles = {profile.name for pipeline in config.pipelines for profile in pipeline.action_profiles}
    counters = {counter.name: counter for counter in config.counter_arrays}
    for profile in schema.profiles.values():
        if profile.name not in profiles:
            raise _disagreement(f"action profile {profile.name}", "the JSON has none of this name")
    for table in schema.tables.values():
        _check_table(table, tables.get(table.name))
        for action_id in table.scopes:
            _check_action(schema.actions[action_id], actions)
        if table.direct_counter is not None:
            direct = counters.get(table.direct_counter)
            if direct is None or not direct.is_direct or direct.binding != table.name:
                raise _disagreement(f"direct counter {table.direct_counter}", f"the JSON has none on {table.name}")
    for counter in schema.counters.values():
        found = counters.get(counter.name)
        if found is None or found.is_direct:
            raise _disagreement(f"counter {counter.name}", "the JSON has none of this name")
        if found.size != counter.size:
            raise _disagreement(f"counter {counter.name}", f"size {counter.size}, but {found.size} in the JSON")
    _check_names("meter", (*p4info.meters, *p4info.direct_meters), config.meter_arrays)
    _check_names("register", p4info.registers, config.register_arrays)
    _check_names("value set", p4info.value_sets, config.parse_vsets)


def _check_names(kind: str, declared: Iterable[_Declared], compiled: Iterable[_Named]) -> None:
    names = {part.name for part in compiled}
    for message in declared:
        if message.preamble.name not in names:
            where = f"{kind} {message.preamble.name} with id {message.preamble.id:#010x}"
            raise _disagreement(where, "the JSON has none of this name")


def _check_table(table: Table, found: _Table | None) -> None:
    where = f"table {table.name}"
    if found is None:
        raise _disagreement(where, "the JSON has none of this name")
    declared = [(field.name, _compiled_kind(field.kind.value)) for field in table.match_fields]
    compiled = [(field.name, _compiled_kind(field.match_type)) for field in found.key if field.match_type != "selector"]
    if declared != compiled:
        raise _disagreement(where, f"key {declared}, but {compiled} in the JSON")
    if _name_of(table.profile) != found.action_profile:
        raise _disagreement(where, f"profile {_name_of(table.profile)}, but {found.action_profile} in the JSON")


def _check_action(action: Action, compiled: dict[str, _Action]) -> None:
    where = f"action {action.name}"
    found = compiled.get(action.name)
    if found is None:
        raise _disagreement(where, "the JSON has none of this name")
    declared = [(parameter.name, parameter.width_bits) for parameter in action.parameters]
    expected = [(parameter.name, parameter.bitwidth) for parameter in found.runtime_data]
    if declared != expected:
        raise _disagreement(where, f"parameters {declared}, but {expected} in the JSON")


def _compiled_kind(kind: str) -> str:
    """BMv2 knows no optional match: p4c makes a ternary one of it."""
    return "ternary" if kind == "optional" else kind


def _name_of(profile: Profile | None) -> str | None:
    return None if profile is None else profile.name


def _disagreement(where: str, what: str) -> RequestError:
    return invalid_argument(f"the P4Info does not agree with the BMv2 JSON: {where}: {what}")


def _first_line(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        return f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"
    return str(error).partition("\n")[0]
