"""Base routing on a live BMv2: the flows of a dead port hash over the rest at once, without a controller."""

from pathlib import Path

import pytest
from finsy import P4ActionProfileGroup, P4ActionProfileMember, P4Schema, P4TableEntry
from finsy.p4entity import decode_entity

from controller.southbound.p4runtime.encoding import Encoder
from controller.southbound.p4runtime.entries import base_entries
from controller.southbound.p4runtime.states import difference, state_of
from p4src import P4INFO
from tests.bmv2.live import VARIABLE, Bmv2, find_bmv2, running
from tests.bmv2.session import Packet
from tests.p4src.packets import Ipv4
from topologies.addressing import UDP_PROTOCOL, FiveTuple
from topologies.ecmp import hash_multipliers
from topologies.fabric import Fabric
from topologies.routing import Routing
from topologies.specification import ClosSpecification

FLOWS = 24
SCHEMA = P4Schema(Path(P4INFO))
ENCODER = Encoder(SCHEMA)


@pytest.fixture(scope="module")
def command() -> str:
    found = find_bmv2()
    if found is None:
        pytest.skip(
            f"simple_switch_grpc is not on PATH and {VARIABLE} does not name it: that a live BMv2 passes over dead "
            "members of base routing's groups is not checked here; that the emulator does is, in test_failures"
        )
    return found


@pytest.fixture(scope="module")
def routing() -> Routing:
    """Two ToRs, two aggregation switches, two cables between every pair: t0 has two host ports and four uplinks."""
    fabric = ClosSpecification(
        kind="clos", tors=2, aggs=2, hosts_per_tor=2, host_link_gbps=100, uplink_gbps=100, uplinks_per_pair=2
    ).build()
    return Routing(fabric, hash_multipliers(fabric.switches, seed=1))


def flows(fabric: Fabric) -> list[FiveTuple]:
    source, destination = fabric.nics["h0"][0].address, fabric.nics["h2"][0].address
    return [FiveTuple(source, destination, UDP_PROTOCOL, 50_000 + number, 4791) for number in range(FLOWS)]


def leaves_by(bmv2: Bmv2, flow: FiveTuple) -> int:
    octets = Ipv4(
        source=flow.source_address,
        destination=flow.destination_address,
        source_port=flow.source_port,
        destination_port=flow.destination_port,
    ).octets()
    [left] = bmv2.send(Packet(1, octets))
    return left.port


def expected(routing: Routing, flow: FiveTuple) -> int:
    return routing.fabric.links[routing.hashed_path(flow)[1]].source_port


def base_routing(bmv2: Bmv2, routing: Routing) -> None:
    """Have it held, whatever part of it is: as the controller does at every connection."""
    wanted = P4TableEntry("routing"), P4TableEntry("next_hop"), P4TableEntry("level"), P4ActionProfileMember()
    found = bmv2.read(*(entity.encode(SCHEMA) for entity in (*wanted, P4ActionProfileGroup())))
    held = state_of(decode_entity(entity, SCHEMA) for entity in found)
    for stage in difference(held, state_of(base_entries("t0", routing))):
        bmv2.write([ENCODER.update(update) for update in stage])


def test_a_dead_port_is_passed_over_until_it_is_back(command: str, routing: Routing) -> None:
    fabric = routing.fabric
    some = flows(fabric)
    dying = fabric.links[routing.hashed_path(some[0])[1]]
    without = routing.without({dying.index, fabric.reverse(dying.index)})
    with running(command) as bmv2:
        # BMv2 1.15.5 reads the last member's watch port back for all of a group: so its groups are written once more.
        for _ in range(2):
            base_routing(bmv2, routing)
            assert [leaves_by(bmv2, flow) for flow in some] == [expected(routing, flow) for flow in some]
            bmv2.set_port(dying.source_port, up=False)
            assert [leaves_by(bmv2, flow) for flow in some] == [expected(without, flow) for flow in some]
            bmv2.set_port(dying.source_port, up=True)
            assert [leaves_by(bmv2, flow) for flow in some] == [expected(routing, flow) for flow in some]
