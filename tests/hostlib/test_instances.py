"""Instances of flow groups: from the job that starts them to the Snapshot that a policy decides on."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from experiments.scenarios.driven.clock import DrivenClock
from hostlib.client import Client
from hostlib.types import FlowGroup, GroupInstance, Sent
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


def test_what_a_job_sends_now_is_decided_on_and_directed_while_its_dense_size_stays_known() -> None:
    async def scenario(controller: Served, client: Client, _: DrivenClock) -> None:
        await _open_groups(controller, client)
        dense = controller.planner.snapshot
        assert dense is not None
        client.start_flow_groups("gpt", ["ring"], iteration=0, sent={"ring": Sent(200_000_000, "Dense does not fit")})
        await _open_groups(controller, client)
        now = controller.planner.snapshot
        assert now is not None
        (before,), (job,) = dense.jobs, now.jobs
        (ring, tree), (ring_before, tree_before) = job.flow_groups, before.flow_groups
        assert sum(flow.size_bytes for flow in ring.flows) == pytest.approx(200_000_000)
        assert ring.uncompressed is not None
        assert ring.uncompressed.size_bytes == 2_000_000_000
        assert [flow.size_bytes for flow in tree.flows] == [flow.size_bytes for flow in tree_before.flows]
        assert ring_before.uncompressed is None
        directives = client.newest_directives("gpt")
        while directives is None or not directives.slacks_s:
            await asyncio.sleep(0.01)
            directives = client.newest_directives("gpt")
        of_group = {flow.flow_group: flow.rate_bps for flow in directives.flows}
        assert of_group["ring"] is not None
        assert of_group["ring"] > 0
        assert of_group["tree"] is None
        assert directives.slacks_s.keys() == {"ring"}
        # The end of an iteration, and the next one without a word, change nothing of it.
        decided = controller.planner.decision
        client.end_flow_groups("gpt", ["ring"], iteration=0)
        client.start_flow_groups("gpt", ["ring"], iteration=1)
        await _open_groups(controller, client)
        assert controller.planner.decision is decided
        # All again.
        client.start_flow_groups("gpt", ["ring"], iteration=2, sent={"ring": Sent(2_000_000_000)})
        await _open_groups(controller, client)
        assert controller.planner.snapshot is not None
        assert [flow.size_bytes for flow in controller.planner.snapshot.jobs[0].flows] == [
            flow.size_bytes for flow in before.flows
        ]

    _run(Cadence.JOB_EVENT, scenario)
