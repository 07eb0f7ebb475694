"""The controller process: its switches, its address and its end."""

import asyncio
import gc
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import grpc.aio

from controller.assembly import Controller
from controller.clock import Clock, DrivenClock, WallClock
from controller.config import ClockName, ControllerConfig
from controller.ports.gnmi import GnmiPorts
from controller.rehearsal import rehearse
from controller.service import SERVER_OPTIONS
from controller.southbound.switches import P4RuntimeSouthbound
from topologies.ecmp import hash_multipliers
from topologies.routing import Routing

if TYPE_CHECKING:
    # SQLAlchemy takes a while to import, and a controller without a database needs none of it.
    from controller.store.store import Store

_STOP_GRACE_S = 1.0
_HEARING_S = 1.0
"""In which switches that are there say what ports they have."""
_SWITCH_INTERVAL_S = 0.0005
_COLLECTION_THRESHOLDS = (50_000, 20, 50)


def favour_answers() -> None:
    """Let the loop that answers wait little for the threads that plan, and for the garbage collector.

    What the controller holds is many small objects that live long and refer to each other in no circle.
    """
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    gc.set_threshold(*_COLLECTION_THRESHOLDS)


async def serve(config: ControllerConfig) -> None:
    """Run a controller until SIGTERM or SIGINT.

    Prints ``listening on HOST:PORT`` when it answers. Rules stay on the switches when it stops. Raises OSError where
    the address cannot be bound, and StoreError where the database cannot be used.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)

    favour_answers()
    fabric = config.topology.build()
    routing = Routing(fabric, hash_multipliers(fabric.switches, config.hash_seed))
    clock: Clock = DrivenClock(config.start_s) if config.clock is ClockName.DRIVEN else WallClock()
    async with _opened(config.database, clock) as store:
        southbound = _southbound(config, routing, store)
        controller = Controller(config, routing, southbound, clock, store, counters=southbound)
        async with GnmiPorts(config.switches if config.reads_ports else (), controller.ports):
            if config.clock is ClockName.WALL and config.reads_ports:
                # Before a switch is told to route as if all of the fabric were there.
                with suppress(TimeoutError):
                    await asyncio.wait_for(controller.ports.all_heard(), _HEARING_S)
                await controller.hear_ports()
            async with southbound:
                await _answer(config, controller, routing, stop)
        await controller.planner.recorded()


async def _answer(config: ControllerConfig, controller: Controller, routing: Routing, stop: asyncio.Event) -> None:
    """Answer, and let the controller work by itself where time passes by itself, until it is to stop."""
    is_alone = config.clock is ClockName.WALL
    if is_alone:
        await asyncio.to_thread(rehearse, config.policy, routing, config.num_levels)
    server = grpc.aio.server(options=SERVER_OPTIONS)
    server.add_generic_rpc_handlers(controller.handlers)
    port = _bind(server, config.listen)
    await server.start()
    print(f"listening on {config.listen.rpartition(':')[0]}:{port}", flush=True)
    async with asyncio.TaskGroup() as tasks:
        works = (controller.planner.run(), controller.follow_ports(), controller.measure()) if is_alone else ()
        working = [tasks.create_task(work) for work in works]
        await stop.wait()
        for task in working:
            task.cancel()
    await server.stop(_STOP_GRACE_S)


def _southbound(config: ControllerConfig, routing: Routing, store: "Store | None") -> P4RuntimeSouthbound:
    on_write = None if store is None else store.trail.note
    return P4RuntimeSouthbound(config.switches, routing, config.pipeline, config.election_id, on_write)


@asynccontextmanager
async def _opened(address: str | None, clock: Clock) -> "AsyncIterator[Store | None]":
    """The store at an address, closed in the end; None without one."""
    if address is None:
        yield None
        return
    from controller.store.store import Store

    store = Store.open(address, clock)
    try:
        yield store
    finally:
        await store.close()


def _bind(server: grpc.aio.Server, address: str) -> int:
    """Bind a server to an address; returns its port, which is another one only where that of the address is 0."""
    try:
        return server.add_insecure_port(address)
    except RuntimeError as error:
        raise OSError(f"cannot listen on {address}") from error
