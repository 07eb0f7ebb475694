"""A fabric with an ordinary switch: others fill its tables, and flows are steered around its hash."""

import asyncio
from random import Random

import pytest

from controller.clock import WallClock
from controller.config import BaseRouting, ControllerConfig
from controller.process.active_controller import active_controller
from tests.compiled import compile_loops
from tests.integration.routing_client import routed_by_another
from tests.integration.test_routing_of_others import paths_taken, planned, register
from tests.patience import PATIENCE_S, until
from tests.topologies.renumbering import renumbered_specification
from topologies.ecmp import hash_multipliers
from topologies.fabric import Control
from topologies.fabric_specification import FabricSpecification
from topologies.routing import Routing
from topologies.specification import FatTreeSpecification


def topology_with(*ordinary: str) -> FabricSpecification:
    """A fat-tree of two pods' worth of made-up addresses and ports, in which these switches are ordinary."""
    fat_tree = FatTreeSpecification(kind="fat_tree", k=4, host_link_gbps=4, uplink_gbps=4)
    document = renumbered_specification(fat_tree.build(), Random(5)).model_dump(mode="json")
    for switch in document["switches"]:
        if switch["name"] in ordinary:
            switch["control"] = Control.DSCP_ONLY
    return FabricSpecification.model_validate(document)


@pytest.mark.parametrize("base_routing", BaseRouting)
def test_our_switches_steer_and_ordinary_ones_are_left_alone(base_routing: BaseRouting) -> None:
    compile_loops("trainyard")

    async def test() -> None:
        plain = topology_with().build()
        source, destination = plain.nics[plain.hosts[0]][0], plain.nics[plain.hosts[-1]][0]
        tor = plain.links[source.link].destination
        # Core switches have one way to a host, so that a path by one is known as a whole.
        core = plain.links[
            Routing(plain, hash_multipliers(plain.switches, 1)).candidate_paths(source, destination)[0][2]
        ]
        ordinary = core.destination
        topology = topology_with(ordinary)
        fabric = topology.build()
        routing = Routing(fabric, hash_multipliers(fabric.switches, 77))
        only = None if base_routing is BaseRouting.OTHER else {ordinary}
        async with routed_by_another(fabric, routing, only) as shared:
            config = ControllerConfig(
                topology=topology,
                switches=shared.addresses,
                base_routing=base_routing,
                read_back_s=1.0,
                policy="trainyard",
                policy_time_limit_s=None,  # however busy the machine is
                lease_s=1000.0,
            )
            believed = Routing(fabric, hash_multipliers(fabric.switches, config.hash_seed))
            async with active_controller(config, believed, WallClock()) as active:
                controller = active.core
                await asyncio.wait_for(controller.southbound.caught_up(), PATIENCE_S)
                assert ordinary not in {status.name for status in controller.southbound.statuses()}
                await register(controller, "gpt", (fabric.hosts[0], fabric.hosts[-1]), num_flows=8)
                await until(lambda: len(planned(controller, "gpt")) == 8)
                await controller.planner.settle()
                flows = planned(controller, "gpt")
                assert paths_taken(shared, list(flows)) == list(flows.values())
                assert any(ordinary in fabric.nodes_of(path) for path in flows.values())
                assert len(set(flows.values())) == 4
                switch = shared.emulated.switches[ordinary]
                assert list(switch.entries("ingress.flow")) == []
                assert len(list(switch.entries("ingress.level"))) == 7
                assert list(shared.emulated.switches[tor].entries("ingress.flow"))

    asyncio.run(test())
