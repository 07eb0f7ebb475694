"""A switch goes down and comes back empty: the controller writes everything again."""

import asyncio

from emulator.fabric import PS_PER_S
from emulator.switch import EmulatedSwitch
from tests.integration.fabrics import base_routing, controlled, served_dumbbell


def test_the_controller_refills_a_switch_that_comes_back_empty() -> None:
    async def test() -> None:
        async with served_dumbbell() as served, controlled(served):
            emulated = served.emulated
            await base_routing(emulated)
            before = {name: _entries(switch) for name, switch in emulated.switches.items()}
            emulated.set_switch("t1", up=False)
            emulated.run(emulated.now_ps + PS_PER_S // 1000)
            emulated.set_switch("t1", up=True)
            assert not list(emulated.switches["t1"].entries("ingress.routing"))
            await base_routing(emulated)
            assert emulated.switches["t1"].is_ready
            assert {name: _entries(switch) for name, switch in emulated.switches.items()} == before

    asyncio.run(test())


def _entries(switch: EmulatedSwitch) -> dict[str, list[str]]:
    tables = ("ingress.routing", "ingress.next_hop", "ingress.level")
    return {table: sorted(map(str, switch.entries(table))) for table in tables}
