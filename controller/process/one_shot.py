"""Plan once for the switches of a controller that does not run: write it, or say what would be written.

The parts of a controller do it as at its start, on a southbound that visits each switch once the Plan is made.
"""

import asyncio
import os
import pwd
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING

from controller.background import run_in_thread
from controller.clock import WallClock
from controller.config import ControllerConfig
from controller.errors import DaemonError
from controller.process.core import ControllerCore
from controller.process.ready_policy import UnreadyPolicyError, ready_policy
from controller.southbound.fencing import first_election_id
from controller.southbound.gnmi import GnmiPortMonitor
from controller.southbound.p4runtime.switches import given_tables
from controller.southbound.visit import Visit
from controller.southbound.visiting_fabric import VisitingFabric, visiting_southbound
from topologies.ecmp import hash_multipliers
from topologies.routing import Routing

if TYPE_CHECKING:
    # SQLAlchemy is slow to import, and a controller without a database does not need it.
    from controller.store.store import Store


_PORTS_LIMIT_S = 1.0
"""How long the Plan waits for switches to report their ports."""


class NothingAppliedError(DaemonError):
    """No Plan can be made, or none may be now; the message says why. Nothing was written."""


async def apply_once(config: ControllerConfig, *, is_dry_run: bool) -> Sequence[Visit]:
    """Make the Plan that a controller makes at its start, and write it to the switches, or note it.

    It reads the jobs of the configured database. A dry run changes neither that nor switches, also while a controller
    runs. Switches that cannot be reached have a problem, and the others get what is theirs.

    Raises:
        NothingAppliedError: The policy makes no Plan, or planning is paused.
        SwitchHeldError: A controller has switches; not in a dry run.
        StoreError: The database cannot be used, or a controller runs on it.
    """
    fabric = config.topology.build()
    routing = Routing(fabric, hash_multipliers(fabric.switches, config.hash_seed))
    async with _store(config, None if is_dry_run else "trainyard apply") as store:
        on_write = None if store is None or is_dry_run else store.trail.record
        southbound = visiting_southbound(config, routing, _election_id(config, store), _term(config, store), on_write)
        core = await run_in_thread(partial(ControllerCore, config, routing, southbound, WallClock(), store))
        if (pause := core.planner.interventions.pause) is not None:
            by = f" by {pause.by}" if pause.by else ""
            raise NothingAppliedError(f"planning is paused{by}; start the controller and resume it: trainyard resume")
        try:
            await ready_policy(config, routing)
        except UnreadyPolicyError as error:
            raise NothingAppliedError(f"policy {error}") from error
        async with southbound.connected(core.ports if config.reads_ports else None):
            if not is_dry_run:
                southbound.require_free()
            await _plan(core, southbound, config)
            await southbound.forget_found()
            if not is_dry_run:
                await southbound.bid()
            await southbound.visit_all()
        if not is_dry_run:
            _record_call(store, "Apply", southbound)
            await core.flush()
    return tuple(southbound.visits.values())


async def release_once(config: ControllerConfig) -> Sequence[Visit]:
    """Delete all rules and levels of Trainyard from the switches; base routing and what is of operators stay.

    Raises:
        SwitchHeldError: A controller has switches; nothing was written.
        StoreError: The database cannot be used, or a controller runs on it.
    """
    fabric = config.topology.build()
    routing = Routing(fabric, hash_multipliers(fabric.switches, config.hash_seed))
    async with _store(config, "trainyard release") as store:
        on_write = None if store is None else store.trail.record
        southbound = visiting_southbound(config, routing, _election_id(config, store), _term(config, store), on_write)
        async with southbound.connected(None):
            southbound.require_free()
            await southbound.bid()
            await southbound.withdraw_all()
        _record_call(store, "Release", southbound)
    return tuple(southbound.visits.values())


async def _plan(core: ControllerCore, southbound: VisitingFabric, config: ControllerConfig) -> None:
    """Make the Plan of now. Raises NothingAppliedError."""
    if (given := given_tables(southbound)) is not None:
        await southbound.read_given()
        core.planner.use_routing(given.routing())
    async with GnmiPortMonitor(config.p4runtime_addresses if config.reads_ports else (), core.ports, config.switch_tls):
        if config.reads_ports:
            with suppress(TimeoutError):
                async with asyncio.timeout(_PORTS_LIMIT_S):
                    await core.ports.all_heard()
            await core.apply_port_states()
        await core.planner.begin_drained()
        core.planner.mark_changed()
        await core.planner.settle()
    if core.planner.decision is None:
        raise NothingAppliedError(f"policy {core.planner.policy.name} has made no plan: {core.planner.policy.problem}")


def _record_call(store: "Store | None", method: str, southbound: VisitingFabric) -> None:
    """Have the audit trail tell which user of this machine did it."""
    if store is None:
        return
    from controller.store.audit import Call

    try:
        user = pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        user = f"user {os.geteuid()}"
    problems = ", ".join(f"switch {each.name}: {each.problem}" for each in southbound.visits.values() if each.problem)
    store.trail.record_call(Call(user, "", "without a controller", method, "", "done", problems))


def _election_id(config: ControllerConfig, store: "Store | None") -> int:
    """The election id of a controller in the term of a store."""
    term = _term(config, store)
    return config.election_id if term is None else first_election_id(config.election_id, term)


def _term(config: ControllerConfig, store: "Store | None") -> int | None:
    """The term of a store in which switches are written to; None: controllers have no terms."""
    return None if config.leadership is None or store is None else store.term


@asynccontextmanager
async def _store(config: ControllerConfig, holder: str | None) -> "AsyncIterator[Store | None]":
    """Open the configured database while the context lasts, in a term of a ``holder``; None: only to read it.

    There is no store where no database is configured, or its file does not exist yet.
    """
    if config.database is None:
        yield None
        return
    from controller.store.addresses import url_of
    from controller.store.engine import path_of
    from controller.store.offline import take_term
    from controller.store.rehearsal import RehearsalStore
    from controller.store.store import Store

    path = path_of(url_of(config.database))
    if path is not None and not path.exists():
        yield None
        return
    kind = RehearsalStore if holder is None else Store
    store = await run_in_thread(partial(kind.open, config.database, WallClock()))
    try:
        yield store if holder is None else store.in_term(await take_term(store.database, holder))
    finally:
        await store.close()
