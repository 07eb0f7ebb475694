"""A controller in real time learns of dead cables from the switches, also before its first write."""

import asyncio
from typing import Any

import pytest

from controller.clock import WallClock
from controller.config import ControllerConfig
from controller.process.core import ControllerCore
from controller.southbound.gnmi import GnmiPortMonitor
from controller.southbound.p4runtime.switches import P4RuntimeSouthbound
from emulator.switch import EmulatedSwitch
from tests.integration.fabrics import DUMBBELL, ServedFabric, base_routing, controlled, served_dumbbell
from tests.patience import PATIENCE_S, until
from topologies.ecmp import hash_multipliers
from topologies.routing import Routing


def test_routes_over_a_dead_cable_go_and_come_back() -> None:
    async def test() -> None:
        async with served_dumbbell() as served, controlled(served):
            await base_routing(served.emulated)
            for up, expected in ((False, 2), (True, 4), (False, 2)):
                set_bottleneck(served, up=up)
                await until_routes(served, expected)

    asyncio.run(test())


def test_cables_dead_before_the_start_are_never_used(monkeypatch: pytest.MonkeyPatch) -> None:
    added: list[str] = []
    insert = EmulatedSwitch.insert

    def noted(switch: EmulatedSwitch, table: str, *arguments: Any) -> None:
        added.extend([switch.name] * (table == "ingress.routing"))
        insert(switch, table, *arguments)

    monkeypatch.setattr(EmulatedSwitch, "insert", noted)

    async def test() -> None:
        async with asyncio.timeout(PATIENCE_S), served_dumbbell() as served:
            fabric = served.emulated.fabric
            routing = Routing(fabric, hash_multipliers(fabric.switches, 1))
            config = ControllerConfig(topology=DUMBBELL, switches=served.addresses())
            southbound = P4RuntimeSouthbound(config.switch_addresses, routing, config.pipeline, config.election_id)
            controller = ControllerCore(config, routing, southbound, WallClock())
            set_bottleneck(served, up=False)
            async with GnmiPortMonitor(config.switch_addresses, controller.ports):
                await controller.ports.all_heard()
                await controller.apply_port_states()
                async with southbound:
                    await southbound.caught_up()
                    # Each has its own two hosts, and no way to the others.
                    assert sorted(added) == ["t0", "t0", "t1", "t1"]

    asyncio.run(test())


def set_bottleneck(served: ServedFabric, *, up: bool) -> None:
    """Take the cable between the two switches down, or bring it up."""
    for ends in (("t0", "t1"), ("t1", "t0")):
        [link] = served.emulated.fabric.links_between(*ends)
        served.emulated.set_link(link, up=up)


async def until_routes(served: ServedFabric, expected: int) -> None:
    """Wait until each switch has this many routes."""
    switches = served.emulated.switches.values()
    await until(lambda: all(len(list(switch.entries("ingress.routing"))) == expected for switch in switches))
