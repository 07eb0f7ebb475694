"""All that a controller stores in a database, from one start to the next."""

import logging
import shlex
from collections.abc import Sequence
from functools import partial
from typing import Self

from controller.access.options import UNLIMITED
from controller.clock import Clock
from controller.config import ControllerConfig
from controller.errors import StoreError
from controller.links.drains import Drain, DrainTarget
from controller.planning.interventions import HandPin, Interventions, Pause
from controller.record.codec import CONTROLLER, Setting
from controller.registry.journal import Change, JobChange, Journal
from controller.registry.registry import Registry
from controller.registry.usage import QuotasOf
from controller.store import drains, facts, grace, interventions, jobs, leader_lease
from controller.store.audit import AuditTrail
from controller.store.database import Database
from controller.store.profiles import ProfileStore
from controller.store.recorder import Recorder
from controller.store.stored_jobs import MisfitError, decode_jobs, fetch_jobs
from policies.policy import Policy
from topologies.fabric import Fabric
from topologies.routing import Routing

_LOG = logging.getLogger(__name__)

_MOST_NAMED = 8
"""Jobs that a message names."""


class Store:
    """A controller's view of a database; its methods raise StoreError. ``term`` is the term in which it writes."""

    def __init__(
        self, database: Database, clock: Clock, trail: AuditTrail | None = None, term: int | None = None
    ) -> None:
        self.database = database
        self.term = term
        self.trail = trail or AuditTrail(database, clock)
        self._clock = clock

    @classmethod
    def open(cls, address: str, clock: Clock) -> Self:
        """Open the store at a path (SQLite) or an SQLAlchemy URL; a missing one is created."""
        return cls(Database.open(address), clock)

    def in_term(self, term: int) -> "Store":
        """The same store, which writes only until another controller takes the lease.

        The audit trail alone goes on: it records what switches were asked for in this term.
        """
        return Store(self.database.guarded(partial(leader_lease.require_term, term)), self._clock, self.trail, term)

    def registry(self, fabric: Fabric, lease_s: float, quotas_of: QuotasOf = lambda _: UNLIMITED) -> Registry:
        """The registry as it was last committed, which commits its changes here; leases go on where they were."""
        registry = Registry(fabric, lease_s, Journal(self._write, self._stage), quotas_of)
        try:
            rows = self.database.read(fetch_jobs)
            stored = self.database.decode(partial(decode_jobs, fabric, rows))
        except MisfitError as error:
            names = list(error.problems)
            jobs_to_withdraw = " ".join(map(shlex.quote, names[:_MOST_NAMED]))
            raise StoreError(
                f"{self.database.name}: {error}. Correct the topology, or, while no controller runs:"
                f" trainyard withdraw {jobs_to_withdraw}{' …' if len(names) > _MOST_NAMED else ''} --database"
                f" {shlex.quote(self.database.name.removeprefix('database '))}"
            ) from error
        registry.restore(stored, self._clock.now_s())
        return registry

    def grace_s(self, lease_s: float) -> float:
        """For how long found rules are kept from now on, since jobs may not be known yet; at most one lease."""
        return self.database.read(partial(grace.read_grace_s, lease_s))

    async def record_grace(self, left_s: float) -> None:
        """Store for how long found rules are still kept."""
        await self.database.write(partial(grace.write_grace_s, left_s))

    def drains(self) -> Sequence[Drain]:
        """What operators have drained."""
        return self.database.read(drains.read_drains)

    async def keep_drain(self, drain: Drain) -> None:
        """See DrainKeeper."""
        await self.database.write(partial(drains.write_drain, drain))

    async def forget_drain(self, target: DrainTarget) -> None:
        """See DrainKeeper."""
        await self.database.write(partial(drains.delete_drain, target))

    def interventions(self) -> Interventions:
        """What operators have decided by hand, which is kept here as it changes."""
        pause, pins = self.database.read(interventions.read_interventions)
        return Interventions(self._clock, pause, pins, self)

    async def keep_pause(self, pause: Pause | None) -> None:
        """See InterventionKeeper."""
        await self.database.write(partial(interventions.write_pause, pause))

    async def keep_pin(self, pin: HandPin) -> None:
        """See InterventionKeeper."""
        await self.database.write(partial(interventions.write_pin, pin))

    async def forget_pin(self, target: str) -> None:
        """See InterventionKeeper."""
        await self.database.write(partial(interventions.delete_pin, target))

    def warn_of_other(self, config: ControllerConfig) -> None:
        """Log where the last recorded Plan was decided under another configuration than this one."""
        body = self.database.read(partial(facts.newest_fact, CONTROLLER))
        if isinstance(body, dict) and (differing := Setting.of(config).differing(body)):
            _LOG.warning(
                "the last plan was decided under another %s than is configured here; what leads next goes by its own",
                " and ".join(differing),
            )

    def profiles(self, routing: Routing) -> ProfileStore:
        """The measured profiles of jobs on a fabric."""
        return ProfileStore(self.database, routing)

    def recorder(self, config: ControllerConfig, policy: Policy, routing: Routing) -> Recorder:
        """A recorder of decisions, which knows the last one of the controller before."""
        return Recorder(self.database, self.trail, Setting.of(config), policy, routing, config.record, self._clock)

    async def close(self) -> None:
        """Close the database once pending writes are done, or have taken too long."""
        await self.trail.close()
        self.database.close()

    async def _write(self, changes: Sequence[Change]) -> None:
        await self.database.write(partial(jobs.write_changes, changes))

    async def _stage(self, change: JobChange, first: int) -> int:
        return await self.database.write(partial(jobs.stage_groups, change, first))
