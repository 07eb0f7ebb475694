"""ValueSetEntry: the members of a value set of the parser (P4Runtime specification, section 9.6)."""

from collections.abc import Iterator

from finsy.proto import p4r

from emulator.p4runtime.cells import require_modify
from emulator.p4runtime.target import Target
from emulator.p4runtime.translate import decode_match, encode_match


def write_value_set(target: Target, kind: p4r.Update.Type.ValueType, message: p4r.ValueSetEntry) -> None:
    """Replace the members of a value set; a member matches as an entry of a table does.

    Raises RequestError or SwitchError, and then changes nothing: INVALID_ARGUMENT for a member that the P4Info does not
    allow, ALREADY_EXISTS for one that is given twice, OUT_OF_RANGE for a value that does not fit, RESOURCE_EXHAUSTED
    for too many members.
    """
    require_modify(kind, "a value set")
    value_set = target.schema.value_set(message.value_set_id)
    members = [decode_match(value_set, member.match) for member in message.members]
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
            entry.members.add(match=encode_match(value_set, member))
        yield entry
