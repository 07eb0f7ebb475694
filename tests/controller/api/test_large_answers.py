"""Plans and directives that are larger than any message arrive whole."""

import asyncio
from dataclasses import replace

import pytest

from hostlib.messages import MAX_MESSAGE_BYTES, flow_group_to_wire
from hostlib.types import Flow, FlowGroup, Nic
from tests.driven import DrivenConnection
from tests.hostlib.served import GPT, served
from tests.patience import PATIENCE_S

_NUM_GROUPS, _FLOWS_PER_GROUP = 40, 600


@pytest.mark.slow
def test_a_plan_and_directives_of_many_mebibytes_come_in_pages() -> None:
    async def scenario() -> None:
        there, back = Flow(Nic("h0"), Nic("h2"), 10**9), Flow(Nic("h2"), Nic("h0"), 10**9)
        groups = [
            FlowGroup(f"group-{number}", (there, back) * (_FLOWS_PER_GROUP // 2)) for number in range(_NUM_GROUPS)
        ]
        async with (
            served(plans_by_itself=False) as controller,
            DrivenConnection(controller.address, deadline_s=PATIENCE_S) as client,
        ):
            await client.register_job(GPT)
            five_tuples = await client.register_flow_groups("gpt", groups)
            assert len({five_tuple for group in five_tuples.values() for five_tuple in group}) == 24_000
            await client.settle()
            plan = await client.plan()
            assert [(flow.flow_group, flow.flow) for flow in plan.flows] == [
                (group.name, number) for group in groups for number in range(_FLOWS_PER_GROUP)
            ]
            assert [flow.five_tuple for flow in plan.flows] == [
                five_tuple for group in groups for five_tuple in five_tuples[group.name]
            ]
            directives = await anext(client.directives("gpt"))
            assert [flow.path for flow in directives.flows] == [flow.path for flow in plan.flows]
            # Each flow of a plan takes more than 200 bytes: one message could not have held it.
            assert 200 * len(plan.flows) > MAX_MESSAGE_BYTES

    asyncio.run(asyncio.wait_for(scenario(), PATIENCE_S))


@pytest.mark.slow
def test_a_registration_of_many_mebibytes_is_sent_in_several() -> None:
    async def scenario() -> None:
        flow = Flow(Nic("h0"), Nic("h2"), 1 << 40)
        groups = [FlowGroup(f"{'g' * 250}-{number}", (flow,)) for number in range(16_000)]
        assert sum(flow_group_to_wire(group).ByteSize() for group in groups) > MAX_MESSAGE_BYTES
        async with (
            served(plans_by_itself=False) as controller,
            DrivenConnection(controller.address, deadline_s=PATIENCE_S) as client,
        ):
            await client.register_job(replace(GPT, name="large"))
            five_tuples = await client.register_flow_groups("large", groups)
            assert list(five_tuples) == [group.name for group in groups]
            assert len(controller.registry.jobs[0].flow_groups) == len(groups)

    asyncio.run(asyncio.wait_for(scenario(), PATIENCE_S))
