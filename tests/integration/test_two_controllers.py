"""Two controller processes share a database: the leader is killed or stopped, and the other one takes over."""

import asyncio
import os
import signal
from contextlib import closing

import pytest

from controller.config import ControllerConfig, LeadershipConfig
from controller.store.leader_lease import DatabaseLease
from emulator.keys import EntryKey
from emulator.switch import EmulatedSwitch
from experiments.scenarios.controller_process import ControllerProcess
from hostlib.client import Client
from hostlib.connection import Connection
from hostlib.errors import UnreachableError
from hostlib.types import Flow, FlowGroup, Job, Nic, Profile
from tests.accepted_writes import accepted_writes, interleaved
from tests.integration.fabrics import DUMBBELL, ServedFabric, served_dumbbell
from tests.patience import PATIENCE_S, until

_LEASE_S = 10.0
"""A controller of a busy machine, which stands still for seconds, leads on."""
_PROFILE = Profile(compute_s=1.0, comm_start=0.5, work=1.0)
_JOBS = (("vision", "h0", "h2"), ("speech", "h1", "h3"))


def _process(served: ServedFabric, name: str, database: str) -> ControllerProcess:
    return ControllerProcess(
        ControllerConfig(
            listen="127.0.0.1:0",
            topology=DUMBBELL,
            switches=served.addresses(),
            database=database,
            leadership=LeadershipConfig(name=name, lease_s=_LEASE_S),
        )
    )


def _num_rules(served: ServedFabric) -> int:
    return sum(len(list(switch.entries("ingress.flow"))) for switch in served.emulated.switches.values())


async def _leads(process: ControllerProcess) -> bool:
    try:
        async with Connection(process.address, deadline_s=2.0) as connection:
            await connection.plan()
    except UnreachableError:
        return False
    return True


async def _leader(*processes: ControllerProcess) -> ControllerProcess:
    """Wait for a leader among these, and return it."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            for process in processes:
                if await _leads(process):
                    return process
            await asyncio.sleep(0.1)


def _signal(process: ControllerProcess, number: signal.Signals) -> None:
    assert process._process is not None
    os.kill(process._process.pid, number)


async def _stop(process: ControllerProcess, database: str) -> None:
    """Stop a controller between writes to the database, whose lock would otherwise block the other one."""
    with closing(DatabaseLease.open(database)) as table:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                _signal(process, signal.SIGSTOP)
                try:
                    async with asyncio.timeout(_LEASE_S / 8):
                        await table.give_back(-1)  # nobody's, but it takes the lock
                    return
                except TimeoutError:
                    _signal(process, signal.SIGCONT)
                await asyncio.sleep(0.05)


async def _registered(client: Client, job: str, source: str, destination: str) -> None:
    client.register_job(Job(job, (source, destination), 2, _PROFILE))
    client.register_flow_groups(job, [FlowGroup("gradients", (Flow(Nic(source), Nic(destination), 10**9),))])
    assert await client.acknowledged(job, PATIENCE_S)


async def _has_rules(served: ServedFabric, number: int) -> None:
    await until(lambda: _num_rules(served) == number)


async def _fail_over_and_back(database: str, deleted: list[str]) -> None:
    async with (
        served_dumbbell() as served,
        _process(served, "one", database) as one,
        _process(served, "two", database) as two,
        Client([one.address, two.address]) as client,
    ):
        with accepted_writes() as accepted:
            await _registered(client, *_JOBS[0])
            await _has_rules(served, 1)
            deleted.clear()
            first = await _leader(one, two)
            second = two if first is one else one
            assert not await _leads(second)
            await _stop(first, database)
            try:
                assert await _leader(second) is second
            finally:
                _signal(first, signal.SIGCONT)
            async with asyncio.timeout(PATIENCE_S):
                while await _leads(first):
                    await asyncio.sleep(0.1)
            # What was registered before is known without being said again; a newcomer is planned with it.
            await _registered(client, *_JOBS[1])
            await _has_rules(served, 2)
            await second.kill()
            assert await _leader(first) is first
            for job, _, _ in _JOBS:
                assert await client.acknowledged(job, PATIENCE_S)
            assert interleaved(accepted) == []
            assert deleted == []
            client.deregister("vision")
            await _has_rules(served, 1)
            assert len({write.term for write in accepted}) == 3


def test_rules_and_registrations_survive_stopped_and_killed_leaders(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    deleted: list[str] = []
    delete = EmulatedSwitch.delete

    def noted(switch: EmulatedSwitch, table: str, key: EntryKey) -> None:
        deleted.append(switch.name)
        delete(switch, table, key)

    monkeypatch.setattr(EmulatedSwitch, "delete", noted)
    asyncio.run(_fail_over_and_back(address, deleted))
