"""A pause, a release and pins are kept by the database: the next leader goes by them, and a pause keeps all rules."""

import asyncio

from controller.api.operations.client import Operations, OperationsError
from controller.api.operations.methods import LIST_CONTROLLERS, LIST_PINS
from controller.config import LeadershipConfig
from experiments.scenarios.controller_process import ControllerProcess
from hostlib.client import Client
from hostlib.types import Flow, FlowGroup, Job, Nic, Profile
from tests.integration.fabrics import ServedFabric, configuration, served_dumbbell
from tests.patience import PATIENCE_S, until

_LEASE_S, _JOB_LEASE_S = 10.0, 12.0
"""A controller or a job of a busy machine, which stands still for seconds, has not gone."""
_JOBS = (("vision", "h0", "h2", 1.0), ("speech", "h1", "h3", 2.0))


def _process(served: ServedFabric, name: str, database: str) -> ControllerProcess:
    leadership = LeadershipConfig(name=name, lease_s=_LEASE_S)
    return ControllerProcess(configuration(served, _JOB_LEASE_S, database=database, leadership=leadership))


def _rules(served: ServedFabric) -> set[str]:
    """The rules for flows on all switches; two jobs on one link need one."""
    return {
        f"{switch.name} {entry}"
        for switch in served.emulated.switches.values()
        for entry in switch.entries("ingress.flow")
    }


async def _register(client: Client) -> None:
    for job, source, destination, work in _JOBS:
        client.register_job(Job(job, (source, destination), 2, Profile(1.0, 0.5, work)))
        client.register_flow_groups(job, [FlowGroup("gradients", (Flow(Nic(source), Nic(destination), 10**9),))])
        assert await client.acknowledged(job, PATIENCE_S)


async def _leader(process: ControllerProcess) -> Operations:
    """Wait until a process leads; return a client of it."""
    operations = Operations(process.address)
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                await asyncio.to_thread(operations.list, LIST_CONTROLLERS)
            except OperationsError:
                await asyncio.sleep(0.2)
            else:
                return operations


async def _plays(database: str) -> None:
    async with (
        served_dumbbell() as served,
        _process(served, "one", database) as one,
        _process(served, "two", database) as two,
        Client([one.address, two.address]) as client,
    ):
        first, second = (one, two) if await _leads(one, two) else (two, one)
        operations = await _leader(first)
        await _register(client)
        await asyncio.to_thread(operations.pin, "vision", 3600.0, 5)
        async with asyncio.timeout(PATIENCE_S):
            while not (await asyncio.to_thread(operations.list, LIST_PINS))[0].holds:
                await asyncio.sleep(0.1)
        await asyncio.to_thread(operations.pause, "maintenance")
        held = _rules(served)
        assert held
        await first.kill()
        operations = await _leader(second)
        [state] = await asyncio.to_thread(operations.list, LIST_CONTROLLERS)
        assert (state.pause.reason, state.pause.is_released) == ("maintenance", False)
        for job, *_ in _JOBS:
            assert await client.acknowledged(job, PATIENCE_S)
        for _ in range(10):  # longer than the time for which rules are kept that nobody wants
            await asyncio.sleep(_JOB_LEASE_S / 5)
            assert _rules(served) == held
        assert [pin.name for pin in await asyncio.to_thread(operations.list, LIST_PINS)] == ["vision"]
        assert (await asyncio.to_thread(operations.release)).is_changed
        assert _rules(served) == set()
        await second.kill()
        await second.restart(0.0)
        operations = await _leader(second)
        [state] = await asyncio.to_thread(operations.list, LIST_CONTROLLERS)
        assert state.pause.is_released
        for job, *_ in _JOBS:
            assert await client.acknowledged(job, PATIENCE_S)
        assert _rules(served) == set()
        assert (await asyncio.to_thread(operations.resume)).is_changed
        await until(lambda: _rules(served) == held)


async def _leads(one: ControllerProcess, two: ControllerProcess) -> bool:
    """Wait until one of two processes leads; return whether it is the first."""
    firsts = [asyncio.create_task(_leader(process)) for process in (one, two)]
    done, pending = await asyncio.wait(firsts, return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()
    return firsts[0] in done


def test_the_next_leader_goes_on_in_a_pause_with_a_release_and_with_pins(address: str) -> None:
    asyncio.run(_plays(address))
