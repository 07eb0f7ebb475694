"""A database that does not answer: Plans are made, requests are refused, and late commits are overwritten."""

import asyncio
import time
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import Connection, select

from controller.errors import StoreError, UnknownOutcomeError
from controller.record.lines import read_decisions
from controller.record.replay import Verdict, replay
from controller.registry.errors import CommitError
from controller.registry.requests import JobRequest
from controller.store import stored_jobs
from controller.store.database import Database
from controller.store.schema import JOB
from controller.store.store import Store
from experiments.scenarios.driven.clock import DrivenClock
from policies.job import Profile
from tests.controller.record.lives import Life
from tests.controller.store.held_up import held_up
from tests.controller.store.registering import FABRIC, LEASE_S, held, restored
from tests.patience import PATIENCE_S
from tests.postgresql import Server
from topologies.steering import Steering

_DATABASE_PATIENCE_S = 1.0
_JOB = JobRequest("late", ("h0", "h1"), 16, Profile(1.0, 0.5, 1.0))


def _jobs(connection: Connection) -> list[str]:
    return list(connection.scalars(select(JOB.c.name)))


async def _plans_go_on(life: Life, hanging: AbstractContextManager[None], caplog: pytest.LogCaptureFixture) -> None:
    life.start()
    registry, planner = life.controller.registry, life.controller.planner
    await life.live(4)
    await planner.flush_record()
    number, jobs = 4, registry.jobs
    life.store.database._patience_s = _DATABASE_PATIENCE_S
    with hanging:
        for job in jobs[1:]:
            registry.renew(job.request.name, life.clock.now_s() + 10.0)
        life.clock.advance_to(life.clock.now_s() + 2.0)  # the lease of the first ends
        while "8 before it still wait for the database" not in caplog.text:
            planner.mark_changed()
            with suppress(CommitError):
                await planner.settle()
            number += 1
            assert planner.decision is not None
            assert planner.decision.number == number
        registry.register_job(_JOB, life.clock.now_s(), "token")
        with pytest.raises(CommitError, match="not stored"):
            await registry.commit()
        assert registry.jobs == jobs  # it is not on the disk that one has gone, nor that one has come
        await planner.flush_record()
        assert f"has not answered within {_DATABASE_PATIENCE_S:g} s" in life.store.database.health.problem
    life.store.database._patience_s = PATIENCE_S
    await life.live(3)
    assert life.store.database.health.problem == ""
    await planner.flush_record()
    before = held(registry)
    await life.end()
    life.start()
    assert [stored.job for stored in held(life.controller.registry)] == [stored.job for stored in before]
    replayed = list(replay(read_decisions("record", life.lines())))
    assert [each.recorded.number for each in replayed[-3:]] == [number + 1, number + 2, number + 3]
    assert {each.verdict for each in replayed} == {Verdict.SAME, Verdict.NOT_CHECKED}
    await life.end()


@pytest.mark.slow
def test_plans_are_made_though_the_disk_hangs(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    life = Life(tmp_path / "t.db", "trainyard", Steering.SOURCE_PORT)
    asyncio.run(_plans_go_on(life, held_up(), caplog))


@pytest.mark.slow
def test_plans_are_made_though_the_server_hangs(postgresql: Server, caplog: pytest.LogCaptureFixture) -> None:
    life = Life(postgresql.new_database(), "trainyard")
    asyncio.run(_plans_go_on(life, postgresql.stopped(), caplog))


def test_a_start_that_takes_long_is_not_cut_off_by_the_server(
    postgresql: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = postgresql.new_database()

    async def register() -> None:
        store = Store.open(address, DrivenClock())
        registry = store.registry(FABRIC, LEASE_S)
        registry.register_job(_JOB, 0.0)
        await registry.commit()
        await store.close()

    asyncio.run(register())

    def slowly(*_: object) -> None:
        time.sleep(0.5)

    monkeypatch.setattr(stored_jobs, "check_job", slowly)
    impatient = f"{address}&options=-c%20idle_in_transaction_session_timeout%3D100"
    assert [job.request for job in restored(impatient).jobs] == [_JOB]


def test_a_late_call_is_cancelled_before_it_begins_and_uncertain_after(tmp_path: Path) -> None:
    async def scenario() -> None:
        database = Database.open(str(tmp_path / "t.db"))
        database._patience_s = 0.05
        done: list[str] = []
        with held_up():
            with pytest.raises(UnknownOutcomeError):
                await database.write(lambda _: done.append("began"))
            with pytest.raises(StoreError) as refused:
                await database.write(lambda _: done.append("waited"))
            assert not isinstance(refused.value, UnknownOutcomeError)
        database._patience_s = PATIENCE_S
        await database.write(lambda _: done.append("later"))
        assert done == ["began", "later"]
        database.close()

    asyncio.run(scenario())


def test_a_late_commit_is_overwritten_though_the_first_overwrite_fails(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        store = Store.open(str(tmp_path / "t.db"), DrivenClock())
        registry = store.registry(FABRIC, LEASE_S)
        store.database._patience_s = 0.05
        with held_up():
            registry.register_job(replace(_JOB, name="hanging"), 0.0)
            with pytest.raises(CommitError):
                await registry.commit()
            registry.register_job(replace(_JOB, name="behind it"), 0.0)
            with pytest.raises(CommitError):
                await registry.commit()
        store.database._patience_s = PATIENCE_S
        registry.register_job(_JOB, 0.0)
        await registry.commit()
        assert [job.request.name for job in registry.jobs] == ["late"]
        await store.close()

    asyncio.run(scenario())
    assert [job.request.name for job in restored(str(tmp_path / "t.db")).jobs] == ["late"]


def test_a_late_commit_is_overwritten_without_another_change(tmp_path: Path) -> None:
    async def scenario() -> None:
        life = Life(tmp_path / "t.db", "crux")
        life.start()
        registry, life.store.database._patience_s = life.controller.registry, 0.05
        with held_up():
            registry.register_job(_JOB, life.clock.now_s())
            with pytest.raises(CommitError):
                await registry.commit()
        life.store.database._patience_s = PATIENCE_S

        async def until(*jobs: str) -> None:
            async with asyncio.timeout(PATIENCE_S):
                while await life.store.database.write(_jobs) != list(jobs):
                    await asyncio.sleep(0.01)

        await until(_JOB.name)
        telling = asyncio.create_task(life.controller.record_silences())
        await until()
        telling.cancel()
        await life.end()

    asyncio.run(scenario())
