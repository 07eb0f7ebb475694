"""Directives: the part of a decision that each job carries out, and their publication to the jobs."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field

from controller.background import in_slices, run_planning
from controller.planning.decision import Decision
from controller.registry.registry import Registry
from policies.elastic import reliable_rates_bps
from policies.flows import FlowKey
from topologies.fabric import Path

_TOLD_AT_ONCE = 1


@dataclass(frozen=True, slots=True)
class FlowDirective:
    """The path, level, order and source port of one flow; the path is that of the hash where the Plan sets none.

    ``rate_bps`` is what it may count on, where its group can be compressed.
    """

    key: FlowKey
    path: Path
    level: int
    order: int
    source_port: int
    rate_bps: float | None = None


@dataclass(frozen=True, slots=True)
class JobDirectives:
    """A job's part of a Plan; ``arrival_s`` tells apart jobs of the same name.

    ``slacks_s`` has by flow group that can be compressed how long its last transfer may take.
    """

    plan_number: int
    arrival_s: float
    time_shift_s: float | None
    flows: tuple[FlowDirective, ...]
    slacks_s: Mapping[str, float] = field(default_factory=dict)


def directives_of(decision: Decision) -> Mapping[str, JobDirectives]:
    """The directives of a decision, by job."""
    plans = {job.name: job for job in decision.plan.jobs}
    rates_bps = reliable_rates_bps(decision.snapshot, decision.plan)
    return {
        job.name: JobDirectives(
            decision.number,
            job.arrival_s,
            plans[job.name].time_shift_s,
            tuple(
                FlowDirective(
                    flow.key,
                    plan.path or flow.hashed_path,
                    plan.level,
                    plan.order,
                    flow.five_tuple.source_port,
                    rates_bps.get(flow.key),
                )
                for flow in job.registered_flows
                for plan in (decision.plan.flows[flow.key],)
            ),
            {group.name: group.uncompressed.slack_s for group in job.flow_groups if group.uncompressed is not None},
        )
        for job in decision.snapshot.jobs
    }


class DirectivePublisher:
    """The newest directives by job; a slow follower misses older ones, but never the newest.

    Attributes:
        prepare: Is called in a thread with the directives of jobs that somebody follows, before they are told.
    """

    def __init__(self, registry: Registry) -> None:
        self.prepare: Callable[[Mapping[str, JobDirectives]], None] = _nothing
        self._registry = registry
        self._newest: Mapping[str, JobDirectives] = {}
        self._followers: dict[asyncio.Event, str] = {}

    @property
    def num_followers(self) -> int:
        """How many streams follow directives now."""
        return len(self._followers)

    async def publish(self, newest: Mapping[str, JobDirectives]) -> None:
        """Replace the directives of all jobs, and tell their followers, one after the other."""
        followed = {job: newest[job] for job in self._followers.values() if job in newest}
        await run_planning(self.prepare, followed)
        self._newest = newest
        await in_slices(map(asyncio.Event.set, tuple(self._followers)), _TOLD_AT_ONCE)

    async def follow(self, job: str) -> AsyncIterator[JobDirectives]:
        """Yield a job's directives as soon as there are any, then newer ones, until a Plan without the job.

        Directives for an earlier job of the same name are left out.
        """
        arrival_s = self._registry.arrival_s(job)
        directives: JobDirectives | None = None
        told = asyncio.Event()
        self._followers[told] = job
        try:
            while (directives := await self._next(job, arrival_s, directives, told)) is not None:
                yield directives
        finally:
            del self._followers[told]

    async def _next(
        self, job: str, arrival_s: float | None, seen: JobDirectives | None, told: asyncio.Event
    ) -> JobDirectives | None:
        while True:
            told.clear()
            newest = self._newest.get(job)
            if newest is not None and newest.arrival_s != arrival_s:
                newest = None
            has_gone = self._registry.arrival_s(job) != arrival_s
            if newest is not seen or (seen is None and has_gone):
                return newest
            await told.wait()


def _nothing(_: Mapping[str, JobDirectives]) -> None:
    pass
