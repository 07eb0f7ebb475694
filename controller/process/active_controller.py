"""The active controller: connected to its switches, planning and measuring until its context ends."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import grpc

from controller.background import run_in_thread
from controller.clock import Clock
from controller.config import ControllerConfig
from controller.process.core import ControllerCore
from controller.southbound.gnmi import GnmiPortMonitor
from controller.southbound.p4runtime.fencing import Grant
from controller.southbound.p4runtime.switches import P4RuntimeSouthbound
from topologies.routing import Routing

if TYPE_CHECKING:
    from controller.store.store import Store

_PORTS_LIMIT_S = 1.0
"""How long the first Plan waits for switches to report their ports."""
_FLUSH_LIMIT_S = 2.0
"""How long the end waits for the database to store the last Plan and the last measurements."""


@dataclass(frozen=True, slots=True)
class ExternalTime:
    """A clock that something else moves, with the further gRPC services that move it.

    The controller then does nothing by itself: these services make it plan.
    """

    clock: Clock
    services: Callable[[ControllerCore], Sequence[grpc.GenericRpcHandler]]


@asynccontextmanager
async def active_controller(
    config: ControllerConfig,
    routing: Routing,
    clock: Clock,
    store: "Store | None" = None,
    grant: Grant | None = None,
    *,
    plans_by_itself: bool = True,
) -> AsyncIterator[ControllerCore]:
    """Run a controller while the context lasts.

    Args:
        config: Its configuration.
        routing: The routing of its fabric.
        clock: The time of leases and Plans.
        store: The state from which it goes on, and to which it writes; None: it begins anew.
        grant: Permission to write to switches, asked for before every request; None: always granted.
        plans_by_itself: Whether it plans and measures as time passes. Otherwise its caller makes it do so.

    Raises:
        StoreError: The stored state cannot be used.
    """
    on_write = None if store is None else store.trail.record
    southbound = P4RuntimeSouthbound(
        config.switches,
        routing,
        config.pipeline,
        config.election_id,
        on_write=on_write,
        grant=grant,
        read_back_s=config.read_back_s if plans_by_itself else None,
        tls=config.switch_tls,
    )
    # Reading a large registry takes time.
    controller = await run_in_thread(partial(ControllerCore, config, routing, southbound, clock, store, southbound))
    try:
        async with GnmiPortMonitor(config.switches if config.reads_ports else (), controller.ports, config.switch_tls):
            if plans_by_itself and config.reads_ports:
                # Otherwise switches would first be programmed as if all links were up.
                await _wait_at_most(_PORTS_LIMIT_S, controller.ports.all_heard())
                await controller.apply_port_states()
            async with southbound, asyncio.TaskGroup() as tasks:
                loops = (
                    controller.planner.run,
                    controller.follow_ports,
                    controller.measure,
                    controller.record_silences,
                    controller.watchdog.run,
                )
                running = [tasks.create_task(loop()) for loop in (loops if plans_by_itself else ())]
                yield controller
                for task in running:
                    task.cancel()
    finally:
        await _wait_at_most(_FLUSH_LIMIT_S, controller.flush())


async def _wait_at_most(limit_s: float, work: Coroutine[None, None, None]) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(limit_s):
            await work
