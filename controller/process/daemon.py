"""The controller process: its switches, its address and its end."""

import asyncio
import gc
import logging
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing, suppress
from functools import partial
from typing import TYPE_CHECKING

import grpc.aio

from controller.api.service import SERVER_OPTIONS
from controller.clock import Clock, WallClock
from controller.config import ControllerConfig, LeadershipConfig
from controller.planning.warm_up import rehearse
from controller.process.active_controller import ExternalTime, in_office
from controller.store.writing import in_own_thread
from policies.registry import load_policy
from topologies.ecmp import hash_multipliers
from topologies.routing import Routing

if TYPE_CHECKING:
    # SQLAlchemy takes a while to import, and a controller without a database needs none of it.
    from controller.store.store import Store

_Answering = Callable[[Sequence[grpc.GenericRpcHandler]], AbstractAsyncContextManager[None]]

_LOG = logging.getLogger(__name__)

_STOP_GRACE_S = 1.0
_REHEARSAL_LIMIT_S = 120.0
_SWITCH_INTERVAL_S = 0.0005
_COLLECTION_THRESHOLDS = (50_000, 20, 50)


def favour_answers() -> None:
    """Let the loop that answers wait little for the threads that plan, and for the garbage collector.

    What the controller holds is many small objects that live long and refer to each other in no circle.
    """
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    gc.set_threshold(*_COLLECTION_THRESHOLDS)


def run(config: ControllerConfig) -> None:
    """Run a controller in this process until SIGTERM or SIGINT, with its log on stderr.

    Raises:
        OSError: The address cannot be bound.
        StoreError: The database cannot be used.
    """
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("finsy").addFilter(_is_news)
    asyncio.run(serve(config))


def _is_news(record: logging.LogRecord) -> bool:
    """Drop finsy's warning about switches without gNMI: it comes at each connection to a healthy switch."""
    return not record.getMessage().endswith("] gNMI is not implemented")


async def serve(config: ControllerConfig, external_time: ExternalTime | None = None) -> None:
    """Run a controller until SIGTERM or SIGINT, by the time as it passes unless another is given.

    Prints ``listening on HOST:PORT`` when it answers. Rules stay on the switches when it stops. Raises OSError where
    the address cannot be bound, and StoreError where the database cannot be used.
    """
    serving = asyncio.create_task(_serve(config, external_time))

    def stop() -> None:
        # Whatever it is at: it may be waiting for a database, or for another's lease.
        if not serving.cancelling():
            serving.cancel()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    with suppress(asyncio.CancelledError):
        await serving


async def _serve(config: ControllerConfig, external_time: ExternalTime | None) -> None:
    """Run a controller until cancelled."""
    favour_answers()
    fabric = config.topology.build()
    routing = Routing(fabric, hash_multipliers(fabric.switches, config.hash_seed))
    clock = WallClock() if external_time is None else external_time.clock
    server = grpc.aio.server(options=SERVER_OPTIONS)
    port = _bind(server, config.listen)
    answering = partial(_answering, server, f"{config.listen.rpartition(':')[0]}:{port}")
    async with _opened(config.database, clock) as store:
        if external_time is None:
            await _rehearse(config, routing)
        if config.leadership is not None:
            assert config.database is not None
            assert store is not None
            await _stand_by(config, config.leadership, config.database, routing, clock, store, answering)
            return
        if store is not None:
            store = await _for_itself(store)
        async with (
            in_office(config, routing, clock, store, plans_by_itself=external_time is None) as controller,
            answering(
                (*controller.handlers, *(external_time.services(controller) if external_time is not None else ()))
            ),
        ):
            await asyncio.Event().wait()


async def _rehearse(config: ControllerConfig, routing: Routing) -> None:
    """Have machine code made; a policy that fails at it does not keep the controller from starting."""
    try:
        async with asyncio.timeout(_REHEARSAL_LIMIT_S):
            await in_own_thread(partial(rehearse, load_policy(config.policy), routing, config.num_levels))
    except (Exception, SystemExit) as error:
        _LOG.error("policy %s has failed at a rehearsal: %s: %s", config.policy, type(error).__name__, error)


async def _for_itself(store: "Store") -> "Store":
    """The store of a controller that shares it with nobody."""
    from controller.leadership.exclusive import own_term
    from controller.store.leases import DatabaseLease

    return store.in_term(await own_term(DatabaseLease(store.database), socket.gethostname()))


async def _stand_by(
    config: ControllerConfig,
    leadership: LeadershipConfig,
    database: str,
    routing: Routing,
    clock: Clock,
    store: "Store",
    answering: _Answering,
) -> None:
    """Lead whenever no other controller on the same database does; prints ``leading, term NUMBER`` when it begins."""
    from controller.process.standby import Standby
    from controller.store.leases import DatabaseLease

    def announce(term: int) -> None:
        print(f"leading, term {term}", flush=True)

    await in_own_thread(partial(store.warn_of_other, config))
    with closing(await in_own_thread(partial(DatabaseLease.open, database))) as table:
        standby = Standby(config, leadership, routing, clock, store, table, announce)
        async with answering((standby.reception,)):
            await standby.run()


@asynccontextmanager
async def _answering(
    server: grpc.aio.Server, address: str, handlers: Sequence[grpc.GenericRpcHandler]
) -> AsyncIterator[None]:
    """Have a server that is bound to an address answer calls with these, and say so."""
    server.add_generic_rpc_handlers(handlers)
    await server.start()
    print(f"listening on {address}", flush=True)
    try:
        yield
    finally:
        await server.stop(_STOP_GRACE_S)


@asynccontextmanager
async def _opened(address: str | None, clock: Clock) -> "AsyncIterator[Store | None]":
    """The store at an address, closed in the end; None without one."""
    if address is None:
        yield None
        return
    from controller.store.store import Store

    store = await in_own_thread(partial(Store.open, address, clock))
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
