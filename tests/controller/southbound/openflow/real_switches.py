"""Entries in a real Open vSwitch: written as ``ovs-ofctl`` reads them, and asked what they do by ``ofproto/trace``."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from controller.southbound.openflow.entries import (
    Action,
    Entry,
    FlowEntry,
    Forward,
    Group,
    GroupType,
    Match,
    SetDscp,
    SetQueue,
    ToController,
    ToGroup,
)
from tests.controller.southbound.openflow.interpreter import Dropped, ForController, Left, Outcome, Packet
from tests.openvswitch import add_dummy_bridge
from topologies.addressing import TCP_PROTOCOL, UDP_PROTOCOL, MacAddress
from topologies.fabric import Fabric
from topologies.openvswitch.daemons import OpenVSwitch

_TYPES = {GroupType.INDIRECT: "indirect", GroupType.SELECT: "select", GroupType.FAST_FAILOVER: "ff"}
_INVALID_TTL = 2
"""Open vSwitch hands such packets only to controllers that ask for them, which we do not."""
_PROTOCOLS = {UDP_PROTOCOL: "udp", TCP_PROTOCOL: "tcp"}


def add_bridges(openvswitch: OpenVSwitch, fabric: Fabric) -> None:
    """Add a bridge for every switch, with ports that have no interfaces."""
    for number, switch in enumerate(fabric.switches, start=1):
        add_dummy_bridge(openvswitch, switch, number, (link.source_port for link in fabric.links_from[switch]))


def write(openvswitch: OpenVSwitch, bridge: str, entries: Iterable[Entry]) -> None:
    """Write entries in the place of those that there are; the datapath goes by the new ones at once."""
    entries = list(entries)
    groups = openvswitch.folder / "groups"
    flows = openvswitch.folder / "flows"
    groups.write_text("".join(f"{_group(entry)}\n" for entry in entries if isinstance(entry, Group)))
    flows.write_text("".join(f"{_flow(entry)}\n" for entry in entries if isinstance(entry, FlowEntry)))
    openvswitch.ofctl("del-flows", bridge)
    openvswitch.ofctl("del-groups", bridge)
    openvswitch.ofctl("add-groups", bridge, str(groups))
    openvswitch.ofctl("add-flows", bridge, str(flows))
    openvswitch.appctl("revalidator/purge")


@dataclass(frozen=True, slots=True)
class ByHash:
    """What ``ofproto/trace`` says where the datapath has to hash first, with this basis."""

    basis: int


def traced(openvswitch: OpenVSwitch, bridge: str, packet: Packet, ingress_port: int) -> Outcome | ByHash:
    """Return what becomes of a packet."""
    said = openvswitch.appctl("ofproto/trace", "--names", bridge, _packet(packet, ingress_port))
    actions = said.rpartition("Datapath actions: ")[2].strip()
    if hashed := re.search(r"hash\(l4\((\d+)\)\),recirc\(", actions):
        return ByHash(int(hashed[1]))
    if for_controller := re.search(r"controller\(reason=(\d+),.*max_len=(\d+)", actions):
        reason, most_bytes = map(int, for_controller.groups())
        return Dropped(None) if reason == _INVALID_TTL else ForController(most_bytes)
    if actions == "drop":
        return Dropped(None)
    changed, queue = packet, 0
    if source := re.search(r"set\(eth\([^)]*src=([0-9a-f:]+)", actions):
        changed = replace(changed, source_mac=_mac(source[1]))
    if destination := re.search(r"set\(eth\([^)]*dst=([0-9a-f:]+)", actions):
        changed = replace(changed, destination_mac=_mac(destination[1]))
    if traffic_class := re.search(r"set\(ipv4\([^)]*tos=(0x[0-9a-f]+|0)/0xfc", actions):
        changed = replace(changed, dscp=int(traffic_class[1], 16) >> 2)
    if time_to_live := re.search(r"set\(ipv4\([^)]*ttl=(\d+)", actions):
        changed = replace(changed, time_to_live=int(time_to_live[1]))
    if priority := re.search(r"set\(skb_priority\((0x[0-9a-f]+|0)\)", actions):
        queue = int(priority[1], 16)
    (port,) = re.findall(rf"(?:^|,){re.escape(bridge)}-(\d+)(?=,|$)", actions)
    return Left(int(port), queue, changed)


def set_port(openvswitch: OpenVSwitch, bridge: str, port: int, *, up: bool) -> None:
    """Let a port go down or come up, and let the datapath forget what it has decided before."""
    openvswitch.appctl("netdev-dummy/set-admin-state", f"{bridge}-{port}", "up" if up else "down")
    openvswitch.ofctl("dump-ports-desc", bridge)  # the answer has the new state, so the bridge has seen it
    openvswitch.appctl("revalidator/purge")


def _packet(packet: Packet, ingress_port: int) -> str:
    words = [
        f"in_port={ingress_port}",
        f"dl_src={MacAddress(packet.source_mac)}",
        f"dl_dst={MacAddress(packet.destination_mac)}",
    ]
    if packet.ether_type != 0x0800:
        return ",".join((*words, f"dl_type={packet.ether_type:#06x}"))
    source_port, destination_port = packet.ports
    protocol = _PROTOCOLS[packet.protocol]
    words += [
        protocol,
        f"nw_src={packet.source}",
        f"nw_dst={packet.destination}",
        f"nw_tos={packet.dscp << 2}",
        f"nw_ttl={packet.time_to_live}",
        f"{protocol}_src={source_port}",
        f"{protocol}_dst={destination_port}",
    ]
    return ",".join(words)


def _flow(entry: FlowEntry) -> str:
    actions = [_action(action) for action in entry.actions]
    if entry.goto is not None:
        actions.append(f"goto_table:{entry.goto.value}")
    match = _match(entry.key.match)
    where = f"table={entry.key.table.value},priority={entry.key.priority}"
    return f"{where}{match},actions={','.join(actions) or 'drop'}"


def _match(match: Match) -> str:
    fields = {
        "dl_type": match.ether_type,
        "nw_src": match.source,
        "nw_dst": match.destination,
        "nw_proto": match.protocol,
        "tp_src": match.source_port,
        "tp_dst": match.destination_port,
        "ip_dscp": match.dscp,
    }
    return "".join(f",{name}={value}" for name, value in fields.items() if value is not None)


def _action(action: Action) -> str:
    match action:
        case SetDscp():
            return f"set_field:{action.dscp}->ip_dscp"
        case SetQueue():
            return f"set_queue:{action.queue}"
        case ToGroup():
            return f"group:{action.group_id}"
        case ToController():
            return f"controller(max_len={action.most_bytes})"
        case Forward():
            macs = f"set_field:{action.source_mac}->eth_src,set_field:{action.destination_mac}->eth_dst"
            return f"dec_ttl,{macs},output:{action.port}"


def _group(group: Group) -> str:
    words = [f"group_id={group.group_id}", f"type={_TYPES[group.kind]}"]
    if group.kind is GroupType.SELECT:
        words += ["selection_method=dp_hash", f"selection_method_param={group.hash_basis}"]
    is_watched = group.kind is not GroupType.INDIRECT
    for bucket in group.buckets:
        watched = f"watch_port:{bucket.port}," if is_watched else ""
        words.append(f"bucket={watched}actions={_action(bucket)}")
    return ",".join(words)


def _mac(text: str) -> MacAddress:
    return MacAddress(int(text.replace(":", ""), 16))
