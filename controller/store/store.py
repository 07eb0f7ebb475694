"""What a controller keeps from one start to the next, in a database."""

import logging
from collections.abc import Sequence
from functools import partial
from typing import Self

from controller.clock import Clock
from controller.config import ControllerConfig
from controller.errors import StoreError
from controller.record.snapshots import CONTROLLER, Setting
from controller.registry.journal import Journal
from controller.registry.registration import Change
from controller.registry.registry import Registry
from controller.store import facts, jobs, leases
from controller.store.audit import AuditTrail
from controller.store.database import Database
from controller.store.profiles import StoredProfiles
from controller.store.recorder import Recorder
from policies.policy import Policy
from topologies.fabric import Fabric
from topologies.routing import Routing

_LOG = logging.getLogger(__name__)


class Store:
    """A controller's part in a database; its methods raise StoreError. ``term`` is that of who leads by it, if any."""

    def __init__(
        self, database: Database, clock: Clock, trail: AuditTrail | None = None, term: int | None = None
    ) -> None:
        self.database = database
        self.term = term
        self.trail = trail or AuditTrail(database, clock)
        self._clock = clock

    @classmethod
    def open(cls, address: str, clock: Clock) -> Self:
        """The store at a path (SQLite) or an SQLAlchemy URL, made where there is none."""
        return cls(Database.open(address), clock)

    def in_term(self, term: int) -> "Store":
        """The same, for who leads in this term: once another has taken the lease, nothing is written any longer.

        But what switches were asked for, and have answered, goes on into the audit trail.
        """
        return Store(self.database.guarded(partial(leases.require_term, term)), self._clock, self.trail, term)

    def registry(self, fabric: Fabric, lease_s: float) -> Registry:
        """The registry as it was last stored, leases with what is left of them; it stores from now on what changes."""
        registry = Registry(fabric, lease_s, Journal(self._write))
        try:
            registry.restore(self.database.read(partial(jobs.read_jobs, fabric)), self._clock.now_s())
        except jobs.ForeignJobError as error:
            raise StoreError(f"{self.database.name}: {error}") from error
        return registry

    def complete_from_s(self, lease_s: float) -> float:
        """From when on the registry knows all jobs that there are: after one lease where the database is new."""
        return self.database.write_now(partial(jobs.complete_from_s, self._clock.now_s() + lease_s))

    def warn_of_other(self, config: ControllerConfig) -> None:
        """Log where Plans are recorded that were decided under another configuration: of who leads, or led last."""
        body = self.database.read(partial(facts.newest, CONTROLLER))
        if body is not None and (differing := Setting.of(config).differing(body)):
            _LOG.warning(
                "the last plan was decided under another %s than is configured here; what leads next goes by its own",
                " and ".join(differing),
            )

    def profiles(self, routing: Routing) -> StoredProfiles:
        """What was measured of jobs on a fabric, and keeps what is."""
        return StoredProfiles(self.database, routing)

    def recorder(self, config: ControllerConfig, policy: Policy, routing: Routing) -> Recorder:
        """What records the decisions of a controller, and knows the last one of the controller before it."""
        return Recorder(self.database, self.trail, Setting.of(config), policy, routing, config.record, self._clock)

    async def close(self) -> None:
        """Close the database, once all that waits is written, or does not get written in time."""
        await self.trail.close()
        self.database.close()

    async def _write(self, changes: Sequence[Change]) -> None:
        await self.database.write(partial(jobs.write_changes, changes))
