"""The controller process: it listens, leads or stands by, and ends on a signal."""

import asyncio
import logging
import signal
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING

from controller.background import run_in_thread
from controller.clock import Clock, WallClock
from controller.config import ConfigFile, ControllerConfig
from controller.events import EventKind, RecentEvents, log_event, log_from
from controller.leadership.leader_gate import LeaderGate
from controller.process.active_controller import ExternalTime, active_controller
from controller.process.admission import authenticator_of
from controller.process.changing import ChangingController
from controller.process.latency import tune_for_latency
from controller.process.ready_policy import UnreadyPolicyError, ready_policy
from controller.process.reloads import Reloads
from controller.process.server import Server
from controller.version import installed_version
from controller.web.presence import Presence
from hostlib.addresses import is_local
from hostlib.service_manager import ServiceManager
from topologies.ecmp import hash_multipliers
from topologies.logs import log_to_stderr
from topologies.routing import Routing

if TYPE_CHECKING:
    # SQLAlchemy is slow to import, and a controller without a database does not need it.
    from controller.store.store import Store

_LOG = logging.getLogger(__name__)


def run(config: ControllerConfig, file: ConfigFile | None = None) -> None:
    """Run a controller in this process until SIGTERM or SIGINT, with its log on stderr.

    It reads its ``file`` again on SIGHUP, and when an operator asks for it; None: there is none.

    Raises:
        OSError: The address cannot be bound.
        StoreError: The database cannot be used.
    """
    log_to_stderr(config.log.level, config.log.format)
    log_from(config.log.level)
    asyncio.run(serve(config, manager=ServiceManager.from_environment(), file=file))


async def serve(
    config: ControllerConfig,
    external_time: ExternalTime | None = None,
    manager: ServiceManager | None = None,
    file: ConfigFile | None = None,
) -> None:
    """Run a controller until SIGTERM or SIGINT, in wall-clock time unless another is given.

    It reads its ``file`` again on SIGHUP, and when an operator asks for it; None: there is none. Prints ``listening on
    ADDRESS`` once it answers, and tells the service manager, if there is one. Rules stay on the switches when it stops.

    Raises:
        OSError: The address cannot be bound.
        StoreError: The database cannot be used.
    """
    # Every failure of a switch has a line of ours, without a traceback.
    logging.getLogger("finsy").setLevel(logging.CRITICAL + 1)
    manager = manager or ServiceManager()
    reloads = Reloads(file, manager)
    serving = asyncio.create_task(_serve(config, external_time, manager, reloads))
    keeping_alive = asyncio.create_task(manager.keep_alive())

    def stop() -> None:
        # It may be waiting for a database, or for the lease of another controller.
        if not serving.cancelling():
            manager.stopping()
            serving.cancel()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    loop.add_signal_handler(signal.SIGHUP, reloads.on_signal)
    try:
        with suppress(asyncio.CancelledError):
            await serving
    finally:
        keeping_alive.cancel()


async def _serve(
    config: ControllerConfig, external_time: ExternalTime | None, manager: ServiceManager, reloads: Reloads
) -> None:
    """Run a controller until cancelled."""
    tune_for_latency()
    fabric = config.topology.build()
    routing = Routing(fabric, hash_multipliers(fabric.switches, config.hash_seed))
    clock = WallClock() if external_time is None else external_time.clock
    presence = Presence()
    async with (
        Server.bound(config) as server,
        _web(config, presence),
        _open_store(config.database, clock) as store,
        _telling(config, server.address, store),
    ):
        if external_time is None:
            await _warm_up(config, routing)
        if config.leadership is not None:
            assert store is not None
            await _stand_by(config, routing, clock, store, server, presence, manager, reloads)
            return
        if store is not None:
            store = await _exclusive(store)
        gate = LeaderGate(lambda: "it goes over to another configuration")
        async with active_controller(
            config, routing, clock, store, gate=gate, presence=presence, plans_by_itself=external_time is None
        ) as active:
            if external_time is not None:
                async with server.serving((*active.core.handlers, *external_time.services(active.core))):
                    manager.ready(f"listening on {server.address}")
                    await asyncio.Event().wait()
            with reloads.of(ChangingController(active), store) as handlers:
                async with server.serving((*handlers, gate)):
                    manager.ready(f"listening on {server.address}")
                    await asyncio.Event().wait()


