"""Steering by source port: flows take the paths of the Plan by the hash, and rules only set levels."""

import asyncio
from dataclasses import replace
from ipaddress import IPv4Address

import pytest

from hostlib.types import FiveTuple, Flow, FlowGroup, Nic
from tests.driven import DrivenConnection
from tests.hostlib.served import BERT, GPT, Served, served
from tests.patience import PATIENCE_S
from topologies.addressing import TCP_PROTOCOL, UDP_PROTOCOL
from topologies.addressing import FiveTuple as FlowFiveTuple
from topologies.steering import Steering

_FLOWS = FlowGroup("all", tuple(Flow(Nic("h0"), Nic("h2"), 10**9) for _ in range(8)))
_OVER_TCP = FlowGroup("all", tuple(replace(flow, tcp_port=40_000) for flow in _FLOWS.flows))


def _hashed_nodes(controller: Served, five_tuple: FiveTuple, source_port: int) -> tuple[list[str], list[int]]:
    """Where the fabric's hash sends a flow from this port."""
    fabric = controller.routing.fabric
    path = controller.routing.hashed_path(
        FlowFiveTuple(
            int(five_tuple.source_address),
            int(five_tuple.destination_address),
            five_tuple.protocol,
            source_port,
            five_tuple.destination_port,
        )
    )
    return list(fabric.nodes_of(path)), [fabric.parallel_index(link) for link in path]


@pytest.mark.parametrize(("flows", "protocol"), [(_FLOWS, UDP_PROTOCOL), (_OVER_TCP, TCP_PROTOCOL)])
def test_flows_take_their_paths_by_port_and_no_rule_steers_them(flows: FlowGroup, protocol: int) -> None:
    async def scenario() -> None:
        async with (
            served(steering=Steering.SOURCE_PORT, plans_by_itself=False) as controller,
            DrivenConnection(controller.address) as client,
        ):
            await client.register_job(GPT)
            five_tuples = await client.register_flow_groups("gpt", [flows])
            assert {five_tuple.protocol for five_tuple in five_tuples["all"]} == {protocol}
            await client.settle()
            directives = await anext(client.directives("gpt"))
            assert len({flow.path for flow in directives.flows}) == 4  # as many as t0 has uplinks
            assert len({flow.source_port for flow in directives.flows}) == len(directives.flows)
            for flow, five_tuple in zip(directives.flows, five_tuples["all"], strict=True):
                hashed = _hashed_nodes(controller, five_tuple, flow.source_port)
                assert hashed == (list(flow.path.nodes), list(flow.path.links))
            assert {rule.next_link for rules in controller.southbound.written[-1].values() for rule in rules} == {None}
            # The plan tells the same ports, and the next one changes none of them.
            plan = await client.plan()
            assert [flow.five_tuple.source_port for flow in plan.flows] == [f.source_port for f in directives.flows]
            assert {flow.steered for flow in plan.flows} == {True}
            await client.register_job(BERT)
            assert (await client.settle()).plan_number == 2
            again = await anext(client.directives("gpt"))
            assert [flow.source_port for flow in again.flows] == [flow.source_port for flow in directives.flows]

    asyncio.run(asyncio.wait_for(scenario(), PATIENCE_S))


def test_flows_that_hosts_have_opened_keep_their_ports_and_get_rules() -> None:
    async def scenario() -> None:
        async with (
            served(steering=Steering.SOURCE_PORT, plans_by_itself=False) as controller,
            DrivenConnection(controller.address) as client,
        ):
            nics = controller.routing.fabric.nics
            source, destination = nics["h0"][0].address, nics["h2"][0].address
            opened = tuple(
                replace(flow, five_tuple=FiveTuple(IPv4Address(source), IPv4Address(destination), 17, 60_000 + n, 4791))
                for n, flow in enumerate(_FLOWS.flows)
            )
            await client.register_job(GPT)
            await client.register_flow_groups("gpt", [FlowGroup("all", opened)])
            await client.settle()
            directives = await anext(client.directives("gpt"))
            assert [flow.source_port for flow in directives.flows] == [60_000 + n for n in range(8)]
            rules = [rule for rules in controller.southbound.written[-1].values() for rule in rules]
            assert any(rule.next_link is not None for rule in rules)

    asyncio.run(asyncio.wait_for(scenario(), PATIENCE_S))
