"""The store of a rehearsal: it reads what a controller would begin with, and writes nothing."""

from collections.abc import Sequence
from typing import Self

from controller.clock import Clock
from controller.config import ControllerConfig
from controller.errors import StoreError
from controller.planning.context import PlanRecorder
from controller.registry.journal import Change, JobChange
from controller.store.database import Database
from controller.store.migration import Access, stored_version
from controller.store.schema import SCHEMA_VERSION
from controller.store.store import Store
from policies.plan import Plan
from policies.policy import Policy
from policies.snapshot import Snapshot
from topologies.routing import Routing


class RehearsalStore(Store):
    """A Store that keeps nothing: what would be written is forgotten."""

    @classmethod
    def open(cls, address: str, clock: Clock) -> Self:
        """Open the store at an address as it is. Raises StoreError where it is missing, or of an older version."""
        database = Database.open(address, Access.READ)
        version = database.read(stored_version)
        if version != SCHEMA_VERSION:
            database.close()
            raise StoreError(
                f"{database.name}: its schema has version {version}, and a dry run does not upgrade it to"
                f" {SCHEMA_VERSION} as a controller does at its start"
            )
        return cls(database, clock)

    def recorder(self, config: ControllerConfig, policy: Policy, routing: Routing) -> PlanRecorder:  # type: ignore[override]
        """A recorder that knows the last Plan, and records none."""
        last = super().recorder(config, policy, routing)
        return _Forgetting(last.number, last.plan)

    async def _write(self, changes: Sequence[Change]) -> None:
        """Write nothing."""

    async def _stage(self, change: JobChange, first: int) -> int:  # noqa: ARG002
        """Write nothing."""
        return first


class _Forgetting:
    """See PlanRecorder."""

    def __init__(self, number: int, plan: Plan | None) -> None:
        self.number = self.recorded_number = number
        self.plan = plan

    def begin_plan(self, number: int) -> None:
        """See PlanRecorder."""

    def record(self, number: int, snapshot: Snapshot, plan: Plan) -> None:
        """See PlanRecorder."""

    async def flush(self) -> None:
        """See PlanRecorder."""
