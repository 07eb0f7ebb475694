"""A real Open vSwitch does with every packet what the interpreter of entries says."""

from collections.abc import Iterator, Sequence
from random import Random

import pytest

from controller.southbound.openflow.entries import GroupType
from tests.controller.southbound.openflow.interpreter import Dropped, ForController, Left, Packet
from tests.controller.southbound.openflow.planned import Decided, other_flow, packet_of, route
from tests.controller.southbound.openflow.real_switches import ByHash, add_bridges, set_port, traced, write
from tests.openvswitch import running_openvswitch
from topologies.addressing import Address
from topologies.fabric import Fabric
from topologies.openflow_specification import Queues
from topologies.openvswitch.daemons import OpenVSwitch
from topologies.specification import ClosSpecification, GraphSpecification, LinkSpecification

CLOS = ClosSpecification(
    kind="clos", tors=2, aggs=3, hosts_per_tor=2, nics_per_host=1, host_link_gbps=100, uplink_gbps=100
).build()
IRREGULAR = GraphSpecification(
    kind="graph",
    hosts=("h0", "h1", "h2"),
    switches=("s0", "s1", "s2", "s3"),
    links=tuple(
        LinkSpecification(ends=ends, gbps=100)
        for ends in (
            *(("h0", "s0"), ("h0", "s1"), ("h1", "s3"), ("h2", "s2"), ("h2", "s3")),
            *(("s0", "s1"), ("s1", "s3"), ("s1", "s3"), ("s0", "s2"), ("s2", "s3")),
        )
    ),
).build()


@pytest.fixture
def openvswitch() -> Iterator[OpenVSwitch]:
    with running_openvswitch() as switch:
        yield switch


class Compared:
    """The interpreter and a real Open vSwitch with the same entries."""

    def __init__(self, openvswitch: OpenVSwitch, decided: Decided, queues: Queues) -> None:
        self._openvswitch = openvswitch
        self._fabric = decided.routing.fabric
        self._multipliers = decided.routing.hash_multipliers
        self._interpreted = decided.switches(queues)
        self._link_at = {(link.source, link.source_port): link for link in self._fabric.links}
        self._down: dict[str, set[int]] = {switch: set() for switch in self._fabric.switches}
        for switch, entries in decided.entries(queues).items():
            write(openvswitch, switch, entries)

    def set_port(self, switch: str, port: int, *, up: bool) -> None:
        (self._down[switch].discard if up else self._down[switch].add)(port)
        set_port(self._openvswitch, switch, port, up=up)

    def follow(self, packet: Packet) -> tuple[int, int]:
        """Compare at all switches that a packet may reach; return at how many, and where the datapath hashes."""
        first = self._fabric.links[self._fabric.nic_by_address[packet.source].link]
        arrivals = {(first.destination, first.destination_port, packet)}
        seen = set(arrivals)
        num_hashed = 0
        while arrivals:
            switch, port, arrived = arrivals.pop()
            expected = self._interpreted[switch].outcomes(arrived, port, self._down[switch])
            found = traced(self._openvswitch, switch, arrived, port)
            if isinstance(found, ByHash):
                assert found.basis == self._multipliers[switch]
                num_hashed += 1
            elif isinstance(found, Dropped):
                (only,) = expected
                assert isinstance(only, Dropped)
            else:
                assert expected == {found}
            for outcome in expected:
                if isinstance(outcome, Left):
                    link = self._link_at[switch, outcome.port]
                    arrival = link.destination, link.destination_port, outcome.packet
                    if link.destination in self._interpreted and arrival not in seen:
                        seen.add(arrival)
                        arrivals.add(arrival)
        return len(seen), num_hashed


def packets(decided: Decided, random: Random) -> Sequence[Packet]:
    """Packets of all flows, registered or not, with some DSCP."""
    flows = [five_tuple for flow in decided.flows for five_tuple in (flow.five_tuple, other_flow(flow.five_tuple))]
    return [packet_of(flow, random.randrange(64)) for flow in flows]


@pytest.mark.parametrize("queues", Queues)
@pytest.mark.parametrize("fabric", [CLOS, IRREGULAR], ids=["clos", "irregular"])
def test_packets_go_where_the_interpreter_says(openvswitch: OpenVSwitch, fabric: Fabric, queues: Queues) -> None:
    random = Random(1)
    add_bridges(openvswitch, fabric)
    decided = Decided(route(fabric), random)
    compared = Compared(openvswitch, decided, queues)
    counts = [compared.follow(packet) for packet in packets(decided, random)]
    assert min(num_compared for num_compared, _ in counts) >= 1
    assert max(num_compared for num_compared, _ in counts) >= 3
    assert sum(num_hashed for _, num_hashed in counts) > 0
    assert sum(num_hashed == 0 for _, num_hashed in counts) > 0


def test_steered_flows_leave_ports_that_are_down(openvswitch: OpenVSwitch) -> None:
    random = Random(2)
    add_bridges(openvswitch, CLOS)
    decided = Decided(route(CLOS), random)
    compared = Compared(openvswitch, decided, Queues.DSCP)
    links = CLOS.links
    for uplink in (link for link in links if link.source == "t0" and link.destination in CLOS.switch_index):
        compared.set_port("t0", uplink.source_port, up=False)
        for packet in packets(decided, random):
            compared.follow(packet)
        compared.set_port("t0", uplink.source_port, up=True)


def test_what_is_no_ipv4_on_its_way_is_not_sent_on(openvswitch: OpenVSwitch) -> None:
    add_bridges(openvswitch, CLOS)
    Compared(openvswitch, Decided(route(CLOS), Random(1)), Queues.DSCP)
    source, destination = CLOS.nics["h0"][0].address, CLOS.nics["h1"][0].address

    def found(**changes: int) -> object:
        return traced(openvswitch, "t0", Packet(source, destination, **changes), 1)  # type: ignore[arg-type]

    assert isinstance(found(), Left)
    assert found(ether_type=0x0806) == ForController(0xFFFF)
    assert found(ether_type=0x88CC) == ForController(0xFFFF)
    assert found(ether_type=0x86DD) == Dropped(None)
    assert found(time_to_live=1) == Dropped(None)
    assert traced(openvswitch, "t0", Packet(source, Address.parse("192.0.2.1")), 1) == Dropped(None)


def test_open_vswitch_holds_what_was_written(openvswitch: OpenVSwitch) -> None:
    add_bridges(openvswitch, CLOS)
    decided = Decided(route(CLOS), Random(1))
    for switch, entries in decided.entries(Queues.SET_QUEUE).items():
        write(openvswitch, switch, entries)
        kinds = [entry.kind for entry in entries if hasattr(entry, "kind")]
        held = openvswitch.ofctl("dump-groups", switch)
        assert held.count("type=indirect") == kinds.count(GroupType.INDIRECT)
        assert held.count("type=select,selection_method=dp_hash") == kinds.count(GroupType.SELECT)
        assert held.count("type=ff") == kinds.count(GroupType.FAST_FAILOVER)
        flows = openvswitch.ofctl("dump-flows", switch)
        assert flows.count("actions=") == len(entries) - len(kinds)
