"""Planning is paused, all is released, levels and paths are pinned under traffic; no packet is lost by any of it."""

import asyncio
from typing import Any

import pytest

from benchmarks.controlled_fabric import ControlledFabric
from controller.planning.intervening import Intervening
from controller.planning.path_names import path_name
from controller.profiling.measured import ProfilingResults
from controller.registry.requests import FlowGroupRequest, FlowRequest, JobRequest, NicReference
from controller.southbound.p4runtime.switches import P4RuntimeSouthbound
from controller.southbound.states import EntryKind
from policies.job import Profile
from tests.integration.busy_fabric import CLOS, FAT_TREE, Traffic, busy
from tests.integration.test_draining import fabric_state


def hands_of(fabric: ControlledFabric) -> Intervening:
    core = fabric.controller
    return Intervening(core.planner, core.registry, core.southbound, fabric._clock, ProfilingResults())


def levels(fabric: ControlledFabric) -> list[tuple[str, int]]:
    """Return the levels that flows have, each with its job."""
    decision = fabric.controller.planner.decision
    assert decision is not None
    return [(key.job, plan.level) for key, plan in decision.plan.flows.items()]


def held_rules(fabric: ControlledFabric, table: str) -> int:
    return sum(len(list(switch.entries(table))) for switch in fabric.emulated.switches.values())


@pytest.mark.parametrize(("topology", "hosts"), [(CLOS, 6), (FAT_TREE, 16)])
@pytest.mark.parametrize("policy", ["crux", "ecmp"])
def test_no_packet_is_lost_by_release_and_resume(
    topology: dict[str, Any], hosts: int, policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test() -> None:
        async with busy(topology, hosts, monkeypatch, policy) as (fabric, traffic):
            hands, before = hands_of(fabric), fabric_state(fabric)
            rates_gbps = [traffic.rate_gbps(0.004)]
            assert await hands.release("alice") == (True, ())
            assert held_rules(fabric, "ingress.flow") == held_rules(fabric, "ingress.level") == 0
            rates_gbps.append(traffic.rate_gbps(0.004))
            await fabric.settle()
            assert held_rules(fabric, "ingress.flow") == 0
            await hands.resume()
            await fabric.settle()
            assert fabric_state(fabric) == before
            assert held_rules(fabric, "ingress.level") > 0
            rates_gbps.append(traffic.rate_gbps(0.004))
            assert traffic.lost() == {}
            print(f"{policy}: {', '.join(f'{rate:.1f}' for rate in rates_gbps)} Gb/s before, released and after")
            assert min(rates_gbps) > 0

    asyncio.run(test())


@pytest.mark.parametrize(("topology", "hosts"), [(CLOS, 6), (FAT_TREE, 16)])
def test_no_packet_is_lost_by_pins(topology: dict[str, Any], hosts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        async with busy(topology, hosts, monkeypatch) as (fabric, traffic):
            hands, before = hands_of(fabric), fabric_state(fabric)
            flow = next(each for each in fabric.flows if each.key.job == "all" and len(each.candidates) > 1)
            name = "/".join(map(str, flow.key))
            for path in flow.candidates:
                await hands.pin(name, None, path_name(path, fabric.routing.fabric), 600.0, "alice")
                await fabric.settle()
                assert fabric.path(flow) == path
                traffic.run(0.001)
            await hands.pin("even", 7, None, 600.0, "alice")
            await hands.pin("all", 0, None, 600.0, "alice")
            await fabric.settle()
            assert {level for job, level in levels(fabric) if job == "even"} == {7}
            assert {level for job, level in levels(fabric) if job == "all"} == {0}
            traffic.run(0.001)
            for each in (name, "even", "all"):
                await hands.unpin(each)
            await fabric.settle()
            assert fabric_state(fabric) == before
            traffic.run(0.001)
            assert traffic.lost() == {}

    asyncio.run(test())


def test_no_packet_is_lost_in_a_pause_in_which_jobs_come_and_go(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        async with busy(CLOS, 6, monkeypatch) as (fabric, traffic):
            hands, registry = hands_of(fabric), fabric.controller.registry
            rules = held_rules(fabric, "ingress.flow")
            await hands.pause("alice", "maintenance")
            ends = NicReference("h0", 0), NicReference("h5", 0)
            registry.register_job(JobRequest("late", ("h0", "h5"), 2, Profile(0.1, 0.5, 1.0)), fabric.now_s)
            registry.register_flow_groups("late", [FlowGroupRequest("once", (FlowRequest(*ends, 10**8, 0.0),))])
            registry.deregister("even")
            await fabric.settle()
            assert held_rules(fabric, "ingress.flow") == rules
            traffic.run(0.002)
            await hands.resume()
            await fabric.settle()
            assert {flow.key.job for flow in fabric.flows} == {"all", "late"}
            traffic.run(0.002)
            assert traffic.lost() == {}

    asyncio.run(test())


def test_a_dead_link_is_left_at_once_in_a_pause_and_while_released(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        async with busy(CLOS, 6, monkeypatch) as (fabric, traffic):
            hands = hands_of(fabric)
            for intervene in (hands.pause, hands.release):
                await intervene("alice")
                steered = next(flow for flow in fabric.flows if len(fabric.path(flow)) > 2)
                cable = fabric.path(steered)[1] // 2
                fabric.set_cable(cable, up=False)
                await fabric.report_ports()
                await fabric.leave_dead_links()
                five_tuples = [flow.five_tuple for flow in fabric.flows]
                lost = traffic.lost()
                assert fabric.carried(five_tuples) == set(five_tuples)
                traffic.run(0.002)
                assert traffic.lost() == lost
                fabric.set_cable(cable, up=True)
                await fabric.report_ports()
                await hands.resume()
                await fabric.settle()
            southbound = fabric.controller.southbound
            assert isinstance(southbound, P4RuntimeSouthbound)
            held = southbound._writers["t0"]._held_base
            assert any(key.kind is EntryKind.LEVEL for key in held)

    asyncio.run(test())


def test_the_traffic_of_these_tests_notices_a_hole(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        async with busy(CLOS, 6, monkeypatch) as (fabric, traffic):
            assert isinstance(traffic, Traffic)
            switch = fabric.emulated.switches["t0"]
            key, _ = next(iter(switch.entries("ingress.routing")))
            switch.delete("ingress.routing", key)
            traffic.run(0.002)
            assert traffic.lost() != {}

    asyncio.run(test())
