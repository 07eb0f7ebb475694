"""Leases do not end while calls that may renew them have come and are not served."""

import asyncio

from controller.planning.context import PlannerContext
from controller.planning.directives import DirectivePublisher
from controller.planning.planner import Planner
from controller.planning.snapshots import Snapshots
from controller.registry.attendance import Attendance
from controller.registry.registry import Registry
from controller.registry.requests import JobRequest
from controller.southbound.recording import RecordingSouthbound
from experiments.scenarios.driven.clock import DrivenClock
from policies.job import Profile
from policies.registry import find_policy
from tests.controller.conftest import LEASE_S
from topologies.routing import Routing


def job(name: str) -> JobRequest:
    return JobRequest(name, ("h0", "h2"), 2, Profile(1.0, 0.5, 1.0))


def planner(registry: Registry, routing: Routing, clock: DrivenClock, attendance: Attendance) -> Planner:
    return Planner(
        PlannerContext(
            registry=registry,
            snapshots=Snapshots(registry, routing, num_levels=8, seed=1),
            routing=routing,
            policy=find_policy("ecmp"),
            southbound=RecordingSouthbound(),
            directives=DirectivePublisher(registry),
            clock=clock,
            attendance=attendance,
        )
    )


def test_what_came_before_the_oldest_waiting_call_is_served() -> None:
    clock, held_s = DrivenClock(), 0.0
    attendance = Attendance(clock, lambda: held_s)
    clock.advance_to(1.0)
    with attendance.call():
        clock.advance_to(2.0)
        with attendance.call():
            clock.advance_to(3.0)
            assert attendance.served_until_s() == 1.0
    assert attendance.served_until_s() == 3.0
    held_s = 0.5
    assert attendance.served_until_s() == 2.5


def test_a_call_that_fails_waits_no_longer() -> None:
    clock = DrivenClock()
    attendance = Attendance(clock)
    try:
        with attendance.call():
            raise ValueError
    except ValueError:
        pass
    clock.advance_to(7.0)
    assert attendance.served_until_s() == 7.0


def test_a_lease_that_a_waiting_heartbeat_will_renew_does_not_end(registry: Registry, routing: Routing) -> None:
    clock = DrivenClock()
    attendance = Attendance(clock)

    async def scenario() -> None:
        planning = planner(registry, routing, clock, attendance)
        registry.register_job(job("alive"), 0.0)
        registry.register_job(job("dead"), 0.0)
        clock.advance_to(LEASE_S - 1)
        with attendance.call():
            # It came in time, and is not served for longer than the lease.
            clock.advance_to(3 * LEASE_S)
            await planning.settle()
            assert "alive" in registry
            registry.renew("alive", clock.now_s())
        await planning.settle()
        assert "alive" in registry
        assert "dead" not in registry

    asyncio.run(scenario())


def test_time_in_which_the_loop_stood_still_counts_against_nobody(registry: Registry, routing: Routing) -> None:
    clock, held_s = DrivenClock(), 0.0
    attendance = Attendance(clock, lambda: held_s)

    async def scenario() -> None:
        nonlocal held_s
        planning = planner(registry, routing, clock, attendance)
        for name in ("a", "b"):
            registry.register_job(job(name), 0.0)
        # The loop has stood still for twice the lease, and the planner is the first to run again.
        clock.advance_to(2 * LEASE_S + 1)
        held_s = 2 * LEASE_S
        await planning.settle()
        assert "a" in registry
        # Then the watchdog notes it, before the heartbeats that wait are served.
        held_s = 0.0
        registry.extend_leases(2 * LEASE_S)
        await planning.settle()
        registry.renew("a", clock.now_s())
        clock.advance_to(3 * LEASE_S)
        await planning.settle()
        assert "a" in registry
        assert "b" not in registry

    asyncio.run(scenario())


def test_many_leases_that_end_at_once_end_in_slices(registry: Registry, routing: Routing) -> None:
    clock = DrivenClock()
    others = 0

    async def scenario() -> None:
        nonlocal others
        planning = planner(registry, routing, clock, Attendance(clock))
        for number in range(1_000):
            registry.register_job(job(f"job-{number}"), 0.0)
        clock.advance_to(LEASE_S)

        async def count() -> None:
            nonlocal others
            while "job-999" in registry:
                others += 1
                await asyncio.sleep(0)

        await asyncio.gather(planning.settle(), count())

    asyncio.run(scenario())
    assert registry.jobs == ()
    assert others >= 5
