"""A controller is killed and restarted: the fabric goes on forwarding, and no rule is deleted meanwhile."""

import asyncio
from pathlib import Path
from time import monotonic

import pytest

from emulator.entries import EntryKey
from emulator.fabric import PS_PER_S
from emulator.switch import EmulatedSwitch
from hostlib.client import Client
from hostlib.connection import Connection
from hostlib.types import FiveTuple, Flow, FlowGroup, Job, Nic, Profile
from tests.integration.fabrics import ServedFabric, controlled, served_dumbbell
from tests.patience import PATIENCE_S, until
from topologies.addressing import FiveTuple as EmulatedFiveTuple

_LEASE_S = 12.0
"""A job of a busy machine, which stands still for seconds, has not gone."""
_JOBS = (
    (Job("vision", ("h0", "h2"), 16, Profile(compute_s=0.2, comm_start=0.5, work=3.2)), "h0", "h2"),
    (Job("language", ("h1", "h3"), 16, Profile(compute_s=1.2, comm_start=0.7, work=19.2)), "h1", "h3"),
)

Rules = dict[str, list[str]]


def _rules(served: ServedFabric) -> Rules:
    return {name: sorted(map(str, switch.entries("ingress.flow"))) for name, switch in served.emulated.switches.items()}


async def _has_rules(served: ServedFabric, number: int) -> None:
    await until(lambda: sum(map(len, _rules(served).values())) == number)


def _forwards(served: ServedFabric, five_tuple: FiveTuple) -> bool:
    """Whether a transfer arrives without a controller."""
    addresses = int(five_tuple.source_address), int(five_tuple.destination_address)
    ports = five_tuple.source_port, five_tuple.destination_port
    flow = served.emulated.add_flow(EmulatedFiveTuple(*addresses, five_tuple.protocol, *ports))
    served.emulated.start_transfer(flow, 1_000_000)
    return len(served.emulated.run(served.emulated.now_ps + PS_PER_S)) == 1


async def _killed_and_restarted(deleted: list[str]) -> None:
    async with (
        served_dumbbell() as served,
        controlled(served, _LEASE_S) as process,
        Client(process.address) as client,
    ):
        for job, source, destination in _JOBS:
            client.register_job(job)
            flow = Flow(Nic(source), Nic(destination), 1_000_000_000)
            client.register_flow_groups(job.name, [FlowGroup("gradients", (flow,))])
        await _has_rules(served, 2)
        before = _rules(served)
        deleted.clear()
        await process.kill()
        assert _forwards(served, client.five_tuples("vision")["gradients"][0])
        await process.restart()
        for job, _, _ in _JOBS:
            assert await client.acknowledged(job.name, PATIENCE_S)
        await asyncio.sleep(1.2 * _LEASE_S)
        assert _rules(served) == before
        assert deleted == []
        # Its grace is over: it takes away what is no longer wanted.
        client.deregister("vision")
        await _has_rules(served, 1)
        assert deleted == ["t0"]


def _note_deletions(monkeypatch: pytest.MonkeyPatch, deleted: list[str]) -> None:
    delete = EmulatedSwitch.delete

    def noted(switch: EmulatedSwitch, table: str, key: EntryKey) -> None:
        deleted.append(switch.name)
        delete(switch, table, key)

    monkeypatch.setattr(EmulatedSwitch, "delete", noted)


def test_rules_survive_a_killed_controller_and_none_is_deleted_in_between(monkeypatch: pytest.MonkeyPatch) -> None:
    deleted: list[str] = []
    _note_deletions(monkeypatch, deleted)
    asyncio.run(_killed_and_restarted(deleted))


async def _one_of_two_stays_away(deleted: list[str]) -> None:
    async with (
        served_dumbbell() as served,
        controlled(served, _LEASE_S) as process,
        Client(process.address) as client,
        Client(process.address) as leaving,
    ):
        for owner, (job, source, destination) in zip((client, leaving), _JOBS, strict=True):
            owner.register_job(job)
            flow = Flow(Nic(source), Nic(destination), 1_000_000_000)
            owner.register_flow_groups(job.name, [FlowGroup("gradients", (flow,))])
        await _has_rules(served, 2)
        await process.kill()
        await leaving.close()
        deleted.clear()
        before_s = monotonic()
        await process.restart()
        assert await client.acknowledged("vision", PATIENCE_S)
        await until(lambda: bool(deleted))
        assert monotonic() - before_s >= _LEASE_S
        await _has_rules(served, 1)


def test_rules_of_a_lost_job_are_deleted_after_one_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    deleted: list[str] = []
    _note_deletions(monkeypatch, deleted)
    asyncio.run(_one_of_two_stays_away(deleted))


async def _jobs_stay_away(database: str, deleted: list[str]) -> None:
    async with (
        served_dumbbell() as served,
        controlled(served, _LEASE_S, database=database) as process,
        Connection(process.address) as client,
    ):
        for job, source, destination in _JOBS:
            await client.register_job(job)
            flow = Flow(Nic(source), Nic(destination), 1_000_000_000)
            await client.register_flow_groups(job.name, [FlowGroup("gradients", (flow,))])
        await _has_rules(served, 2)
        before = _rules(served)
        deleted.clear()
        await process.kill()
        await process.restart()
        # Nobody has said anything, and everything is as it was.
        async with asyncio.timeout(PATIENCE_S):
            while [job.name for job in (await client.plan()).jobs] != ["language", "vision"]:
                await asyncio.sleep(0.02)
        assert (_rules(served), deleted) == (before, [])
        # Once the grace of a new database is over, it knows all jobs: rules that a former controller left go at once.
        for _ in range(12):
            for job, _, _ in _JOBS:
                await client.heartbeat(job.name)
            await asyncio.sleep(_LEASE_S / 8)
        await client.deregister("vision")
        await process.kill()
        await process.restart()
        await _has_rules(served, 1)
        # And a job that stays away for a lease has gone.
        await _has_rules(served, 0)


def test_a_controller_with_a_database_knows_the_jobs_and_gives_each_a_lease(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deleted: list[str] = []
    _note_deletions(monkeypatch, deleted)
    asyncio.run(_jobs_stay_away(str(tmp_path / "trainyard.db"), deleted))
