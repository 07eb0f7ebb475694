"""Switches and cables are drained, and used again, under traffic: packets flow between any two writes; none is lost."""

import asyncio
from typing import Any

import pytest

from benchmarks.controlled_fabric import ControlledFabric
from controller.links.drains import DrainKind
from controller.southbound.p4runtime.switches import P4RuntimeSouthbound
from tests.integration.busy_fabric import CLOS, FAT_TREE, busy


async def drain(fabric: ControlledFabric, kind: DrainKind, name: str, other: str | None = None) -> set[int]:
    """Drain something; return its links."""
    draining = fabric.controller.draining
    target = draining.targets.find(kind, name, other, 0 if other else None)
    assert await draining.drain(target, "test", is_forced=False)
    await fabric.settle()
    return {2 * cable + way for cable in draining.targets.cables(target) for way in (0, 1)}


async def undrain_and_drain(fabric: ControlledFabric, name: str) -> set[int]:
    """Drain a switch in the Plan in which all else is used again; return its links."""
    for each in fabric.controller.draining.drains:
        await fabric.controller.draining.undrain(each.target)
    return await drain(fabric, DrainKind.SWITCH, name)


async def undrain_all(fabric: ControlledFabric) -> None:
    """Use again all that is drained."""
    for each in fabric.controller.draining.drains:
        await fabric.controller.draining.undrain(each.target)
    await fabric.settle()


@pytest.mark.parametrize(
    ("topology", "hosts", "kind", "names"),
    [
        (CLOS, 6, DrainKind.SWITCH, ("a1",)),
        (CLOS, 6, DrainKind.LINK, ("t0", "a0")),
        (FAT_TREE, 16, DrainKind.SWITCH, ("c0",)),
        (FAT_TREE, 16, DrainKind.SWITCH, ("a2",)),
    ],
)
@pytest.mark.parametrize("policy", ["crux", "ecmp"])
def test_no_packet_is_lost_while_flows_move_off_and_back(
    topology: dict[str, Any],
    hosts: int,
    kind: DrainKind,
    names: tuple[str, ...],
    policy: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def test() -> None:
        async with busy(topology, hosts, monkeypatch, policy) as (fabric, traffic):
            before = fabric_state(fabric)
            rates_gbps = [traffic.rate_gbps(0.004)]
            links = await drain(fabric, kind, *names)
            assert all(links.isdisjoint(fabric.path(flow)) for flow in fabric.flows)
            traffic.run(0.002)  # what is under way arrives
            sent = fabric.emulated.sent_bytes()[sorted(links)].sum()
            rates_gbps.append(traffic.rate_gbps(0.004))
            # Nothing crosses it any longer, acknowledgements and unregistered flows included.
            assert fabric.emulated.sent_bytes()[sorted(links)].sum() == sent
            await undrain_all(fabric)
            rates_gbps.append(traffic.rate_gbps(0.004))
            assert fabric.emulated.sent_bytes()[sorted(links)].sum() > sent
            assert fabric_state(fabric) == before
            assert traffic.lost() == {}
            assert fabric.emulated.misdelivered == 0
            print(f"{kind} {' '.join(names)} under {policy}: {', '.join(f'{rate:.1f}' for rate in rates_gbps)} Gb/s")

    asyncio.run(test())


@pytest.mark.parametrize(("topology", "hosts", "one", "other"), [(CLOS, 6, "a1", "a2"), (FAT_TREE, 16, "a2", "c0")])
@pytest.mark.parametrize("policy", ["crux", "ecmp"])
def test_no_packet_is_lost_where_one_plan_leaves_a_switch_and_returns_to_another(
    topology: dict[str, Any], hosts: int, one: str, other: str, policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test() -> None:
        async with busy(topology, hosts, monkeypatch, policy) as (fabric, traffic):
            await drain(fabric, DrainKind.SWITCH, one)
            for name in (other, one):
                links = await undrain_and_drain(fabric, name)
                assert fabric.controller.planner.routing.dead == links
                traffic.run(0.004)
            assert traffic.lost() == {}
            assert fabric.emulated.misdelivered == 0

    asyncio.run(test())


def fabric_state(fabric: ControlledFabric) -> Any:
    """Return which way everything goes."""
    planner = fabric.controller.planner
    assert planner.decision is not None
    return {flow.five_tuple: fabric.path(flow) for flow in fabric.flows}, planner.decision.switch_rules


def test_the_counters_of_switches_tell_when_links_are_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        async with busy(CLOS, 6, monkeypatch) as (fabric, traffic):
            southbound, emulated = fabric.controller.southbound, fabric.emulated
            assert isinstance(southbound, P4RuntimeSouthbound)
            links = [link.index for link in emulated.fabric.links_from["a1"]]
            counted = await southbound.link_bytes(links)
            assert counted.keys() == set(links)
            assert sum(counted.values()) > 0.9 * emulated.sent_bytes()[links].sum() > 0
            traffic.run(0.001)
            assert sum((await southbound.link_bytes(links)).values()) > sum(counted.values())
            await drain(fabric, DrainKind.SWITCH, "a1")
            traffic.run(0.001)
            quiet = await southbound.link_bytes(links)
            traffic.run(0.002)
            assert await southbound.link_bytes(links) == quiet

    asyncio.run(test())


def test_written_all_at_once_the_same_drain_loses_packets(monkeypatch: pytest.MonkeyPatch) -> None:
    """The order of the writes is what keeps packets: the test above would notice."""

    async def test() -> None:
        monkeypatch.setattr("controller.planning.decision_writer.is_gentle", lambda *_: False)
        monkeypatch.setattr("topologies.routing.Routing._emptied", frozenset())
        async with busy(CLOS, 6, monkeypatch) as (fabric, traffic):
            await drain(fabric, DrainKind.SWITCH, "a1")
            traffic.run(0.004)
            assert "a1" in traffic.lost()

    asyncio.run(test())
