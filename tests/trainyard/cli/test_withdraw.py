"""``trainyard withdraw``: a job whose hosts are no more is taken out, unless a controller runs."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from controller.errors import StoreError
from controller.leadership.exclusive import acquire_term
from controller.leadership.lease import LeaseRecord
from controller.registry.errors import CommitError
from controller.registry.requests import FlowGroupRequest, FlowRequest, JobRequest, NicReference
from controller.store.leader_lease import DatabaseLease
from controller.store.store import Store
from experiments.scenarios.driven.clock import DrivenClock
from policies.job import Profile
from tests.controller.store.registering import FABRIC, LEASE_S
from tests.postgresql import Server
from tests.trainyard.cli.conftest import Trainyard
from topologies.specification import DumbbellSpecification

_SMALLER = DumbbellSpecification(kind="dumbbell", hosts_per_side=1, host_link_gbps=4, bottleneck_gbps=1).build()


def _register(address: str, *, in_term: int | None = None) -> None:
    async def scenario() -> None:
        store = Store.open(address, DrivenClock())
        registry = (store if in_term is None else store.in_term(in_term)).registry(FABRIC, LEASE_S)
        for name, hosts in (("small", ("h0", "h1")), ("large", ("h0", "h3")), ("other", ("h2", "h3"))):
            registry.register_job(JobRequest(name, hosts, 2, Profile(1.0, 0.5, 1.0)), 0.0, "token")
            flows = (FlowRequest(NicReference(hosts[0], 0), NicReference(hosts[1], 0), 1_000, 0.0),)
            registry.register_flow_groups(name, [FlowGroupRequest("ring", flows), FlowGroupRequest("tree", flows)])
        try:
            await registry.commit()
        finally:
            await store.close()

    asyncio.run(scenario())


def _names(address: str) -> list[str]:
    store = Store.open(address, DrivenClock())
    try:
        return [job.request.name for job in store.registry(FABRIC, LEASE_S).jobs]
    finally:
        store.database.close()


def test_the_error_of_the_controller_names_the_command_that_helps(address: str, trainyard: Trainyard) -> None:
    _register(address)
    store = Store.open(address, DrivenClock())
    with pytest.raises(StoreError) as refused:
        store.registry(_SMALLER, LEASE_S)
    store.database.close()
    said = str(refused.value)
    assert "job 'large' does not fit the topology: hosts[1]: unknown host 'h3'" in said
    command = said.partition("while no controller runs: trainyard ")[2].split()
    assert command[:3] == ["withdraw", "large", "other"]
    withdrawn = trainyard(*command[:3], "--database", address)
    assert (withdrawn.exit_code, withdrawn.stderr) == (0, "")
    assert withdrawn.stdout.splitlines() == [
        "withdrawn: job 'large' with 2 flow groups",
        "withdrawn: job 'other' with 2 flow groups",
    ]
    store = Store.open(address, DrivenClock())
    assert [job.request.name for job in store.registry(_SMALLER, LEASE_S).jobs] == ["small"]
    store.database.close()


def test_all_or_none_are_withdrawn(address: str, trainyard: Trainyard) -> None:
    _register(address)
    refused = trainyard("withdraw", "large", "none\x1b[31m", "--database", address)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert refused.stderr.endswith("no job 'none\\x1b[31m' is stored; stored are: 'large', 'other', 'small'\n")
    assert _names(address) == ["large", "other", "small"]


def test_a_database_that_is_not_there_is_not_made(trainyard: Trainyard, tmp_path: Path) -> None:
    refused = trainyard("withdraw", "a", "--database", tmp_path / "t.db")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "there is no such file" in refused.stderr
    assert not (tmp_path / "t.db").exists()


_HOLDER = """
import asyncio, sys
from controller.leadership.exclusive import acquire_term
from controller.store.leader_lease import DatabaseLease
table = DatabaseLease.open(sys.argv[1])
asyncio.run(acquire_term(table, "one"))
print("holds", flush=True)
sys.stdin.read()
"""


def test_a_controller_that_runs_without_a_lease_is_not_robbed(address: str, trainyard: Trainyard) -> None:
    _register(address)
    with subprocess.Popen(
        [sys.executable, "-c", _HOLDER, address], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"holds\n"
        refused = trainyard("withdraw", "large", "--database", address)
        assert refused.exit_code == 2
        assert refused.stderr.endswith(": controller 'one' runs on it, in term 1; stop it first\n")
        holder.kill()
    assert trainyard("withdraw", "large", "--database", address).exit_code == 0
    assert _names(address) == ["other", "small"]
    with pytest.raises(CommitError, match="another controller leads now"):
        _register(address, in_term=1)


def test_a_controller_that_renews_its_lease_is_not_robbed(postgresql: Server, trainyard: Trainyard) -> None:
    address = postgresql.new_database()
    _register(address)

    async def lead() -> None:
        table = DatabaseLease.open(address)
        await table.take(await table.read(), LeaseRecord("one", 1, 0, 1.0))

        async def renew() -> None:
            while True:
                await table.renew(1)
                await asyncio.sleep(0.1)

        renewing = asyncio.create_task(renew())
        refused = await asyncio.to_thread(trainyard, "withdraw", "large", "--database", address)
        renewing.cancel()
        assert refused.exit_code == 1
        assert "'one' leads on the database, in term 1" in refused.stderr
        table.close()

    asyncio.run(lead())
    assert _names(address) == ["large", "other", "small"]
    withdrawn = trainyard("withdraw", "large", "--database", address)  # once the lease has ended
    assert withdrawn.exit_code == 0


def test_the_term_of_a_withdrawal_keeps_no_controller_waiting(address: str, trainyard: Trainyard) -> None:
    _register(address)
    assert trainyard("withdraw", "large", "--database", address).exit_code == 0

    async def scenario() -> None:
        table = DatabaseLease.open(address)
        assert await acquire_term(table, "next") == 2
        table.close()

    asyncio.run(scenario())
