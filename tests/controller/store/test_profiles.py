"""A measurement outlives its controller as long as the job is registered and the fabric the same."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import update

from controller.profiling.measured import Measured
from controller.profiling.rhythm import Rhythm
from controller.profiling.shares import PathShare
from controller.registry.errors import CommitError
from controller.registry.jobs import RegisteredJob
from controller.registry.registry import Registry
from controller.registry.requests import JobRequest
from controller.store.schema import MEASURED, PAUSE, PIN, PROPERTY
from controller.store.store import Store
from experiments.scenarios.driven.clock import DrivenClock
from policies.job import Profile
from tests.controller.store.held_up import held_up
from topologies.ecmp import hash_multipliers
from topologies.fabric import Fabric
from topologies.routing import Routing
from topologies.specification import ClosSpecification

ALONE = JobRequest("gpt", ("h0", "h2"), 16, None)


def routing_of(tors: int = 2, uplink_gbps: float = 100) -> Routing:
    fabric: Fabric = ClosSpecification(
        kind="clos", tors=tors, aggs=2, hosts_per_tor=2, host_link_gbps=100, uplink_gbps=uplink_gbps, uplinks_per_pair=1
    ).build()
    return Routing(fabric, hash_multipliers(fabric.switches, seed=1))


ROUTING = routing_of()


def measured_of(job: RegisteredJob) -> Measured:
    source, destination = (ROUTING.fabric.nics[host][0] for host in job.request.hosts)
    path = ROUTING.candidate_paths(source, destination)[1]
    share = PathShare(source, destination, path, 1.5e9)
    return Measured(12.5, Rhythm(1.5e9, 0.3, 0.2, 30, 1.0), 0.12, (share,))


class Life:
    """One controller's time on a database."""

    def __init__(self, database: Path, routing: Routing = ROUTING) -> None:
        self.store = Store.open(str(database), DrivenClock())
        self.registry: Registry = self.store.registry(ROUTING.fabric, lease_s=10.0)
        self.profiles = self.store.profiles(routing)

    def known(self) -> dict[str, Measured]:
        return self.profiles.load(self.registry.jobs)

    def end(self) -> None:
        asyncio.run(self.store.close())


async def keep(life: Life, job: RegisteredJob, measured: Measured) -> None:
    life.profiles.save(job, measured)
    await life.profiles.flush()


async def register(life: Life, request: JobRequest, now_s: float) -> RegisteredJob:
    life.registry.register_job(request, now_s)
    await life.registry.commit()
    return next(job for job in life.registry.jobs if job.request.name == request.name)


def test_a_measured_job_is_restored_with_its_measurement(tmp_path: Path) -> None:
    async def first(life: Life) -> RegisteredJob:
        job = await register(life, ALONE, 1.0)
        await register(life, replace(ALONE, name="told", profile=Profile(1.0, 0.5, 8.0)), 2.0)
        await keep(life, job, measured_of(job))
        await keep(life, job, replace(measured_of(job), at_s=50.0))
        return job

    life = Life(tmp_path / "db")
    job = asyncio.run(first(life))
    life.end()
    life = Life(tmp_path / "db")
    assert {job.request.name: job.request.profile is None for job in life.registry.jobs} == {"gpt": True, "told": False}
    assert life.known() == {"gpt": replace(measured_of(job), at_s=50.0)}
    life.end()
    # Links that are slower now need longer for the same.
    life = Life(tmp_path / "db", routing_of(uplink_gbps=40))
    assert life.known() == {"gpt": replace(measured_of(job), at_s=50.0, transfer_s=0.3)}
    life.end()
    # Where links have other numbers, nothing is known.
    life = Life(tmp_path / "db", routing_of(tors=3))
    assert life.known() == {}
    life.end()


def test_another_job_of_the_name_does_not_get_the_measurement(tmp_path: Path) -> None:
    async def scenario(life: Life) -> None:
        job = await register(life, ALONE, 1.0)
        await keep(life, job, measured_of(job))
        life.registry.deregister("gpt")
        await register(life, ALONE, 2.0)
        assert life.known() == {}
        life.registry.deregister("gpt")
        await life.registry.commit()
        assert life.store.database.read(lambda connection: connection.execute(MEASURED.select()).all()) == []

    life = Life(tmp_path / "db")
    asyncio.run(scenario(life))
    life.end()


def test_no_measurement_is_stored_of_a_job_that_has_gone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(life: Life) -> None:
        job = await register(life, ALONE, 1.0)
        life.registry.deregister("gpt")
        await life.registry.commit()
        await keep(life, job, measured_of(job))
        assert life.store.database.health.problem == caplog.text == ""
        await register(life, ALONE, 2.0)
        await keep(life, job, measured_of(job))
        assert life.store.database.read(lambda connection: connection.execute(MEASURED.select()).all()) == []

    life = Life(tmp_path / "db")
    asyncio.run(scenario(life))
    life.end()


@pytest.mark.parametrize("is_still_there", [True, False])
def test_an_overwritten_job_keeps_its_measurement(tmp_path: Path, *, is_still_there: bool) -> None:
    """Its rows are written again: unless it is another job by now, what was measured of it is its own."""

    async def scenario(life: Life) -> RegisteredJob:
        job = await register(life, ALONE, 1.0)
        await keep(life, job, measured_of(job))
        life.store.database._patience_s = 0.05
        with held_up():
            life.registry.record_silences(8.0)
            with pytest.raises(CommitError):
                await life.registry.commit()
        life.store.database._patience_s = 60.0
        if not is_still_there:
            life.registry.deregister("gpt")
            await register(life, ALONE, 9.0)
        await register(life, replace(ALONE, name="told", profile=Profile(1.0, 0.5, 8.0)), 10.0)
        return job

    life = Life(tmp_path / "db")
    job = asyncio.run(scenario(life))
    assert life.known() == ({"gpt": measured_of(job)} if is_still_there else {})
    life.end()


def test_a_hanging_database_delays_nothing_and_the_newest_measurement_is_stored(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(life: Life) -> RegisteredJob:
        job = await register(life, ALONE, 1.0)
        life.store.database._patience_s = 0.05
        with held_up():
            life.profiles.save(job, measured_of(job))
            await life.profiles.flush()
            assert "what was measured of job 'gpt' is not stored: " in caplog.text
            life.store.database._patience_s = 60.0
            for at_s in (50.0, 60.0):
                life.profiles.save(job, replace(measured_of(job), at_s=at_s))
        await life.profiles.flush()
        return job

    life = Life(tmp_path / "db")
    job = asyncio.run(scenario(life))
    assert life.known() == {"gpt": replace(measured_of(job), at_s=60.0)}
    life.end()


def test_an_older_database_is_used(tmp_path: Path) -> None:
    life = Life(tmp_path / "db")
    for later in (MEASURED, PAUSE, PIN):
        life.store.database.write_now(later.drop)
    life.store.database.write_now(lambda connection: connection.execute(update(PROPERTY).values(value=1)))
    life.end()
    life = Life(tmp_path / "db")
    assert life.known() == {}
    life.end()
