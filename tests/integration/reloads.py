"""Reloads of a controller whose jobs send without a pause."""

import asyncio
from collections.abc import Awaitable, Callable, Set
from typing import Any

from controller.process.active_controller import ActiveController
from controller.southbound.southbound import SouthboundError
from tests.integration.reloading import ReloadedFabric, noted, part, reloaded, whole
from tests.patience import until
from topologies.specification import ClosSpecification

CLOS = ClosSpecification(
    kind="clos", tors=3, aggs=3, hosts_per_tor=3, gpus_per_host=2, host_link_gbps=10, uplink_gbps=10
)
WHOLE = whole(CLOS)
JOBS = {"even": ("h0", "h3", "h6"), "all": ("h0", "h1", "h3", "h4", "h6", "h7")}


async def busy(found: ReloadedFabric) -> None:
    for job, hosts in JOBS.items():
        found.register(job, hosts)
    await found.settle()
    found.traffic.send(found.five_tuples)
    found.traffic.run(0.002)


def tried(
    before: dict[str, Any],
    change: Callable[[ReloadedFabric], Awaitable[None]],
    *,
    loses_packets: bool = False,
    **options: Any,
) -> None:
    async def test() -> None:
        async with reloaded(CLOS.build(), before, **options) as found, noted(found):
            await busy(found)
            found.written.clear()
            await change(found)
            found.traffic.run(0.004)
            assert bool(found.traffic.lost()) is loses_packets
            assert sorted(job.request.name for job in found.core.registry.jobs) == sorted(JOBS)

    asyncio.run(test())


WITHOUT = {
    "cable": part(WHOLE, cables=[("t0", "a1")]),
    "switch": part(WHOLE, switches=["a2"]),
    "host": part(WHOLE, hosts=["h2"]),
    "hosts and a cable": part(WHOLE, hosts=["h2", "h5"], cables=[("t1", "a0")]),
}


async def settled(active: ActiveController, _limit_s: float, _refusing: Set[str] | None = None) -> bool:
    """Plan as the controller does by itself where its time passes."""
    await until(lambda: not active.core.draining.aside)
    try:
        await active.core.planner.settle()
    except SouthboundError:
        return False
    return True