async def _warm_up(config: ControllerConfig, routing: Routing) -> None:
    """Compile the policy's code; a policy that fails here does not keep the controller from starting."""
    try:
        await ready_policy(config, routing)
    except UnreadyPolicyError as error:
        _LOG.error("policy %s", error)


async def _exclusive(store: "Store") -> "Store":
    """The store of a controller that shares its database with no other, in a term of its own."""
    from controller.leadership.exclusive import acquire_term
    from controller.store.leader_lease import DatabaseLease

    return store.in_term(await acquire_term(DatabaseLease(store.database), socket.gethostname()))


@asynccontextmanager
async def _telling(config: ControllerConfig, address: str, store: "Store | None") -> AsyncIterator[None]:
    """Log the start and the end of the controller."""
    version = installed_version()
    log_event(
        _LOG,
        logging.INFO,
        EventKind.STARTED,
        "controller %s started at %s: policy %s, %d switches, %s",
        version,
        address,
        config.policy,
        len(config.switch_addresses),
        "no database" if store is None else store.database.name,
        version=version,
        address=address,
        policy=config.policy,
    )
    try:
        yield
    finally:
        log_event(_LOG, logging.INFO, EventKind.ENDED, "controller ended", address=address)


@asynccontextmanager
async def _web(config: ControllerConfig, presence: Presence) -> AsyncIterator[None]:
    """Serve health, metrics and the page while the context lasts, where the configuration has an address for them."""
    if config.web is None:
        yield
        return
    # Starlette and uvicorn take long to import.
    from controller.web.application import application
    from controller.web.metrics import metrics_route
    from controller.web.page.routes import page_routes
    from controller.web.server import serving

    authenticator, is_secure = authenticator_of(config), config.web_tls is not None
    with _recent_events() as events:
        async with page_routes(presence, events, authenticator, is_secure=is_secure) as page:
            routes = [metrics_route(presence, authenticator), *page]
            app = application(presence, routes, is_local=is_local(config.web.listen))
            async with serving(config.web.listen, config.web_tls, app) as url:
                print(f"web at {url}", flush=True)
                yield


@contextmanager
def _recent_events() -> Iterator[RecentEvents]:
    """The last events that the controller logs, while the context lasts."""
    events, logger = RecentEvents(), logging.getLogger("controller")
    logger.addHandler(events)
    try:
        yield events
    finally:
        logger.removeHandler(events)


async def _stand_by(
    config: ControllerConfig,
    routing: Routing,
    clock: Clock,
    store: "Store",
    server: Server,
    presence: Presence,
    manager: ServiceManager,
    reloads: Reloads,
) -> None:
    """Lead while no other controller on the database does; prints ``leading, term NUMBER`` at the start of a term."""
    from controller.process.standby import Standby
    from controller.store.leader_lease import DatabaseLease

    assert config.leadership is not None
    assert config.database is not None

    def announce(term: int | None) -> None:
        if term is None:
            manager.status(standing_by)
            return
        print(f"leading, term {term}", flush=True)
        manager.status(f"leading, term {term}, listening on {server.address}")

    standing_by = f"standing by, listening on {server.address}"

    await run_in_thread(partial(store.warn_of_other, config))
    with closing(await run_in_thread(partial(DatabaseLease.open, config.database))) as table:
        standby = Standby(config, config.leadership, routing, clock, store, table, announce, presence)
        with reloads.of(standby, store) as handlers:
            async with server.serving((*handlers, standby.gate)):
                manager.ready(standing_by)
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
