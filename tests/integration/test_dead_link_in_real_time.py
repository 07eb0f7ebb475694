"""A controller as it runs in a fabric hears of dead cables by itself: at any time, and before it writes anything."""

import asyncio
from typing import Any

import pytest

from emulator.switch import EmulatedSwitch
from tests.integration.fabrics import ServedFabric, base_routing, controlled, served_dumbbell

PATIENCE_S = 20.0


def test_routes_over_a_dead_cable_go_and_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    added: list[str] = []
    insert = EmulatedSwitch.insert

    def noted(switch: EmulatedSwitch, table: str, *arguments: Any) -> None:
        added.extend([switch.name] * (table == "ingress.routing"))
        insert(switch, table, *arguments)

    monkeypatch.setattr(EmulatedSwitch, "insert", noted)

    async def test() -> None:
        async with served_dumbbell() as served:
            async with controlled(served):
                await base_routing(served.emulated)
                set_bottleneck(served, up=False)
                await until_routes(served, 2)
                set_bottleneck(served, up=True)
                await until_routes(served, 4)
                set_bottleneck(served, up=False)
                await until_routes(served, 2)
            added.clear()
            async with controlled(served):
                # Another one routes around what was dead before it came.
                await asyncio.sleep(0.5)
                await until_routes(served, 2)
                assert added == []
                set_bottleneck(served, up=True)
                await until_routes(served, 4)
                assert sorted(added) == ["t0", "t0", "t1", "t1"]

    asyncio.run(test())


def set_bottleneck(served: ServedFabric, *, up: bool) -> None:
    """The cable between the two switches."""
    for ends in (("t0", "t1"), ("t1", "t0")):
        [link] = served.emulated.fabric.links_between(*ends)
        served.emulated.set_link(link, up=up)


async def until_routes(served: ServedFabric, expected: int) -> None:
    """Wait until each of the switches has so many routes."""
    async with asyncio.timeout(PATIENCE_S):
        for switch in served.emulated.switches.values():
            while len(list(switch.entries("ingress.routing"))) != expected:
                await asyncio.sleep(0.02)
