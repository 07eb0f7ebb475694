"""The MACs of NICs stay known while a reload moves their cables."""

import asyncio

from controller.southbound.openflow.entries import Group
from controller.southbound.openflow.switches import OpenFlowSouthbound
from tests.controller.southbound.openflow.planned import route
from tests.controller.southbound.openflow.switched import LISTEN, addresses_of
from topologies.addressing import MacAddress
from topologies.clos import ClosSpecification
from topologies.expanding import expanded
from topologies.fabric import Fabric
from topologies.fabric_specification import FabricSpecification

_CLOS = ClosSpecification(kind="clos", tors=2, aggs=2, hosts_per_tor=2, host_link_gbps=100, uplink_gbps=100)
_MAC = MacAddress(0x02AABBCCDDEE)


def _fabric(port_of_h0: int) -> Fabric:
    """A fabric whose MACs have to be learned, with h0 at this port of t0."""
    document = expanded(_CLOS.build()).model_dump(mode="json")
    for host in document["hosts"]:
        for nic in host["nics"]:
            nic["mac"] = None
    for cable in document["cables"]:
        if "h0:eth0" in cable["ends"]:
            cable["ends"] = ["h0:eth0", f"t0:{port_of_h0}"]
    return FabricSpecification.model_validate(document).build()


def test_neighbours_are_known_on_the_way_to_another_fabric() -> None:
    async def run() -> None:
        before, after = _fabric(1), _fabric(9)
        addresses = addresses_of(before.switches)
        southbound = OpenFlowSouthbound(addresses, route(before), LISTEN)
        known = {before.nics["h0"][0].address: _MAC}
        async with southbound.hearing_ports(None), southbound:
            await southbound.set_neighbours(known)
            assert southbound.neighbours() == known
            await southbound.use_fabric(addresses, route(after))
            assert southbound.neighbours() == known
            await southbound.rebase(route(after))
            assert southbound.neighbours() == known
            (group,) = southbound._writers["t0"].neighbours.values()
            assert isinstance(group, Group)
            assert (group.group_id, group.buckets[0].port) == (9, 9)

    asyncio.run(run())
