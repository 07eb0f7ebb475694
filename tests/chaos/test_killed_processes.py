"""A controller process that is killed with SIGKILL at random instants while jobs register.

Whatever it has acknowledged is there after each restart before any client has said it again, and in the end the
switches hold what an empty fabric is given by a controller that knows the same.
"""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from random import Random

from controller.api.operations.client import Operations
from controller.api.operations.methods import LIST_JOBS, LIST_LEVELS
from controller.config import ControllerConfig
from emulator.fabric import EmulatedFabric
from experiments.scenarios.controller_process import ControllerProcess
from hostlib.client import Client
from hostlib.connection import Connection
from hostlib.types import FiveTuple, Flow, FlowGroup, Job, Nic, Profile
from tests.integration.fabrics import DUMBBELL, ServedFabric, served_dumbbell
from tests.patience import PATIENCE_S, until

_KILLS = int(os.environ.get("CHAOS_KILLS", "3"))
_SEED = int(os.environ.get("CHAOS_SEED", "1"))
_TOKEN = "owner"
_LEASE_S = 15.0
"""So long after it is new a database has rules kept that were found."""
_MAX_JOBS = 6
_MOST_PER_LIFE = 8
_LONGEST_MORE_S = 0.05
"""A process lives until it has acknowledged some registrations, and a moment longer."""

Groups = dict[str, tuple[FiveTuple, ...]]


class _Jobs:
    """Jobs that come and go as fast as a controller acknowledges; it must know those in ``known``."""

    def __init__(self, draws: Random) -> None:
        self.known: dict[str, tuple[tuple[FlowGroup, ...], Groups]] = {}
        self.num_acknowledged = 0
        self._draws = draws
        self._numbers = count()

    async def come_and_go(self, address: str) -> None:
        """Run until cancelled; a job counts as known until it asks to be withdrawn."""
        async with Client(address, _TOKEN) as client:
            while True:
                job, groups = self._drawn_job()
                client.register_job(job)
                client.register_flow_groups(job.name, groups)
                if await client.acknowledged(job.name, PATIENCE_S):
                    self.known[job.name] = groups, dict(client.five_tuples(job.name))
                    self.num_acknowledged += 1
                if len(self.known) > _MAX_JOBS:
                    leaving = self._draws.choice(sorted(self.known))
                    del self.known[leaving]
                    await _withdraw(address, leaving)

    def _drawn_job(self) -> tuple[Job, tuple[FlowGroup, ...]]:
        draws = self._draws
        ends = "h0", f"h{draws.randint(2, 3)}"
        groups = tuple(
            FlowGroup(f"g{number}", (Flow(Nic(ends[0]), Nic(ends[1]), draws.randint(1, 10) * 10**8),))
            for number in range(draws.randint(1, 3))
        )
        profile = Profile(draws.uniform(0.1, 1), draws.random(), draws.uniform(1, 20))
        return Job(f"j{next(self._numbers)}", ends, 16, profile), groups


async def _withdraw(address: str, job: str) -> None:
    async with Connection(address, _TOKEN) as connection:
        await connection.deregister(job)


async def _lost(address: str, known: dict[str, tuple[tuple[FlowGroup, ...], Groups]]) -> list[str]:
    """Return what a restarted controller does not know, or has wrong, before any request."""

    def listed() -> dict[str, int]:
        with Operations(address) as operations:
            return {job.name: job.flow_groups for job in operations.list(LIST_JOBS)}

    jobs = await asyncio.to_thread(listed)
    wrong = [f"{name}: {jobs.get(name)} groups" for name, (groups, _) in known.items() if jobs.get(name) != len(groups)]
    async with Connection(address, _TOKEN) as connection:
        for name, (groups, five_tuples) in known.items():
            if name in jobs and await connection.register_flow_groups(name, groups) != five_tuples:
                wrong.append(f"{name}: not the 5-tuples that it was told")
    return wrong


def _held(emulated: EmulatedFabric) -> dict[str, list[str]]:
    return {
        f"{name} {table}": sorted(map(str, switch.entries(table)))
        for name, switch in emulated.switches.items()
        for table in ("ingress.flow", "ingress.routing", "ingress.next_hop", "ingress.level")
    }


def _config(served: ServedFabric, database: Path) -> ControllerConfig:
    return ControllerConfig(
        listen="127.0.0.1:0",
        topology=DUMBBELL,
        switches=served.addresses(),
        lease_s=_LEASE_S,
        database=str(database),
    )


@asynccontextmanager
async def _beating(address: str, jobs: Iterable[str]) -> AsyncIterator[None]:
    """Renew the leases of these jobs alone."""

    async def beat() -> None:
        async with Connection(address, _TOKEN) as connection:
            while True:
                for job in jobs:
                    await connection.heartbeat(job)
                await asyncio.sleep(_LEASE_S / 5)

    async with asyncio.TaskGroup() as tasks:
        beating = tasks.create_task(beat())
        yield
        beating.cancel()


async def _planned(address: str) -> None:
    """Wait until the Plan in force is for all registered flows."""

    def is_planned() -> bool:
        with Operations(address) as operations:
            jobs, levels = operations.list(LIST_JOBS), operations.list(LIST_LEVELS)
        is_ranked = all(job.HasField("rank") for job in jobs)
        return is_ranked and sum(job.flows for job in jobs) == sum(level.flows for level in levels)

    async with asyncio.timeout(PATIENCE_S):
        while not await asyncio.to_thread(is_planned):
            await asyncio.sleep(0.05)


async def _hold_the_same(served: ServedFabric, empty: ServedFabric) -> None:
    """Wait until both hold the same rules; a switch may connect only after the Plan is made."""
    await until(
        lambda: (
            any(empty.emulated.switches["t0"].entries("ingress.flow"))
            and _held(served.emulated) == _held(empty.emulated)
        )
    )


async def _killed_again_and_again(folder: Path) -> None:
    draws = Random(_SEED)
    jobs = _Jobs(draws)
    async with served_dumbbell() as served, ControllerProcess(_config(served, folder / "controller.db")) as process:
        for number in range(_KILLS):
            coming = asyncio.create_task(jobs.come_and_go(process.address))
            enough = jobs.num_acknowledged + draws.randint(1, _MOST_PER_LIFE)
            await until(lambda enough=enough, coming=coming: jobs.num_acknowledged >= enough or coming.done())
            await asyncio.sleep(draws.uniform(0, _LONGEST_MORE_S))
            coming.cancel()
            await process.kill()
            await asyncio.gather(coming, return_exceptions=True)
            await process.restart()
            assert await _lost(process.address, jobs.known) == [], f"after kill {number} of seed {_SEED}"
        await _planned(process.address)
        await process.kill()
        shutil.copytree(folder, folder / "copy")
        await process.restart()
        async with (
            served_dumbbell() as empty,
            _beating(process.address, jobs.known),
            ControllerProcess(_config(empty, folder / "copy" / "controller.db")) as other,
            _beating(other.address, jobs.known),
        ):
            await _planned(process.address)
            await _hold_the_same(served, empty)


def test_what_a_killed_process_has_acknowledged_is_there_again(tmp_path: Path) -> None:
    asyncio.run(_killed_again_and_again(tmp_path))
