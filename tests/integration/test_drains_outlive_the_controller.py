"""A drain is kept by the database: the next controller process never routes over what is drained."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from controller.api.operations import operations_pb2 as wire
from controller.api.operations.client import Operations
from controller.api.operations.methods import LIST_DRAINS
from emulator.switch import EmulatedSwitch
from tests.integration.fabrics import ServedFabric, base_routing, controlled, served_dumbbell
from tests.patience import PATIENCE_S, until

HOST = wire.DrainTarget(kind=wire.HOST, name="h0")


def _routes_to_h0(served: ServedFabric) -> int:
    """How many switches have as many routes as there are hosts."""
    switches = served.emulated.switches.values()
    return sum(len(list(switch.entries("ingress.routing"))) == len(served.emulated.fabric.hosts) for switch in switches)


async def _drains(address: str) -> list[wire.DrainState]:
    with Operations(address) as operations:
        return await asyncio.to_thread(operations.list, LIST_DRAINS)


async def _until_safe(address: str) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not (await _drains(address))[0].is_safe:
            await asyncio.sleep(0.2)


def test_another_process_goes_on_without_what_is_drained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database = str(tmp_path / "controller.db")
    added: list[str] = []
    insert = EmulatedSwitch.insert

    def noted(switch: EmulatedSwitch, table: str, *arguments: Any) -> None:
        added.extend([switch.name] * (table == "ingress.routing"))
        insert(switch, table, *arguments)

    async def test() -> None:
        async with served_dumbbell() as served:
            async with controlled(served, database=database) as process:
                await base_routing(served.emulated)
                with Operations(process.address) as operations:
                    answer = await asyncio.to_thread(operations.drain, HOST, is_forced=True)
                assert (answer.name, answer.is_changed) == ("h0", True)
                await until(lambda: _routes_to_h0(served) == 0)
                # The switches' own counters say that nothing leaves by its port any longer.
                await _until_safe(process.address)
                await process.kill()
            monkeypatch.setattr(EmulatedSwitch, "insert", noted)
            async with controlled(served, database=database) as process:
                await _until_safe(process.address)
                [drain] = await _drains(process.address)
                assert (drain.kind, drain.name, drain.is_forced) == (wire.HOST, "h0", True)
                assert drain.quiet_s >= 1.0
                assert _routes_to_h0(served) == 0
                assert added == []
                with Operations(process.address) as operations:
                    await asyncio.to_thread(operations.undrain, HOST)
                await base_routing(served.emulated)
                assert await _drains(process.address) == []

    asyncio.run(test())
