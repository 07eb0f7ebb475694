"""ValueSetEntry: the members of a value set of the parser (P4Runtime specification, section 9.7)."""

from collections.abc import Iterator

from finsy.proto import p4r

from emulator.p4runtime.bytestrings import decode_value, encode_value
from emulator.p4runtime.cells import require_modify
from emulator.p4runtime.errors import invalid_argument
from emulator.p4runtime.schema import ValueSet
from emulator.p4runtime.target import Target


def write_value_set(target: Target, kind: p4r.Update.Type.ValueType, message: p4r.ValueSetEntry) -> None:
    """Replace the members of a value set.

    Raises RequestError or SwitchError, and then changes nothing: INVALID_ARGUMENT for a member that the P4Info does not
    allow or that is given twice, OUT_OF_RANGE for a value that does not fit, RESOURCE_EXHAUSTED for too many members.
    """
    require_modify(kind, "a value set")
    value_set = target.schema.value_set(message.value_set_id)
    members = [_decode(value_set, member) for member in message.members]
    target.switch.value_set(value_set.name).replace(members)


def read_value_sets(target: Target, request: p4r.ValueSetEntry) -> Iterator[p4r.ValueSetEntry]:
    """Return the value sets that a request selects; id 0 is a wildcard. Raises RequestError."""
    if request.value_set_id:
        value_sets = [target.schema.value_set(request.value_set_id)]
    else:
        value_sets = list(target.schema.value_sets.values())
    for value_set in value_sets:
        entry = p4r.ValueSetEntry(value_set_id=value_set.id)
        for member in target.switch.value_set(value_set.name).members:
            message = entry.members.add()
            for field, value in zip(value_set.match_fields, member, strict=True):
                text = encode_value(value) if field.texts is None else field.texts.text(value)
                message.match.add(field_id=field.id, exact=p4r.FieldMatch.Exact(value=text))
        yield entry


def _decode(value_set: ValueSet, member: p4r.ValueSetMember) -> tuple[int, ...]:
    where = f"value set {value_set.name}"
    given = {match.field_id: match for match in member.match}
    if len(given) != len(member.match):
        raise invalid_argument(f"{where}: a field of a member is given twice")
    if given.keys() != {field.id for field in value_set.match_fields}:
        wanted = ", ".join(f"{field.name} ({field.id})" for field in value_set.match_fields)
        raise invalid_argument(f"{where}: a member has the fields {wanted}, but {sorted(given)} are given")
    values = []
    for field in value_set.match_fields:
        match = given[field.id]
        if match.WhichOneof("field_match_type") != "exact":
            raise invalid_argument(f"{where}, field {field.name}: its match is exact")
        place, value = f"{where}, field {field.name}", match.exact.value
        if field.texts is None:
            values.append(decode_value(value, field.width_bits, place))
        else:
            values.append(field.texts.number(value, field.width_bits, place))
    return tuple(values)
