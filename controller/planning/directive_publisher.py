"""Publishes directives to jobs that follow them."""

import asyncio
from collections.abc import AsyncIterator, Mapping

from controller.planning.decision import JobDirectives
from controller.registry.registry import Registry


class DirectivePublisher:
    """The newest directives by job; a slow follower misses older ones, but never the newest."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._newest: Mapping[str, JobDirectives] = {}
        self._published = asyncio.Condition()

    async def publish(self, newest: Mapping[str, JobDirectives]) -> None:
        """Replace the directives of all jobs."""
        async with self._published:
            self._newest = newest
            self._published.notify_all()

    async def follow(self, job: str) -> AsyncIterator[JobDirectives]:
        """Yield a job's directives as soon as there are any, then newer ones, until a Plan without the job.

        Directives for an earlier job of the same name are left out.
        """
        arrival_s = self._registry.arrival_s(job)
        directives: JobDirectives | None = None
        while (directives := await self._next(job, arrival_s, directives)) is not None:
            yield directives

    async def _next(self, job: str, arrival_s: float | None, seen: JobDirectives | None) -> JobDirectives | None:
        def newest() -> JobDirectives | None:
            directives = self._newest.get(job)
            return directives if directives is not None and directives.arrival_s == arrival_s else None

        def is_new() -> bool:
            has_gone = self._registry.arrival_s(job) != arrival_s
            return newest() is not seen or (seen is None and has_gone)

        async with self._published:
            await self._published.wait_for(is_new)
            return newest()
