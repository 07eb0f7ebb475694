"""What operators care about has one line each, of which there are not too many."""

import asyncio
import logging
from collections.abc import Iterator

import pytest

from controller import events
from controller.events import BurstLog, Event, EventKind, RecentEvents
from controller.planning.context import PlannerContext
from controller.planning.directives import DirectivePublisher
from controller.planning.planner import Planner
from controller.planning.snapshots import Snapshots
from controller.registry.registry import Registry
from controller.registry.requests import FlowGroupRequest, JobRequest
from controller.southbound.recording import RecordingSouthbound
from controller.store.database import Health
from experiments.scenarios.driven.clock import DrivenClock
from hostlib.connection import Connection
from policies.job import Profile
from policies.registry import find_policy
from tests.controller.access.secured import secured
from tests.hostlib.served import GPT
from tests.patience import PATIENCE_S, until
from topologies.routing import Routing


@pytest.fixture
def recent(monkeypatch: pytest.MonkeyPatch) -> Iterator[RecentEvents]:
    """The events of the controller's loggers from now on, with quick summaries."""
    monkeypatch.setattr(events, "_REFILL_S", 0.05)
    logger, handler = logging.getLogger("controller"), RecentEvents()
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield handler
    logger.removeHandler(handler)
    logger.setLevel(level)


def of(recent: RecentEvents, *kinds: EventKind) -> list[Event]:
    return [event for event in recent.since(0) if event.kind in kinds]


def test_a_burst_has_some_lines_and_then_one_with_how_many_more(recent: RecentEvents) -> None:
    async def burst() -> None:
        log = BurstLog(logging.getLogger("controller.test"), logging.WARNING)
        for number in range(1_000):
            log.tell(EventKind.JOB_ADMITTED, "job %d", number, job=str(number))
        log.tell(EventKind.JOB_WITHDRAWN, "gone", job="0")
        told = recent.newest_number
        await until(lambda: recent.newest_number > told)
        lines = [(event.kind, event.message) for event in recent.since(told)]
        assert lines == [
            (EventKind.JOB_ADMITTED, f"and {1_000 - told} more: job admitted"),
            (EventKind.JOB_WITHDRAWN, "and 1 more: job withdrawn"),
        ]
        assert 1 <= told < 100

    asyncio.run(burst())


def test_jobs_are_told_when_they_come_and_go_and_why(recent: RecentEvents) -> None:
    kinds = (EventKind.JOB_ADMITTED, EventKind.JOB_WITHDRAWN)

    async def come_and_go() -> None:
        async with secured() as controller, Connection(controller.address, "t", PATIENCE_S) as client:
            await client.register_job(GPT)
            await client.register_job(GPT)  # a renewal is no news
            await client.deregister("gpt")
            await client.deregister("gpt")

    asyncio.run(asyncio.wait_for(come_and_go(), PATIENCE_S))
    assert [(event.message, dict(event.fields)) for event in of(recent, *kinds)] == [
        ("job gpt: admitted: 16 GPUs on 2 hosts (h0, h2)", {"job": "gpt", "hosts": 2, "gpus": 16, "tenant": ""}),
        (
            "job gpt: withdrawn: deregistered by its client",
            {"job": "gpt", "why": "deregistered by its client"},
        ),
    ]


class Planned:
    """A planner over a registry, in time that the test moves."""

    def __init__(self, registry: Registry, routing: Routing) -> None:
        self.clock, self.registry = DrivenClock(), registry
        self.planner = Planner(
            PlannerContext(
                registry=registry,
                snapshots=Snapshots(registry, routing, 8, 1),
                routing=routing,
                policy=find_policy("crux"),
                southbound=RecordingSouthbound(),
                directives=DirectivePublisher(registry),
                clock=self.clock,
            )
        )

    async def settle(self) -> None:
        self.planner.mark_changed()
        await self.planner.settle()


def test_a_job_is_told_when_its_level_changes_and_when_its_lease_ends(
    recent: RecentEvents, registry: Registry, routing: Routing, job: JobRequest, ring: FlowGroupRequest
) -> None:
    planned = Planned(registry, routing)

    async def live() -> None:
        registry.register_job(job, 0.0)
        registry.register_flow_groups("gpt", [ring])
        await planned.settle()
        await planned.settle()  # nothing changes
        planned.clock.advance_to(1_000.0)
        await planned.settle()

    asyncio.run(live())
    first, *others = of(recent, EventKind.JOB_PLANNED, EventKind.JOB_WITHDRAWN)
    assert first.kind is EventKind.JOB_PLANNED
    assert (first.fields["job"], first.fields["plan"], first.fields["rank"]) == ("gpt", 1, 0)
    assert [event.message for event in others] == ["job gpt: withdrawn: its lease has ended"]


def test_a_thousand_jobs_at_once_are_few_lines(recent: RecentEvents, registry: Registry, routing: Routing) -> None:
    planned = Planned(registry, routing)

    async def live() -> None:
        for number in range(1_000):
            registry.register_job(JobRequest(f"j{number}", ("h0", "h2"), 1, Profile(1.0, 0.5, 1.0 + number)), 0.0)
        await planned.settle()
        await until(lambda: any("more" in event.fields for event in recent.since(0)))

    asyncio.run(live())
    told = of(recent, EventKind.JOB_PLANNED)
    assert len(told) < 100
    assert sum(int(event.fields.get("more") or 1) for event in told) == 1_000


def test_a_database_that_comes_and_goes_has_few_lines(recent: RecentEvents) -> None:
    async def flap() -> None:
        health = Health()
        for _ in range(1_000):
            health.report("database t.db: the disk is full")
            health.report("")

    asyncio.run(flap())
    for kind in (EventKind.DATABASE_AWAY, EventKind.DATABASE_BACK):
        assert 1 <= len(of(recent, kind)) < 200
