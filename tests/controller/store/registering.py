"""A process that has a registry change on a database, step by step, and says of each when it is acknowledged.

``python registering.py DATABASE FIRST`` goes on until it is killed; every step follows from its number.
"""

import asyncio
import sys
from random import Random

from controller.registry.errors import RegistrationError
from controller.registry.jobs import StoredJob
from controller.registry.registry import Registry
from controller.registry.requests import FlowGroupRequest, FlowRequest, InstanceRequest, JobRequest, NicReference
from controller.store.store import Store
from experiments.scenarios.driven.clock import DrivenClock
from policies.job import Profile
from topologies.specification import DumbbellSpecification

FABRIC = DumbbellSpecification(kind="dumbbell", hosts_per_side=2, host_link_gbps=4, bottleneck_gbps=1).build()
LEASE_S = 10.0
_RING = FlowGroupRequest("ring", tuple(FlowRequest(NicReference("h0", 0), NicReference("h2", 0), 8, 0.0) for _ in "ab"))


def change(registry: Registry, number: int) -> None:
    """The step of this number, which may be refused."""
    draws = Random(number)
    name = draws.choice("abc")
    try:
        match draws.randrange(6):
            case 0 | 1:
                profile = Profile(1.0, 0.5, float(number))
                registry.register_job(JobRequest(name, ("h0", "h2"), 2, profile), 0.0, f"token of {name}")
            case 2:
                registry.register_flow_groups(name, [_RING])
            case 3:
                begun = InstanceRequest(number, has_ended=draws.random() < 0.5)
                registry.update_instances(name, {"ring": begun}, 0.0)
            case 4:
                registry.record_silences(0.5 * LEASE_S)
            case 5 if draws.random() < 0.4:
                registry.deregister(name)
            case _:
                registry.renew(name, 0.0)
    except RegistrationError:
        pass


def held(registry: Registry) -> list[StoredJob]:
    """What has to be there again."""
    told_s = registry._state.leases.recorded_silence_s
    names = {job: job.request.name for job in registry.jobs}
    return [StoredJob(job, dict(registry.instances(name)), told_s(name)) for job, name in names.items()]


def restored(database: str) -> Registry:
    """The registry on a database."""
    store = Store.open(database, DrivenClock())
    try:
        return store.registry(FABRIC, LEASE_S)
    finally:
        store.database.close()


async def _change_on(database: str, number: int) -> None:
    registry = Store.open(database, DrivenClock()).registry(FABRIC, LEASE_S)
    while True:
        change(registry, number)
        await registry.commit()
        number += 1
        print(f"{number}\n", end="", flush=True)  # in one write, also where output is not buffered


if __name__ == "__main__":
    asyncio.run(_change_on(sys.argv[1], int(sys.argv[2])))
