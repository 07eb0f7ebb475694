"""Whether a device keeps its state under another P4Info of the same program (P4Runtime specification, section 14).

State is kept by names. The new P4Info may give other ids; what would change the meaning of something stored may not
differ.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from emulator.p4runtime.action_types import Action, Parameter, Profile
from emulator.p4runtime.schema import Schema
from emulator.p4runtime.table_types import Matched, MatchField, Table


def difference(old: Schema, new: Schema) -> str | None:
    """Return the name of the first object whose state could not be kept, None if all of it can."""
    before, after = dict(_meanings(old)), dict(_meanings(new))
    for name, meaning in before.items():
        if after.get(name) != meaning:
            return name
    return next((name for name in after if name not in before), None)


def _meanings(schema: Schema) -> Iterator[tuple[str, object]]:
    """Return what the stored state of each object depends on, by kind and name."""
    for table in schema.tables.values():
        yield table.place, _table(schema, table)
    for value_set in schema.value_sets.values():
        yield value_set.place, _fields(value_set)
    for action in schema.actions.values():
        yield f"action {action.name}", _parameters(action)
    for profile in schema.profiles.values():
        yield f"action profile {profile.name}", _profile(schema, profile)
    arrays: Mapping[str, Mapping[int, object]] = {
        "counter": schema.counters,
        "meter": schema.meters,
        "register": schema.registers,
        "digest": schema.digests,
    }
    for kind, objects in arrays.items():
        for number in objects:
            found = replace(objects[number], id=0)  # type: ignore[type-var]
            yield f"{kind} {found.name}", found  # type: ignore[attr-defined]


def _table(schema: Schema, table: Table) -> object:
    scopes = {schema.actions[number].name: scope for number, scope in table.scopes.items()}
    constant = schema.actions[table.const_default_action_id].name if table.const_default_action_id else ""
    profile = None if table.profile is None else table.profile.name
    direct = table.direct_counter, table.direct_meter
    return _fields(table), scopes, constant, profile, direct, table.has_const_entries, table.has_idle_timeout


def _profile(schema: Schema, profile: Profile) -> object:
    return replace(profile, id=0, table_ids=()), {schema.tables[number].name for number in profile.table_ids}


def _fields(owner: Matched) -> object:
    return tuple(_meaning_of(field) for field in owner.match_fields)


def _parameters(action: Action) -> object:
    return tuple(_meaning_of(parameter) for parameter in action.parameters)


def _meaning_of(part: MatchField | Parameter) -> object:
    """Return a field or parameter without its id; numbers of texts are known to their own P4Info alone."""
    return replace(part, id=0), part.texts and id(part.texts)
