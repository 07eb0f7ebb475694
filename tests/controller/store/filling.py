"""A database in which a controller has left something in every table.

``python -m tests.controller.store.filling DATABASE`` makes one; ``version_5.sqlite.sql`` is what version 5 made so,
which knew no pauses and pins.
"""

import asyncio
import sys
from functools import partial

from controller.leadership.exclusive import acquire_term
from controller.links.drains import Drain, DrainKind, DrainTarget
from controller.planning.interventions import HandPin, Pause
from controller.profiling.measured import Measured
from controller.profiling.rhythm import Rhythm
from controller.registry.requests import InstanceRequest, JobRequest
from controller.southbound.write_outcomes import SwitchWrite, WriteOutcome
from controller.store.audit import Call
from controller.store.database import Database
from controller.store.interventions import write_pause, write_pin
from controller.store.leader_lease import DatabaseLease
from tests.controller.record.lives import Life

LEASE_S = 2.0
DRAINS = (
    Drain(DrainTarget(DrainKind.SWITCH, "a0"), False, 101.5, "operator"),
    Drain(DrainTarget(DrainKind.LINK, "a1:1 - t0:4"), True, 102.25, "anyone"),
)
PAUSE = Pause(103.0, "operator", "new cables")
PIN = HandPin("job-0", 2, None, 102.5, 1e9, "operator")
CALL = Call("gpt's owner", "blue", "tenant", "RegisterJob", "gpt", "answered")
WRITE = SwitchWrite("t0", 3, 1, 2, WriteOutcome.REFUSED, "table is full")


async def fill(address: str, events: int = 4) -> Life:
    """Fill a database; returns the controller that has, which runs still."""
    table = DatabaseLease(Database.open(address))
    term = await acquire_term(table, "one")
    table.close()
    life = Life(address, "crux")
    life.start()
    store, registry = life.store, life.controller.registry
    assert term == 1
    await life.live(events)
    registry.register_job(
        JobRequest("silent", ("h1", "h3"), 2, None), life.clock.now_s(), "token of silent", tenant="blue"
    )
    gpt = registry.jobs[0].request.name
    registry.update_instances(gpt, {"g": InstanceRequest(7)}, life.clock.now_s())
    registry.record_silences(life.clock.now_s() + 0.75 * LEASE_S)
    await registry.commit()
    silent = next(job for job in registry.jobs if job.request.name == "silent")
    profiles = store.profiles(life.routing)
    profiles.save(silent, Measured(12.5, Rhythm(1.5e9, 0.3, 0.2, 30, 1.0), 0.0, ()))
    await profiles.flush()
    for drain in DRAINS:
        await store.keep_drain(drain)
    store.trail.record(WRITE)
    store.trail.record_call(CALL)
    await store.trail.flush()
    await store.record_grace(0.5)
    await store.database.write(partial(write_pause, PAUSE))
    await store.database.write(partial(write_pin, PIN))
    await life.controller.planner.flush_record()
    return life


async def _fill_and_end(address: str) -> None:
    await (await fill(address)).end()


if __name__ == "__main__":
    asyncio.run(_fill_and_end(sys.argv[1]))
