"""A large request to register flow groups is handled in slices, in which other calls are answered."""

import asyncio
from collections.abc import Awaitable

import pytest

from controller.api import group_registrations
from controller.api.group_registrations import FLOWS_AT_ONCE, GroupRegistrations, assignments
from controller.registry.errors import ExhaustedError, InvalidFieldError, NotOwnerError, UnknownJobError
from controller.registry.registry import Registry
from controller.registry.requests import JobRequest
from hostlib.wire import trainyard_pb2 as wire
from policies.job import Profile

HOSTS = ("h0", "h2")


def request(job: str, groups: int, flows: int, first: int = 0) -> wire.RegisterFlowGroupsRequest:
    flow = wire.Flow(source=wire.Nic(host="h0"), destination=wire.Nic(host="h2"), size_bytes=1)
    names = [f"group-{number}" for number in range(first, first + groups)]
    return wire.RegisterFlowGroupsRequest(
        job=job, flow_groups=[wire.FlowGroup(name=name, flows=[flow] * flows) for name in names]
    )


@pytest.fixture
def filled(registry: Registry) -> Registry:
    for name in ("a", "b"):
        registry.register_job(JobRequest(name, HOSTS, 2, Profile(1.0, 0.5, 1.0)), 0.0)
    return registry


async def passes_of(work: Awaitable[object]) -> int:
    """How often others had the event loop until the work was done."""
    count = 0

    async def others() -> None:
        nonlocal count
        while True:
            count += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(others())
    await work
    counting.cancel()
    return count


@pytest.mark.parametrize(("groups", "flows"), [(20, 200), (1, 4000), (4000, 1)])
def test_others_use_the_event_loop_between_slices(filled: Registry, groups: int, flows: int) -> None:
    async def scenario() -> int:
        return await passes_of(GroupRegistrations(filled).register(request("a", groups, flows)))

    # Each flow is read, and registered.
    assert asyncio.run(scenario()) >= 2 * groups * flows // FLOWS_AT_ONCE
    registered = filled.job("a")
    assert registered is not None
    assert sum(len(group.flows) for group in registered.flow_groups) == groups * flows


def test_answers_are_written_in_slices(filled: Registry) -> None:
    async def scenario() -> None:
        _, groups = await GroupRegistrations(filled).register(request("a", 1, 3000))
        answer = None

        async def write() -> None:
            nonlocal answer
            answer = await assignments(groups)

        assert await passes_of(write()) >= 3000 // FLOWS_AT_ONCE
        assert answer is not None
        assert len(answer.flow_groups[0].five_tuples) == 3000

    asyncio.run(scenario())


def test_registrations_of_a_job_come_one_after_the_other(filled: Registry) -> None:
    async def scenario() -> list[tuple[bool, object]]:
        registrations = GroupRegistrations(filled)
        wanted = (request("a", 10, 100), request("a", 10, 100), request("a", 10, 100, first=5))
        return list(await asyncio.gather(*map(registrations.register, wanted)))

    first, same, more = asyncio.run(scenario())
    assert (first[0], same[0], more[0]) == (True, False, True)
    assert first[1] == same[1]
    registered = filled.job("a")
    assert registered is not None
    assert [group.name for group in registered.flow_groups] == [f"group-{number}" for number in range(15)]
    five_tuples = [five_tuple for _, five_tuple in registered.five_tuples]
    assert len(set(five_tuples)) == len(five_tuples) == 1500


def test_a_call_that_is_given_up_leaves_nothing_behind(filled: Registry) -> None:
    async def scenario() -> None:
        registrations = GroupRegistrations(filled)
        given_up = asyncio.create_task(registrations.register(request("a", 10, 1000)))
        for _ in range(10_000 // FLOWS_AT_ONCE + 10):
            await asyncio.sleep(0)
        assert len(filled._state.source_ports) > 0
        given_up.cancel()
        with pytest.raises(asyncio.CancelledError):
            await given_up
        assert len(filled._state.source_ports) == 0
        assert (await registrations.register(request("a", 1, 1)))[0]

    asyncio.run(scenario())


def test_a_job_that_leaves_during_its_registration_gets_no_groups(filled: Registry) -> None:
    async def scenario() -> None:
        registering = asyncio.create_task(GroupRegistrations(filled).register(request("a", 1, 2000)))
        await asyncio.sleep(0)
        filled.deregister("a")
        with pytest.raises(UnknownJobError):
            await registering
        assert len(filled._state.source_ports) == 0

    asyncio.run(scenario())


def test_a_request_with_too_many_groups_is_refused_unread(filled: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_registrations, "MAX_FLOWS_PER_JOB", 10)
    monkeypatch.setattr(group_registrations, "reading_flow_groups", None)
    with pytest.raises(InvalidFieldError, match="room for 10 flows"):
        asyncio.run(GroupRegistrations(filled).register(request("a", 11, 0)))


def test_a_job_that_became_anothers_while_its_turn_came_gets_nothing(filled: Registry) -> None:
    filled.register_job(JobRequest("c", HOSTS, 2, Profile(1.0, 0.5, 1.0)), 0.0, "t", tenant="vision")

    async def scenario() -> None:
        def authorise() -> None:
            filled.authorise("c", "t", "vision")

        registering = asyncio.create_task(GroupRegistrations(filled).register(request("c", 1, 2000), authorise))
        await asyncio.sleep(0)
        filled.deregister("c")
        filled.register_job(JobRequest("c", HOSTS, 2, Profile(1.0, 0.5, 1.0)), 0.0, "t", tenant="speech")
        with pytest.raises(NotOwnerError, match="another tenant"):
            await registering
        job = filled.job("c")
        assert job is not None
        assert not job.flow_groups

    asyncio.run(scenario())


def test_flows_of_which_there_are_too_many_are_refused_unread(filled: Registry) -> None:
    async def scenario() -> int:
        async def refused() -> None:
            many = wire.FlowGroup(name="many", flows=[wire.Flow()] * 100_001)
            with pytest.raises(ExhaustedError, match="room for 100,000 flows"):
                await GroupRegistrations(filled).register(wire.RegisterFlowGroupsRequest(job="a", flow_groups=[many]))

        return await passes_of(refused())

    assert asyncio.run(scenario()) < 10
