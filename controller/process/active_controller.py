"""A controller in office: connected to its switches and planning, until it leaves with all that it was at."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import grpc

from controller.clock import Clock
from controller.config import ControllerConfig
from controller.process.core import Controller
from controller.southbound.gnmi import GnmiPortMonitor
from controller.southbound.p4runtime.fencing import Grant
from controller.southbound.p4runtime.switches import P4RuntimeSouthbound
from controller.store.writing import in_own_thread
from topologies.routing import Routing

if TYPE_CHECKING:
    from controller.store.store import Store

_HEARING_S = 1.0
"""In which switches that are there say what ports they have."""
_WRITING_S = 2.0
"""In which the last Plan gets into the record, and what was measured is kept, unless the database is away."""


@dataclass(frozen=True, slots=True)
class ExternalTime:
    """A clock that somebody else moves, and what moves it: further gRPC services of the controller.

    The controller then does nothing by itself: these services have it plan.
    """

    clock: Clock
    services: Callable[[Controller], Sequence[grpc.GenericRpcHandler]]


@asynccontextmanager
async def in_office(
    config: ControllerConfig,
    routing: Routing,
    clock: Clock,
    store: "Store | None" = None,
    grant: Grant | None = None,
    *,
    plans_by_itself: bool = True,
) -> AsyncIterator[Controller]:
    """A controller that plans by itself, unless somebody else has it plan, with switches that a ``grant`` covers.

    It goes on where the one before has ended, as the ``store`` knows it. Raises StoreError where that cannot be.
    """
    on_write = None if store is None else store.trail.note
    southbound = P4RuntimeSouthbound(
        config.switches, routing, config.pipeline, config.election_id, on_write=on_write, grant=grant
    )
    # A large registry takes a while to read.
    controller = await in_own_thread(partial(Controller, config, routing, southbound, clock, store, southbound))
    try:
        async with GnmiPortMonitor(config.switches if config.reads_ports else (), controller.ports):
            if plans_by_itself and config.reads_ports:
                # Before a switch is told to route as if all of the fabric were there.
                await _within(_HEARING_S, controller.ports.all_heard())
                await controller.hear_ports()
            async with southbound, asyncio.TaskGroup() as tasks:
                works = (controller.planner.run, controller.follow_ports, controller.measure, controller.tell_next)
                running = [tasks.create_task(work()) for work in (works if plans_by_itself else ())]
                yield controller
                for task in running:
                    task.cancel()
    finally:
        await _within(_WRITING_S, controller.written())


async def _within(patience_s: float, work: Coroutine[None, None, None]) -> None:
    """Wait for something, but no longer than that."""
    with suppress(TimeoutError):
        async with asyncio.timeout(patience_s):
            await work
