"""A controller process is killed, or backed up, while jobs register: what it has acknowledged is there again."""

import asyncio
import random
import subprocess
import sys
from dataclasses import replace
from itertools import count
from pathlib import Path

from controller.api.operations.client import Operations
from controller.api.operations.methods import LIST_JOBS
from controller.config import ControllerConfig
from controller.switch_addresses import SwitchAddress
from experiments.scenarios.controller_process import ControllerProcess
from hostlib.connection import Connection
from hostlib.errors import ControllerError
from hostlib.types import FlowGroupAssignments
from tests.hostlib.served import GPT, RING
from tests.integration.fabrics import DUMBBELL
from tests.patience import PATIENCE_S, until

_KILLS = 3
_AT_ONCE = 4
_MOST_PER_LIFE = 20
_ASKED_AGAIN = 20


class Witness:
    """Remembers acknowledged requests, and requests without a response."""

    def __init__(self, address: str) -> None:
        self.groups: dict[str, FlowGroupAssignments] = {}
        self.num_acknowledged = 0
        self.gone: set[str] = set()
        self._address = address
        self._numbers = count()

    async def register_until_it_dies(self) -> None:
        """Register jobs and flow groups, many at once, and withdraw every third job, until the controller dies."""
        async with Connection(self._address, "token", deadline_s=PATIENCE_S) as client:
            await asyncio.gather(*(self._register(client) for _ in range(_AT_ONCE)))

    async def _register(self, client: Connection) -> None:
        try:
            for number in self._numbers:
                name = f"job-{number}"
                await client.register_job(replace(GPT, name=name))
                self.groups[name] = {}
                self.groups[name] = await client.register_flow_groups(name, [RING])
                self.num_acknowledged += 1
                if number % 3 == 0:
                    # Without an answer it may be there or not.
                    del self.groups[name]
                    await client.deregister(name)
                    self.gone.add(name)
        except ControllerError:
            pass


def _config(database: str) -> ControllerConfig:
    switches = tuple(SwitchAddress(name=name, address="127.0.0.1:1") for name in ("t0", "t1"))
    return ControllerConfig(
        listen="127.0.0.1:0", topology=DUMBBELL, switches=switches, lease_s=600.0, database=database
    )


async def _killed_again_and_again(database: Path) -> None:
    chance = random.Random(7)
    async with ControllerProcess(_config(str(database))) as process:
        witness = Witness(process.address)
        for _ in range(_KILLS):
            registering = asyncio.create_task(witness.register_until_it_dies())
            enough = witness.num_acknowledged + chance.randint(1, _MOST_PER_LIFE)
            await until(lambda enough=enough: witness.num_acknowledged >= enough)
            await asyncio.sleep(chance.uniform(0, 0.05))
            await process.kill()
            await registering
            await process.restart()
            await _has_all(witness, process.address)


async def _has_all(witness: Witness, address: str) -> None:
    with Operations(address) as operations:
        jobs = {job.name: job.flow_groups for job in await asyncio.to_thread(operations.list, LIST_JOBS)}
    assert witness.groups.keys() <= jobs.keys()
    assert not witness.gone & jobs.keys()
    async with Connection(address, "token") as client:
        assigned = {name: groups for name, groups in witness.groups.items() if groups}
        assert all(jobs[name] == 1 for name in assigned)
        for name, groups in list(assigned.items())[-_ASKED_AGAIN:]:
            # The same again changes nothing, and is answered with what was assigned before.
            assert await client.register_flow_groups(name, [RING]) == groups
    assert witness.groups


def test_nothing_acknowledged_is_lost_when_the_controller_is_killed(tmp_path: Path) -> None:
    asyncio.run(_killed_again_and_again(tmp_path / "trainyard.db"))


async def _backed_up_and_restored(database: str, folder: Path) -> None:
    backup, other = folder / "backup", str(folder / "other.db")
    async with ControllerProcess(_config(database)) as process:
        witness = Witness(process.address)
        registering = asyncio.create_task(witness.register_until_it_dies())
        await until(lambda: witness.num_acknowledged >= _MOST_PER_LIFE)
        before, gone = set(witness.groups), set(witness.gone)
        made = await _database("backup", "--database", database, str(backup))
        assert made.returncode == 0, made.stderr
        # While the controller runs, nothing takes its database away from it.
        refused = await _database("restore", str(backup), "--database", database, "--force")
        assert refused.returncode == 2
        assert "runs on it, in term 1; stop it first" in refused.stderr
        enough = witness.num_acknowledged + 4
        await until(lambda: witness.num_acknowledged >= enough)
        await process.kill()
        await registering
    verified = await _database("verify", database)
    assert verified.returncode == 0, verified.stdout
    restored = await _database("restore", str(backup), "--database", other)
    assert restored.returncode == 0, restored.stderr
    async with ControllerProcess(_config(other)) as process:
        kept = before & {name for name, groups in witness.groups.items() if groups}
        assert len(kept) > _MOST_PER_LIFE / 2
        witness.groups = {name: witness.groups[name] for name in kept}
        witness.gone = gone
        await _has_all(witness, process.address)


async def _database(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = (sys.executable, "-m", "trainyard", "database", *arguments)
    return await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=False)


def test_what_was_acknowledged_before_a_backup_is_in_it(address: str, tmp_path: Path) -> None:
    asyncio.run(_backed_up_and_restored(address, tmp_path))
