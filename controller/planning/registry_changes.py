"""What planning changes in the registry: leases that end, and source ports. The database commits it."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from controller.background import in_slices
from controller.metrics import LEASES_ENDED
from controller.registry.attendance import Attendance
from controller.registry.errors import CommitError
from controller.registry.registry import Registry
from policies.flows import FlowKey
from topologies.addressing import FiveTuple

_LOG = logging.getLogger(__name__)

_ENDED_AT_ONCE = 100
_PORTS_AT_ONCE = 2_000
"""Giving back this many source ports takes one or two milliseconds."""
_COMMIT_LIMIT_S = 0.25
"""How long a Plan waits for the database."""


def _nothing() -> None:
    pass


class RegistryChanges:
    """Changes a registry for a planner, which hears of each by ``mark_changed`` once it is committed."""

    def __init__(self, registry: Registry, attendance: Attendance, mark_changed: Callable[[], None]) -> None:
        self._registry = registry
        self._attendance = attendance
        self._mark_changed = mark_changed

    async def end_leases(self) -> None:
        """End the leases that no call in progress can renew any more. Raises CommitError; the jobs stay then."""
        served_until_s, all_ended = self._attendance.served_until_s(), list[str]()
        while ended := self._registry.expire(served_until_s, _ENDED_AT_ONCE):
            all_ended += ended
            await asyncio.sleep(0)
        if all_ended and await self._commit_in_time(partial(self._tell_ended, all_ended)):
            self._mark_changed()

    async def free_ports(self) -> None:
        """Give back the source ports of jobs that have left."""
        await in_slices(self._registry.releasing(), _PORTS_AT_ONCE)

    async def change_source_ports(self, five_tuples: Mapping[FlowKey, FiveTuple]) -> frozenset[FlowKey]:
        """Change the source ports of flows; returns the flows whose new ports are committed in time."""
        if not five_tuples:
            return frozenset()
        changed = frozenset(self._registry.change_source_ports(five_tuples))
        try:
            return changed if changed and await self._commit_in_time() else frozenset()
        except CommitError as error:
            _LOG.warning("source ports stay as they are: %s", error)
            return frozenset()

    def _tell_ended(self, jobs: Sequence[str]) -> None:
        LEASES_ENDED.inc(len(jobs))
        self._registry.log.ended(jobs)

    async def _commit_in_time(self, then: Callable[[], None] = _nothing) -> bool:
        """Commit changes; returns False where that takes too long for this Plan, and marks a change when it is done.

        ``then`` is called once they are committed. Raises CommitError.
        """
        committed = self._registry.commit()

        async def commit() -> None:
            await committed
            then()

        committing = asyncio.ensure_future(commit())
        try:
            await asyncio.wait((committing,), timeout=_COMMIT_LIMIT_S)
        finally:
            if not committing.done():
                committing.add_done_callback(self._on_late_commit)
        if committing.done():
            committing.result()
        return committing.done()

    def _on_late_commit(self, committing: "asyncio.Future[None]") -> None:
        if not committing.cancelled() and committing.exception() is None:
            self._mark_changed()
