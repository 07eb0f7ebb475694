"""Small fabrics whose switches hold what a controller would give them."""

from collections.abc import Iterable, Mapping

from emulator.compiler.program import Program
from emulator.entries import ActionCall, EntryKey, FieldMatch, GroupReference
from emulator.fabric import EmulatedFabric
from emulator.host_options import HostOptions
from emulator.observations import Completion
from emulator.switch import EmulatedSwitch
from tests.emulator.programs import trainyard
from topologies.addressing import UDP_PROTOCOL, FiveTuple, switch_mac
from topologies.ecmp import hash_multipliers
from topologies.fabric import Fabric, Link
from topologies.routing import Routing
from topologies.specification import DumbbellSpecification, GraphSpecification, LinkSpecification

SEED = 1


def dumbbell(hosts_per_side: int, host_gbps: float = 400.0, bottleneck_gbps: float = 100.0) -> Fabric:
    """Hosts h0… on t0, as many on t1, one cable between the two."""
    return DumbbellSpecification(
        kind="dumbbell", hosts_per_side=hosts_per_side, host_link_gbps=host_gbps, bottleneck_gbps=bottleneck_gbps
    ).build()


def star(num_hosts: int, gbps: float = 100.0) -> Fabric:
    """Hosts h0… on switch s."""
    hosts = tuple(f"h{number}" for number in range(num_hosts))
    links = tuple(LinkSpecification(ends=(host, "s"), gbps=gbps) for host in hosts)
    return GraphSpecification(kind="graph", hosts=hosts, switches=("s",), links=links).build()


def routing_of(fabric: Fabric) -> Routing:
    """The routing that ``emulated`` gives a fabric."""
    return Routing(fabric, hash_multipliers(fabric.switches, SEED))


def emulated(
    fabric: Fabric,
    options: HostOptions | None = None,
    *,
    rate_scale: float = 1.0,
    queue_limit_bytes: int = 16_000_000,
    trace_rows: int = 0,
    program: Program | Mapping[str, Program] | None = None,
) -> EmulatedFabric:
    """Return the fabric in virtual time, with routes to every NIC and a level for every class CS1…CS7.

    ``program`` is Trainyard's unless given.
    """
    result = EmulatedFabric(
        fabric,
        program or trainyard(),
        options,
        rate_scale=rate_scale,
        queue_limit_bytes=queue_limit_bytes,
        trace_rows=trace_rows,
    )
    routing = routing_of(fabric)
    for switch in result.switches.values():
        switch.clear()
        write_entries(switch, routing)
    return result


def write_entries(switch: EmulatedSwitch, routing: Routing) -> None:
    """Fill an empty switch; next hop and member n stand for port n."""
    fabric, name = routing.fabric, switch.name
    switch.set_default("ingress.node", ActionCall("ingress.set_node", (routing.hash_multipliers[name],)))
    for level in range(1, 8):
        switch.insert("ingress.level", exact((8 * level, 6)), ActionCall("ingress.set_level", (level,)))
    for link in fabric.links_from[name]:
        port = link.source_port
        macs = switch_mac(fabric.switch_index[name], port), neighbour_mac(fabric, link)
        switch.insert("ingress.next_hop", exact((port, 16)), ActionCall("ingress.forward", (port, *macs)))
        switch.insert_member("ingress.ecmp", port, ActionCall("ingress.set_next_hop", (port,)))
    groups: dict[tuple[int, ...], int] = {}
    for route in routing.routes(name):
        ports = tuple(fabric.links[link].source_port for link in route.links)
        if ports not in groups:
            groups[ports] = len(groups) + 1
            switch.insert_group("ingress.ecmp", groups[ports], ports, max_size=0)
        switch.insert("ingress.routing", prefix(route.address, route.prefix_length), GroupReference(groups[ports]))


def exact(*fields: tuple[int, int]) -> EntryKey:
    """The key of an exact match: values and widths in bits."""
    return EntryKey(tuple(FieldMatch(value, (1 << bits) - 1) for value, bits in fields))


def prefix(address: int, length: int) -> EntryKey:
    """The key of a route; bits behind the prefix are cut off."""
    mask = (1 << length) - 1 << 32 - length
    return EntryKey((FieldMatch(address & mask, mask),))


def flow_key(five_tuple: FiveTuple) -> EntryKey:
    """The key of a flow's entry."""
    return exact(
        (five_tuple.source_address, 32),
        (five_tuple.destination_address, 32),
        (five_tuple.protocol, 8),
        (five_tuple.source_port, 16),
        (five_tuple.destination_port, 16),
    )


def prioritise(result: EmulatedFabric, five_tuple: FiveTuple, level: int) -> None:
    """Give a flow a level at its first switch; later ones read it from the packets."""
    fabric = result.fabric
    first = fabric.links[fabric.nic_by_address[five_tuple.source_address].link].destination
    result.switches[first].insert("ingress.flow", flow_key(five_tuple), ActionCall("ingress.prioritise", (level,)))


def neighbour_mac(fabric: Fabric, link: Link) -> int:
    """MAC address of the port at the end of a link."""
    if link.destination in fabric.switch_index:
        return switch_mac(fabric.switch_index[link.destination], link.destination_port)
    return fabric.nics[link.destination][link.destination_port].mac


def five_tuple(
    fabric: Fabric, source: str, destination: str, source_port: int = 49152, protocol: int = UDP_PROTOCOL
) -> FiveTuple:
    """A connection between the first NICs of two hosts."""
    return FiveTuple(fabric.nics[source][0].address, fabric.nics[destination][0].address, protocol, source_port, 4791)


def advance(result: EmulatedFabric, until_ps: int) -> list[Completion]:
    """Let time pass up to a moment whatever completes."""
    found: list[Completion] = []
    while completions := result.run(until_ps):
        found += completions
    return found


def completion_times(result: EmulatedFabric, flows: Iterable[int], until_ps: int = 10**14) -> dict[int, int]:
    """When the transfers of these flows end; time stands at the last."""
    missing, times = set(flows), dict[int, int]()
    while missing:
        completions = result.run(until_ps)
        assert completions, f"flows {missing} have not completed at {until_ps} ps"
        for completion in completions:
            missing.remove(completion.flow)
            times[completion.flow] = completion.time_ps
    return times
