"""Decisions that use probes: source ports under an unknown hash, and paths without answers."""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from itertools import count

import pytest

from controller.telemetry.path_table import REPORTS_TO_CONFIRM
from experiments.scenarios.driven.clock import DrivenClock
from hostlib.types import Directives, Flow, FlowGroup, Nic
from hostlib.wire import methods
from hostlib.wire import trainyard_pb2 as wire
from policies.policy import decide
from policies.registry import find_policy, policy_names
from tests.controller.telemetry.reports import five_tuple_to_wire, stack
from tests.driven import DrivenConnection
from tests.hostlib.served import GPT, Served, served
from tests.patience import PATIENCE_S
from topologies.addressing import FIRST_SOURCE_PORT, FiveTuple
from topologies.ecmp import FabricHash, hash_multipliers
from topologies.fabric import Path
from topologies.routing import Routing
from topologies.steering import Steering

_FLOWS = FlowGroup("all", tuple(Flow(Nic("h0"), Nic("h2"), 10**9) for _ in range(4)))
_NUMBERS: dict[str, Iterator[int]] = defaultdict(count)


class Prober:
    """Reports of what the switches' own hash, which the controller does not know, does with flows from h0 to h2."""

    def __init__(self, controller: Served) -> None:
        self._telemetry = controller.telemetry
        fabric = controller.routing.fabric
        self._hash = Routing(fabric, hash_multipliers(fabric.switches, seed=77))
        self._sequences = count()

    def true_path(self, flow: FiveTuple) -> Path:
        return self._hash.hashed_path(flow)

    def report(self, flows: Iterable[FiveTuple], paths: Iterator[Path] | None = None) -> wire.ExchangeProbesRequest:
        """Reports from h2's agent of as many probes of each flow as have to agree."""
        reports = []
        for flow in flows:
            path = next(paths) if paths is not None else self.true_path(flow)
            for number in range(REPORTS_TO_CONFIRM):
                reports.append(
                    wire.ProbeReport(
                        five_tuple=five_tuple_to_wire(flow, flow.source_port),
                        sequence=next(self._sequences),
                        port_sequence=number,
                        stack=stack(self._hash.fabric, path),
                    )
                )
        return wire.ExchangeProbesRequest(
            protocol_version="trainyard.v1", host="h2", owner_token="token", session=1, reports=reports
        )


async def tell(client: DrivenConnection, request: wire.ExchangeProbesRequest, now_s: float) -> None:
    """An exchange of h2's agent, and of h0's, which looks at how old everything is."""
    await client.settle(now_s)
    for host in ("h2", "h0"):
        request.host, request.number, request.clock_ns = host, next(_NUMBERS[host]), round(now_s * 1e9)
        await client._channel.call(methods.EXCHANGE_PROBES, request, 10.0)
        del request.reports[:]
    await client.settle(now_s)


def flows_from(first: FiveTuple, ports: Collection[int]) -> list[FiveTuple]:
    return [
        FiveTuple(first.source_address, first.destination_address, first.protocol, port, first.destination_port)
        for port in ports
    ]


def led(controller: Served) -> int:
    """Rules in force that send a flow elsewhere than its hash does."""
    return sum(rule.next_link is not None for rules in controller.southbound.written[-1].values() for rule in rules)


def nodes_and_links(controller: Served, path: Path) -> tuple[tuple[str, ...], tuple[int, ...]]:
    fabric = controller.routing.fabric
    return fabric.nodes_of(path), tuple(fabric.parallel_index(link) for link in path)


def the_flow(controller: Served) -> FiveTuple:
    nics = controller.routing.fabric.nics
    return FiveTuple(nics["h0"][0].address, nics["h2"][0].address, 17, FIRST_SOURCE_PORT, 4791)


async def newest(client: DrivenConnection) -> Directives:
    return await anext(client.directives("gpt"))


