"""Entries of the pipeline in words, as operators know them: flows, routes, levels."""

from finsy import P4ActionProfileGroup, P4ActionProfileMember, P4IndirectAction, P4TableAction, P4TableEntry

from controller.southbound.p4runtime.entries import FLOW_TABLE, JOB_TABLE, NEXT_HOP_TABLE, Entity
from topologies.addressing import Address, MacAddress

_PROTOCOLS = {6: "tcp", 17: "udp"}


def kind_words(entity: Entity) -> str:
    """The kind of an entry: its table, ``member`` or ``group``."""
    match entity:
        case P4TableEntry():
            return entity.table_id
        case P4ActionProfileMember():
            return "member"
        case P4ActionProfileGroup():
            return "group"


def entry_words(entity: Entity) -> str:
    """What an entry says, without its kind."""
    match entity:
        case P4TableEntry(table_id=table) if entity.is_default_action:
            return _action(entity.action) if table else ""
        case P4TableEntry():
            return f"{_match(entity)}: {_action(entity.action)}"
        case P4ActionProfileMember():
            return f"{entity.member_id}: {_action(entity.action)}"
        case P4ActionProfileGroup():
            members = ", ".join(str(member.member_id) for member in entity.members or ())
            return f"{entity.group_id}: members {members}"


def _match(entry: P4TableEntry) -> str:
    match = dict(entry.match or {})
    if entry.table_id == FLOW_TABLE:
        protocol = _PROTOCOLS.get(match["protocol"], f"protocol {match['protocol']}")
        source = f"{Address(match['source_address'])}:{match['source_port']}"
        return f"{protocol} {source} > {Address(match['destination_address'])}:{match['destination_port']}"
    if entry.table_id == JOB_TABLE:
        (source, _), (destination, mask) = match["source_address"], match["destination_address"]
        return f"{Address(source)} > {Address(destination)}/{mask.bit_count()}"
    if entry.table_id == NEXT_HOP_TABLE:
        return str(match["next_hop"])
    if "destination_address" in match:
        address, length = match["destination_address"]
        return f"{Address(address)}/{length}"
    return ", ".join(f"{name} {value}" for name, value in match.items())


def _action(action: object) -> str:
    match action:
        case P4IndirectAction():
            return f"group {action.group_id}"
        case P4TableAction():
            words = (f"{name} {_value(name, value)}" for name, value in action.args.items())
            return " ".join((action.name, *words)).replace("_", " ")
    return "nothing"


def _value(name: str, value: int) -> str:
    return str(MacAddress(value)) if name.endswith("_mac") else str(value)
