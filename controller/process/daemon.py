"""The controller process: it listens, leads or stands by, and ends on a signal."""

import asyncio
import logging
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from functools import partial
from typing import TYPE_CHECKING

from controller.background import run_in_thread
from controller.clock import Clock, WallClock
from controller.config import ControllerConfig
from controller.planning.warm_up import warm_up
from controller.process.active_controller import ExternalTime, active_controller
from controller.process.latency import tune_for_latency
from controller.process.server import Server
from policies.registry import load_policy
from topologies.ecmp import hash_multipliers
from topologies.logs import log_to_stderr
from topologies.routing import Routing

if TYPE_CHECKING:
    # SQLAlchemy is slow to import, and a controller without a database does not need it.
    from controller.store.store import Store

_LOG = logging.getLogger(__name__)

_WARM_UP_LIMIT_S = 120.0


def run(config: ControllerConfig) -> None:
    """Run a controller in this process until SIGTERM or SIGINT, with its log on stderr. SIGHUP is logged.

    Raises:
        OSError: The address cannot be bound.
        StoreError: The database cannot be used.
    """
    log_to_stderr()
    asyncio.run(serve(config))


async def serve(config: ControllerConfig, external_time: ExternalTime | None = None) -> None:
    """Run a controller until SIGTERM or SIGINT, in wall-clock time unless another is given.

    Prints ``listening on ADDRESS`` once it answers. Rules stay on the switches when it stops.

    Raises:
        OSError: The address cannot be bound.
        StoreError: The database cannot be used.
    """
    # Every failure of a switch has a line of ours, without a traceback.
    logging.getLogger("finsy").setLevel(logging.CRITICAL + 1)
    serving = asyncio.create_task(_serve(config, external_time))

    def stop() -> None:
        # It may be waiting for a database, or for the lease of another controller.
        if not serving.cancelling():
            serving.cancel()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    loop.add_signal_handler(signal.SIGHUP, _reload)
    with suppress(asyncio.CancelledError):
        await serving


def _reload() -> None:
    """Handle SIGHUP, which asks daemons to read their files anew."""
    _LOG.warning("SIGHUP: certificates and tokens are read whenever they change; nothing else is read again")


async def _serve(config: ControllerConfig, external_time: ExternalTime | None) -> None:
    """Run a controller until cancelled."""
    tune_for_latency()
    fabric = config.topology.build()
    routing = Routing(fabric, hash_multipliers(fabric.switches, config.hash_seed))
    clock = WallClock() if external_time is None else external_time.clock
    async with Server.bound(config) as server, _open_store(config.database, clock) as store:
        if external_time is None:
            await _warm_up(config, routing)
        if config.leadership is not None:
            assert store is not None
            await _stand_by(config, routing, clock, store, server)
            return
        if store is not None:
            store = await _exclusive(store)
        async with active_controller(
            config, routing, clock, store, plans_by_itself=external_time is None
        ) as controller:
            further = () if external_time is None else external_time.services(controller)
            async with server.serving((*controller.handlers, *further)):
                await asyncio.Event().wait()


async def _warm_up(config: ControllerConfig, routing: Routing) -> None:
    """Compile the policy's code; a policy that fails here does not keep the controller from starting."""
    try:
        async with asyncio.timeout(_WARM_UP_LIMIT_S):
            await run_in_thread(partial(warm_up, load_policy(config.policy), routing, config.num_levels))
    except (Exception, SystemExit) as error:
        _LOG.error("policy %s has failed in its warm-up: %s: %s", config.policy, type(error).__name__, error)


async def _exclusive(store: "Store") -> "Store":
    """The store of a controller that shares its database with no other, in a term of its own."""
    from controller.leadership.exclusive import acquire_term
    from controller.store.leader_lease import DatabaseLease

    return store.in_term(await acquire_term(DatabaseLease(store.database), socket.gethostname()))


async def _stand_by(config: ControllerConfig, routing: Routing, clock: Clock, store: "Store", server: Server) -> None:
    """Lead while no other controller on the database does; prints ``leading, term NUMBER`` at the start of a term."""
    from controller.process.standby import Standby
    from controller.store.leader_lease import DatabaseLease

    assert config.leadership is not None
    assert config.database is not None

    def announce(term: int) -> None:
        print(f"leading, term {term}", flush=True)

    await run_in_thread(partial(store.warn_of_other, config))
    with closing(await run_in_thread(partial(DatabaseLease.open, config.database))) as table:
        standby = Standby(config, config.leadership, routing, clock, store, table, announce)
        async with server.serving((standby.gate,)):
            await standby.run()


@asynccontextmanager
async def _open_store(address: str | None, clock: Clock) -> "AsyncIterator[Store | None]":
    """Open the store at an address while the context lasts; None where there is no address."""
    if address is None:
        yield None
        return
    from controller.store.store import Store

    store = await run_in_thread(partial(Store.open, address, clock))
    try:
        yield store
    finally:
        await store.close()
