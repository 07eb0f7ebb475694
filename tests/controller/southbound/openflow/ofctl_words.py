"""Entries in the words of ``ovs-ofctl``, which reads and shows them by code of its own."""

from controller.southbound.openflow.entries import (
    Action,
    FlowEntry,
    Forward,
    Group,
    GroupType,
    SetDscp,
    SetQueue,
    ToController,
    ToGroup,
)
from topologies.addressing import TCP_PROTOCOL, UDP_PROTOCOL

_TRANSPORTS = {TCP_PROTOCOL: "tcp", UDP_PROTOCOL: "udp"}
_TYPES = {GroupType.SELECT: "select", GroupType.INDIRECT: "indirect", GroupType.FAST_FAILOVER: "ff"}


def flow_words(entry: FlowEntry, cookie: int) -> str:
    """Return a line as ``ovs-ofctl diff-flows`` takes it."""
    table, priority, match = entry.key
    transport = _TRANSPORTS.get(match.protocol or 0, "transport")
    fields = {
        "cookie": f"{cookie:#x}",
        "table": int(table),
        "priority": priority,
        "dl_type": match.ether_type,
        "ip_dscp": match.dscp,
        "nw_src": match.source,
        "nw_dst": match.destination,
        "nw_proto": match.protocol,
        f"{transport}_src": match.source_port,
        f"{transport}_dst": match.destination_port,
    }
    actions = [_action_words(action) for action in entry.actions]
    if entry.goto is not None:
        actions.append(f"goto_table:{int(entry.goto)}")
    told = [f"{name}={value}" for name, value in fields.items() if value is not None]
    return f"{','.join(told)},actions={','.join(actions) or 'drop'}"


def group_words(group: Group, version: int) -> str:
    """Return a line as ``ovs-ofctl dump-groups`` shows it."""
    words = [f"group_id={group.group_id},type={_TYPES[group.kind]}"]
    if version == 6 and group.kind is GroupType.SELECT:
        words.append("selection_method=dp_hash")
        words += [f"selection_method_param={group.hash_basis}"] if group.hash_basis else []
    for number, forward in enumerate(group.buckets):
        watch = [] if group.kind is GroupType.INDIRECT else [f"watch_port:{forward.port}"]
        names = [f"bucket_id:{number}"] if version == 6 else []
        words.append("bucket=" + ",".join([*names, *watch, f"actions={_action_words(forward)}"]))
    return ",".join(words)


def _action_words(action: Action) -> str:
    match action:
        case SetDscp(dscp):
            return f"set_field:{dscp}->ip_dscp"
        case SetQueue(queue):
            return f"set_queue:{queue}"
        case ToGroup(group_id):
            return f"group:{group_id}"
        case ToController(most_bytes):
            return f"CONTROLLER:{most_bytes}"
        case Forward(port, source_mac, destination_mac):
            return f"dec_ttl,set_field:{source_mac}->eth_src,set_field:{destination_mac}->eth_dst,output:{port}"
