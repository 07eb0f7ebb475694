"""The board on which every job finds the newest of its directives."""

import asyncio
from collections.abc import AsyncIterator, Container, Mapping

from controller.decision import JobDirectives


class DirectiveBoard:
    """Newest directives by job; a reader that is slow misses older ones, never the newest."""

    def __init__(self, registered_jobs: Container[str]) -> None:
        self._registered_jobs = registered_jobs
        self._newest: Mapping[str, JobDirectives] = {}
        self._published = asyncio.Condition()

    async def publish(self, newest: Mapping[str, JobDirectives]) -> None:
        """Replace the directives of all jobs."""
        async with self._published:
            self._newest = newest
            self._published.notify_all()

    async def follow(self, job: str) -> AsyncIterator[JobDirectives]:
        """A job's directives as soon as there are any, then every newer ones, until a plan without the job."""
        directives = await self._next(job, None)
        while directives is not None:
            yield directives
            directives = await self._next(job, directives)

    async def _next(self, job: str, seen: JobDirectives | None) -> JobDirectives | None:
        def is_news() -> bool:
            newest = self._newest.get(job)
            return newest is not seen or (newest is None and job not in self._registered_jobs)

        async with self._published:
            await self._published.wait_for(is_news)
            return self._newest.get(job)
