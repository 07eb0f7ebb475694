"""Instances of flow groups: from the job that starts them to the Snapshot that a policy decides on."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from experiments.scenarios.driven.clock import DrivenClock
from hostlib.client import Client
from hostlib.types import FlowGroup, GroupInstance
from policies.enforcement import Cadence
from policies.snapshot import OpenGroup
from tests.hostlib.served import GPT, RING, Served, served
from tests.patience import PATIENCE_S

_TREE = FlowGroup("tree", RING.flows[:1])


def _run(cadence: Cadence, scenario: Callable[[Served, Client, DrivenClock], Awaitable[None]]) -> None:
    async def connected() -> None:
        clock = DrivenClock()
        async with (
            served(clock=clock, plans_by_itself=False, cadence=cadence) as controller,
            Client(controller.address) as client,
        ):
            client.register_job(GPT)
            client.register_flow_groups("gpt", [RING, _TREE])
            await asyncio.wait_for(scenario(controller, client, clock), PATIENCE_S)

    asyncio.run(connected())


async def _open_groups(controller: Served, client: Client) -> tuple[OpenGroup, ...]:
    assert await client.acknowledged("gpt", PATIENCE_S)
    await controller.planner.settle()
    assert controller.planner.decision is not None
    return controller.planner.decision.snapshot.open_groups


def test_a_policy_at_the_cadence_of_groups_decides_on_what_is_under_way() -> None:
    async def scenario(controller: Served, client: Client, clock: DrivenClock) -> None:
        assert await _open_groups(controller, client) == ()
        clock.advance_to(3.0)
        client.start_flow_groups("gpt", ["ring", "tree"], iteration=7)
        assert await _open_groups(controller, client) == (
            OpenGroup("gpt", "ring", 7, reference_s=3.0, remaining_bytes=2e9),
            OpenGroup("gpt", "tree", 7, reference_s=3.0, remaining_bytes=1e9),
        )
        clock.advance_to(4.0)
        client.end_flow_groups("gpt", ["ring"], iteration=7)
        assert [(group.group, group.reference_s) for group in await _open_groups(controller, client)] == [("tree", 3.0)]
        # The next iteration ends the one before it.
        client.start_flow_groups("gpt", ["tree"], iteration=8)
        (group,) = await _open_groups(controller, client)
        assert (group.iteration, group.reference_s) == (8, 4.0)
        client.deregister("gpt")

    _run(Cadence.GROUP_EVENT, scenario)


def test_other_policies_are_not_woken_by_instances_and_see_them_when_they_decide() -> None:
    async def scenario(controller: Served, client: Client, _: DrivenClock) -> None:
        await _open_groups(controller, client)
        client.start_flow_groups("gpt", ["ring"], iteration=0)
        assert await _open_groups(controller, client) == ()
        controller.planner.mark_changed()
        assert [group.group for group in await _open_groups(controller, client)] == ["ring"]

    _run(Cadence.JOB_EVENT, scenario)


@pytest.mark.parametrize(
    "late", [GroupInstance(6), GroupInstance(6, has_ended=True), GroupInstance(7)], ids=["start", "end", "repeated"]
)
def test_what_comes_late_or_twice_changes_nothing(late: GroupInstance) -> None:
    async def scenario(controller: Served, client: Client, clock: DrivenClock) -> None:
        client.start_flow_groups("gpt", ["ring"], iteration=7)
        before = await _open_groups(controller, client)
        number = controller.planner.decision.number if controller.planner.decision else 0
        clock.advance_to(1.0)
        tell = client.end_flow_groups if late.has_ended else client.start_flow_groups
        tell("gpt", ["ring"], late.iteration)
        assert await _open_groups(controller, client) == before
        assert controller.planner.decision is not None
        assert controller.planner.decision.number == number

    _run(Cadence.GROUP_EVENT, scenario)
