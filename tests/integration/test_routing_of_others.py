"""Base routing that another client of the switches writes: we read it, plan with it, and leave it alone."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import pytest
from finsy import P4TableAction, P4TableEntry, P4TableMatch

from controller.clock import WallClock
from controller.config import BaseRouting, ControllerConfig
from controller.process.active_controller import active_controller
from controller.process.core import ControllerCore
from controller.registry.requests import FlowGroupRequest, FlowRequest, JobRequest, NicReference
from emulator.entries import ActionCall
from emulator.fabric import PS_PER_S
from emulator.observations import TraceKind
from emulator.switch import EmulatedSwitch
from policies.flows import Flow
from policies.job import Profile
from tests.compiled import compile_loops
from tests.integration.routing_client import FIRST_NEXT_HOP, SharedFabric, routed_by_another
from tests.patience import PATIENCE_S, until
from tests.topologies.renumbering import renumbered_specification
from topologies.ecmp import hash_multipliers
from topologies.fabric import Path
from topologies.fabric_specification import FabricSpecification
from topologies.routing import Routing
from topologies.specification import ClosSpecification

_BASE_TABLES = "ingress.routing", "ingress.next_hop"
_READ_BACK_S = 0.3


@pytest.fixture
def topology() -> FabricSpecification:
    """Two ToRs of two hosts, two aggregation switches, with made-up addresses and ports."""
    clos = ClosSpecification(kind="clos", tors=2, aggs=2, hosts_per_tor=2, host_link_gbps=4, uplink_gbps=2)
    return renumbered_specification(clos.build(), Random(3))


@asynccontextmanager
async def beside(shared: SharedFabric, topology: FabricSpecification, **options: Any) -> AsyncIterator[ControllerCore]:
    """Run a controller that leaves base routing to the other client."""
    compile_loops("trainyard")
    config = ControllerConfig(
        topology=topology,
        switches=shared.addresses,
        base_routing=BaseRouting.OTHER,
        read_back_s=_READ_BACK_S,
        policy="trainyard",
        policy_time_limit_s=None,  # however busy the machine is
        lease_s=1000.0,
        **options,
    )
    fabric = shared.emulated.fabric
    routing = Routing(fabric, hash_multipliers(fabric.switches, config.hash_seed))
    async with active_controller(config, routing, WallClock()) as active:
        controller = active.core
        await asyncio.wait_for(controller.southbound.caught_up(), PATIENCE_S)
        yield controller


async def register(controller: ControllerCore, name: str, hosts: tuple[str, str], num_flows: int = 4) -> None:
    """Register a job that sends from the first host to the second."""
    source, destination = (NicReference(host, 0) for host in hosts)
    flows = tuple(FlowRequest(source, destination, 10_000_000, 0.0) for _ in range(num_flows))
    request = JobRequest(name, hosts, 16, Profile(compute_s=0.01, comm_start=0.5, work=0.16))
    controller.registry.register_job(request, controller.planner._clock.now_s())
    controller.registry.register_flow_groups(name, [FlowGroupRequest("all", flows)])
    controller.planner.mark_changed()
    await until(lambda: bool(planned(controller, name)))


def planned(controller: ControllerCore, job: str) -> dict[Flow, Path]:
    """The flows of a job in the decision in force, with their paths."""
    decision = controller.planner.decision
    if decision is None:
        return {}
    return {
        flow: decision.plan.flows[flow.key].path or flow.hashed_path
        for each in decision.snapshot.jobs
        if each.name == job
        for flow in each.flows
        if not flow.is_cut_off
    }


def base_of(switch: EmulatedSwitch) -> list[str]:
    """All that the other client has written to a switch."""
    entries = [str(entry) for table in _BASE_TABLES for entry in switch.entries(table)]
    return sorted((*entries, str(switch.members("ingress.ecmp")), str(switch.groups("ingress.ecmp"))))


def paths_taken(shared: SharedFabric, flows: list[Flow]) -> list[Path]:
    """Send over every flow, and return the links that its packets took."""
    emulated, taken = shared.emulated, list[Path]()
    fabric = emulated.fabric
    for flow in flows:
        emulated.take_trace()
        number = emulated.add_flow(flow.five_tuple)
        emulated.start_transfer(number, 10_000)
        assert emulated.run(emulated.now_ps + PS_PER_S)
        links = [row.link for row in emulated.take_trace() if row.kind is TraceKind.STARTED and row.flow == number]
        # Acknowledgements come back behind the last link.
        last = fabric.reverse(fabric.nic_by_address[flow.five_tuple.destination_address].link)
        taken.append(tuple(dict.fromkeys(links[: links.index(last) + 1])))
    return taken


def steering(switch: EmulatedSwitch) -> list[int]:
    """The next hops to which flow rules of a switch steer."""
    actions = [action for _, action in switch.entries("ingress.flow")]
    return [
        call.arguments[0]
        for call in actions
        if isinstance(call, ActionCall) and call.action.rpartition(".")[2] in ("steer", "steer_and_prioritise")
    ]


def test_flows_take_the_paths_of_the_plan_and_base_tables_stay_the_others(topology: FabricSpecification) -> None:
    async def test() -> None:
        fabric = topology.build()
        async with routed_by_another(fabric, Routing(fabric, hash_multipliers(fabric.switches, 77))) as shared:
            before = {name: base_of(switch) for name, switch in shared.emulated.switches.items()}
            async with beside(shared, topology) as controller:
                await register(controller, "gpt", ("h0", "h2"))
                await register(controller, "bert", ("h1", "h3"))
                await until(lambda: len(planned(controller, "gpt")) == len(planned(controller, "bert")) == 4)
                await controller.planner.settle()
                flows = planned(controller, "gpt") | planned(controller, "bert")
                assert paths_taken(shared, list(flows)) == list(flows.values())
                assert len(set(flows.values())) == 4
                steered = [next_hop for switch in shared.emulated.switches.values() for next_hop in steering(switch)]
                assert steered
                assert all(next_hop >= FIRST_NEXT_HOP for next_hop in steered)
                assert {name: base_of(switch) for name, switch in shared.emulated.switches.items()} == before
                assert not any(status.problem or status.drifted for status in controller.southbound.statuses())

    asyncio.run(test())


def test_a_change_of_the_other_client_is_noticed_and_flows_follow_it(topology: FabricSpecification) -> None:
    async def test() -> None:
        fabric = topology.build()
        routing = Routing(fabric, hash_multipliers(fabric.switches, 77))
        async with routed_by_another(fabric, routing) as shared, beside(shared, topology) as controller:
            await register(controller, "gpt", ("h0", "h2"))
            await until(lambda: len(planned(controller, "gpt")) == 4)
            nic = fabric.nics["h2"][0]
            tor = fabric.links[fabric.nics["h0"][0].link].destination
            left, kept = controller.planner.routing.next_links(tor, nic)
            # The client prefers one host's address by one uplink alone.
            client = shared.client
            member = 7 + client.next_hop(kept)
            await client.switches[tor].write([client.route_to(nic.address, 32, member_id=member)])
            await until(lambda: all(path[1] == kept for path in planned(controller, "gpt").values()))
            await controller.planner.settle()
            flows = planned(controller, "gpt")
            assert paths_taken(shared, list(flows)) == list(flows.values())
            assert all(left not in path for path in flows.values())

    asyncio.run(test())


def test_rules_follow_next_hops_to_new_numbers(topology: FabricSpecification) -> None:
    async def test() -> None:
        fabric = topology.build()
        routing = Routing(fabric, hash_multipliers(fabric.switches, 77))
        async with routed_by_another(fabric, routing) as shared, beside(shared, topology) as controller:
            await register(controller, "gpt", ("h0", "h2"))
            await register(controller, "bert", ("h1", "h3"))
            await controller.planner.settle()
            switches = shared.emulated.switches.values()
            steered = sum(len(steering(switch)) for switch in switches)
            assert steered
            await shared.client.renumber(5000)
            await until(lambda: all(min(steering(switch), default=5000) >= 5000 for switch in switches))
            flows = planned(controller, "gpt") | planned(controller, "bert")
            assert paths_taken(shared, list(flows)) == list(flows.values())
            assert sum(len(steering(switch)) for switch in switches) == steered

    asyncio.run(test())


def test_what_the_other_client_writes_to_our_tables_is_reported_and_repaired(
    topology: FabricSpecification, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        fabric = topology.build()
        routing = Routing(fabric, hash_multipliers(fabric.switches, 77))
        async with routed_by_another(fabric, routing) as shared, beside(shared, topology) as controller:
            await register(controller, "gpt", ("h0", "h2"))
            await controller.southbound.forget_found()
            name = shared.addresses[0].name
            switch = shared.emulated.switches[name]

            def ours() -> list[str]:
                return sorted(
                    str(entry) for table in ("ingress.flow", "ingress.level") for entry in switch.entries(table)
                )

            before = ours()
            match = P4TableMatch(
                source_address=1, destination_address=2, protocol=17, source_port=3, destination_port=4
            )
            foreign = P4TableEntry("flow", match=match, action=P4TableAction("prioritise", level=7))
            level = P4TableEntry("level", match=P4TableMatch(dscp=8), action=P4TableAction("set_level", level=7))
            await shared.client.switches[name].write([+foreign, ~level])
            assert ours() != before
            await until(lambda: ours() == before)
            await until(lambda: controller.southbound.statuses()[0].drifted == 2)
            assert f"switch {name}: drift repaired: 0 missing, 1 changed and 1 foreign" in caplog.text

    asyncio.run(test())


def test_a_route_that_makes_no_sense_is_named_and_nothing_is_steered_there(
    topology: FabricSpecification, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        fabric = topology.build()
        async with routed_by_another(fabric, Routing(fabric, hash_multipliers(fabric.switches, 77))) as shared:
            nic, tor = fabric.nics["h2"][0], fabric.links[fabric.nics["h0"][0].link].destination
            other = fabric.nics["h3"][0]
            client = shared.client
            uncabled = next(
                port for port in range(1, 510) if port not in {e.source_port for e in fabric.links_from[tor]}
            )
            await client.switches[tor].write(
                [
                    +P4TableEntry(
                        "next_hop",
                        match=P4TableMatch(next_hop=9),
                        action=P4TableAction("forward", port=uncabled, source_mac=2, destination_mac=4),
                    )
                ]
            )
            aggregation = fabric.links[client.routing.next_links(tor, nic)[0]].destination
            back = next(link.index for link in fabric.links_from[aggregation] if link.destination == tor)
            await client.switches[aggregation].write(
                [client.route_to(other.address, 32, member_id=7 + client.next_hop(back))]
            )
            async with beside(shared, topology) as controller:
                await register(controller, "gpt", ("h0", "h3"))
                await until(lambda: len(planned(controller, "gpt")) == 4)
                assert all(aggregation not in fabric.nodes_of(path) for path in planned(controller, "gpt").values())
                circle = f"routes to {other.subnet} lead in a circle: {', '.join(sorted((aggregation, tor)))}"
                await until(lambda: circle in caplog.text)
                flows = planned(controller, "gpt")
                await controller.planner.settle()
                assert paths_taken(shared, list(flows)) == list(flows.values())

    asyncio.run(test())