def test_where_the_hash_is_unknown_ports_steer_once_probes_know_them() -> None:
    async def scenario() -> None:
        async with (
            served(
                steering=Steering.SOURCE_PORT,
                plans_by_itself=False,
                fabric_hash=FabricHash.UNKNOWN,
                clock=DrivenClock(),
            ) as controller,
            DrivenConnection(controller.address) as client,
        ):
            await client.register_job(GPT)
            await client.register_flow_groups("gpt", [_FLOWS])
            await client.settle(0.0)
            # Without probes, rules lead the flows at both switches with a choice.
            assert led(controller) == 2 * len(_FLOWS.flows)
            prober, flow = Prober(controller), the_flow(controller)
            await tell(client, prober.report([]), 0.0)
            await tell(client, prober.report(flows_from(flow, range(50_000, 50_100))), 0.0)
            directives = await newest(client)
            assert directives.plan_number == 2
            assert led(controller) == 0
            ports = [told.source_port for told in directives.flows]
            assert len(set(ports)) == len(ports)
            for told, sent in zip(directives.flows, flows_from(flow, ports), strict=True):
                assert (told.path.nodes, told.path.links) == nodes_and_links(controller, prober.true_path(sent))
            # A new plan of the same state changes no port and needs no rule.
            controller.planner.mark_changed()
            await client.settle(0.5)
            assert [told.source_port for told in (await newest(client)).flows] == ports
            assert led(controller) == 0

            # One flow's port turns out to lead elsewhere now: it is given another.
            moved = flows_from(flow, ports[:1])
            nics = controller.routing.fabric.nics
            paths = controller.routing.candidate_paths(nics["h0"][0], nics["h2"][0])
            elsewhere = next(path for path in paths if path != prober.true_path(moved[0]))
            await tell(client, prober.report(moved, iter([elsewhere])), 1.0)
            again = await newest(client)
            assert again.plan_number == 4
            assert led(controller) == 0
            by_port = {told.source_port: (told.path.nodes, told.path.links) for told in again.flows}
            for sent in flows_from(flow, by_port):
                true = elsewhere if sent == moved[0] else prober.true_path(sent)
                assert by_port[sent.source_port] == nodes_and_links(controller, true)

    asyncio.run(asyncio.wait_for(scenario(), PATIENCE_S))


def test_paths_without_answers_are_no_candidates() -> None:
    async def scenario() -> None:
        async with (
            served(plans_by_itself=False, clock=DrivenClock()) as controller,
            DrivenConnection(controller.address) as client,
        ):
            await client.register_job(GPT)
            await client.register_flow_groups("gpt", [_FLOWS])
            await client.settle(0.0)
            prober, flow = Prober(controller), the_flow(controller)
            await tell(client, prober.report([]), 0.0)
            probes = flows_from(flow, range(50_000, 50_100))
            await tell(client, prober.report(probes), 0.0)
            snapshot = controller.planner.decision.snapshot
            [paths] = {found.candidates for found in snapshot.jobs[0].flows}
            assert len(paths) == 8
            # From now on no probe comes by the first uplink of h0's ToR.
            dead = paths[0][1]
            alive = [probe for probe in probes if dead not in prober.true_path(probe)]
            for now_s in (2.0, 4.0, 6.0):
                await tell(client, prober.report(alive), now_s)
            snapshot = controller.planner.decision.snapshot
            [left] = {found.candidates for found in snapshot.jobs[0].flows}
            assert set(left) == {path for path in paths if dead not in path}
            for policy in policy_names():
                plan = decide(find_policy(policy), snapshot)
                assert all(choice.path is None or choice.path in left for choice in plan.flows.values())

    asyncio.run(asyncio.wait_for(scenario(), PATIENCE_S))


def test_silence_on_all_paths_changes_nothing() -> None:
    """Where no probe comes any more, it is the agents that are gone: all paths stay candidates."""

    async def scenario() -> None:
        async with (
            served(plans_by_itself=False, clock=DrivenClock()) as controller,
            DrivenConnection(controller.address) as client,
        ):
            await client.register_job(GPT)
            await client.register_flow_groups("gpt", [_FLOWS])
            await client.settle(0.0)
            prober = Prober(controller)
            await tell(client, prober.report([]), 0.0)
            await tell(client, prober.report(flows_from(the_flow(controller), range(50_000, 50_100))), 0.0)
            await tell(client, prober.report([]), 9.0)
            controller.planner.mark_changed()
            await client.settle(9.0)
            snapshot = controller.planner.decision.snapshot
            assert {len(found.candidates) for found in snapshot.jobs[0].flows} == {8}
            assert {found.is_hash_probed for found in snapshot.jobs[0].flows} == {False}

    asyncio.run(asyncio.wait_for(scenario(), PATIENCE_S))


@pytest.mark.parametrize("steering", Steering)
def test_rules_steer_under_an_unknown_hash_without_agents(steering: Steering) -> None:
    async def scenario() -> None:
        async with (
            served(steering=steering, plans_by_itself=False, fabric_hash=FabricHash.UNKNOWN) as controller,
            DrivenConnection(controller.address) as client,
        ):
            await client.register_job(GPT)
            await client.register_flow_groups("gpt", [_FLOWS])
            await client.settle(0.0)
            assert led(controller) == 2 * len(_FLOWS.flows)

    asyncio.run(asyncio.wait_for(scenario(), PATIENCE_S))
