"""The client returns at once, registers everything again after every loss, and never fails a job."""

import asyncio
import inspect
import textwrap
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from experiments.scenarios.driven.clock import DrivenClock
from hostlib.client import Client
from hostlib.errors import RefusalReason
from hostlib.types import Directives, Flow, FlowGroup, Nic, Profile
from tests.hostlib.served import BERT, GPT, LEASE_S, RING, Served, served
from tests.patience import PATIENCE_S, until
from tests.ports import free_port
from topologies.addressing import TCP_PROTOCOL


def _run(scenario: Callable[[Served, Client], Awaitable[None]]) -> None:
    async def connected() -> None:
        async with served() as controller, Client(controller.address) as client:
            await asyncio.wait_for(scenario(controller, client), PATIENCE_S)

    asyncio.run(connected())


def test_the_snippet_in_the_docstring_runs(capsys: pytest.CaptureFixture[str]) -> None:
    async def scenario(controller: Served, _: Client) -> None:
        snippet = inspect.cleandoc(Client.__doc__ or "").split("::\n\n", 1)[1].partition("\n\nCalls that report")[0]
        code, _, run = textwrap.dedent(snippet).rpartition("\n\n")
        assert run == "asyncio.run(main())"
        namespace: dict[str, Any] = {}
        exec(code.replace("controller:4790", controller.address), namespace)
        following = asyncio.create_task(namespace["main"]())
        while "Path(nodes=('h0'" not in (output := capsys.readouterr().out):
            assert output == ""
            await asyncio.sleep(0.01)
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)

    _run(scenario)


def test_what_is_said_is_registered_and_answered() -> None:
    async def scenario(controller: Served, client: Client) -> None:
        client.register_job(GPT)
        client.register_flow_groups("gpt", [RING])
        assert await client.acknowledged("gpt", PATIENCE_S)
        (job,) = controller.registry.jobs
        assert [group.name for group in job.flow_groups] == ["ring"]
        assert [flow.source_port for flow in client.five_tuples("gpt")["ring"]] == [49152, 49152]
        async for directives in client.directives("gpt"):
            if directives.flows:
                break
        assert client.newest_directives("gpt") is directives
        assert [(flow.flow_group, flow.flow, flow.source_port) for flow in directives.flows] == [
            ("ring", 0, 49152),
            ("ring", 1, 49152),
        ]

    _run(scenario)


def test_same_twice_is_once_and_another_under_its_name_is_refused_at_once() -> None:
    async def scenario(controller: Served, client: Client) -> None:
        for _ in range(2):
            client.register_job(GPT)
            client.register_flow_groups("gpt", [RING])
        assert await client.acknowledged("gpt", PATIENCE_S)
        assert len(controller.registry.jobs) == 1
        with pytest.raises(ValueError, match="another job is registered as 'gpt'"):
            client.register_job(replace(GPT, gpus=8))
        with pytest.raises(ValueError, match="another flow group 'ring'"):
            client.register_flow_groups("gpt", [replace(RING, flows=RING.flows[:1])])
        with pytest.raises(ValueError, match="job 'bert' is not registered"):
            client.register_flow_groups("bert", [RING])

    _run(scenario)


def test_later_groups_profiles_and_instances_arrive() -> None:
    async def scenario(controller: Served, client: Client) -> None:
        client.register_job(GPT)
        assert await client.acknowledged("gpt", PATIENCE_S)
        measured = Profile(compute_s=2.0, comm_start=0.25, work=32.0)
        client.register_flow_groups("gpt", [RING])
        client.report_profile("gpt", measured)
        client.start_flow_groups("gpt", ["ring"], iteration=7)
        assert await client.acknowledged("gpt", PATIENCE_S)
        (job,) = controller.registry.jobs
        assert job.request.profile.work == 32.0
        assert [group.name for group in job.flow_groups] == ["ring"]
        assert controller.registry.instances("gpt")["ring"].iteration == 7
        with pytest.raises(ValueError, match="no flow group 'reduce'"):
            client.start_flow_groups("gpt", ["reduce"], iteration=8)

    _run(scenario)


def test_everything_is_registered_again_at_a_controller_that_knows_nothing() -> None:
    async def restarted() -> None:
        async with served(f"127.0.0.1:{free_port()}") as first:
            address, clock = first.address, DrivenClock()
            client = Client(address, clock=clock)
            await client.__aenter__()
            client.register_job(GPT)
            over_tcp = replace(RING.flows[0], tcp_port=40_000)
            client.register_flow_groups("gpt", [FlowGroup("other", (RING.flows[0], over_tcp))])
            assert await client.acknowledged("gpt", PATIENCE_S)
            client.register_flow_groups("gpt", [RING])
            assert await client.acknowledged("gpt", PATIENCE_S)
            before = client.five_tuples("gpt")
        await asyncio.wait_for(client.lost("gpt"), PATIENCE_S)
        clock.advance_to(2.0)
        client.report_profile("gpt", replace(GPT.profile, work=1.0))
        assert not await client.acknowledged("gpt", 0.2)
        async with served(address) as second:
            # The ports of another order of registration would differ.
            assert await client.acknowledged("gpt", PATIENCE_S)
            assert client.five_tuples("gpt") == before
            (job,) = second.registry.jobs
            assert job.arrival_s == -2.0  # by the clock of the second controller, which stands at 0
            assert {group.name: [flow.five_tuple.source_port for flow in group.flows] for group in job.flow_groups} == {
                "other": [49152, 49152],
                "ring": [49153, 49152],
            }
            assert job.flow_groups[0].flows[1].five_tuple.service == (TCP_PROTOCOL, 40_000)
            assert job.request.profile.work == 1.0
            await client.close()

    asyncio.run(asyncio.wait_for(restarted(), PATIENCE_S))


def test_without_a_controller_calls_return_and_say_that_nothing_is_known() -> None:
    async def scenario() -> None:
        async with Client("127.0.0.1:1") as client:
            client.register_job(GPT)
            client.register_flow_groups("gpt", [RING])
            client.start_flow_groups("gpt", ["ring"], iteration=0)
            client.report_profile("gpt", GPT.profile)
            assert not await client.acknowledged("gpt", 0.2)
            assert client.five_tuples("gpt") == {}
            assert client.newest_directives("gpt") is None
            assert client.refusal("gpt") is None
            client.deregister("gpt")
            client.deregister("gpt")

    asyncio.run(asyncio.wait_for(scenario(), PATIENCE_S))


def test_a_refused_job_is_told_why_and_recovers_when_the_cause_is_gone() -> None:
    async def scenario(controller: Served, client: Client) -> None:
        async with Client(controller.address) as other:
            other.register_job(replace(GPT, gpus=8))
            assert await other.acknowledged("gpt", PATIENCE_S)
            client.register_job(GPT)
            assert not await client.acknowledged("gpt", PATIENCE_S)
            refusal = client.refusal("gpt")
            assert refusal is not None
            assert refusal.reason is RefusalReason.NOT_OWNER
            other.deregister("gpt")
            await until(lambda: client.refusal("gpt") is None)
        assert controller.registry.jobs[0].request.gpus == 16

    _run(scenario)


def test_a_job_that_deregisters_is_gone_and_its_stream_ends() -> None:
    async def scenario(controller: Served, client: Client) -> None:
        client.register_job(GPT)
        client.register_flow_groups("gpt", [RING])
        stream = client.directives("gpt")
        assert isinstance(await anext(stream), Directives)
        client.deregister("gpt")
        async for _ in stream:
            pass
        assert controller.registry.jobs == ()

    _run(scenario)


def test_two_jobs_of_one_client_do_not_disturb_each_other() -> None:
    async def scenario(_: Served, client: Client) -> None:
        client.register_job(GPT)
        client.register_job(BERT)
        bad = FlowGroup("bad", (Flow(Nic("h1"), Nic("h3", index=7), 1),))
        client.register_flow_groups("bert", [bad])
        client.register_flow_groups("gpt", [RING])
        assert await client.acknowledged("gpt", PATIENCE_S)
        assert not await client.acknowledged("bert", PATIENCE_S)
        assert "flow_groups[0].flows[0].destination.nic" in str(client.refusal("bert"))
        assert client.refusal("gpt") is None

    _run(scenario)


def test_leases_are_renewed_by_the_clock_that_drives_the_client() -> None:
    async def scenario() -> None:
        clock = DrivenClock()
        async with served(clock=clock, plans_by_itself=False) as controller:
            async with Client(controller.address, clock=clock) as client:
                client.register_job(GPT)
                assert await client.acknowledged("gpt", PATIENCE_S)
                for step in range(1, 10):
                    clock.advance_to(step * LEASE_S / 2)
                    assert await client.acknowledged("gpt", PATIENCE_S)
                    await controller.planner.settle()
                    assert len(controller.registry.jobs) == 1
            clock.advance_to(6 * LEASE_S)
            await controller.planner.settle()
            assert controller.registry.jobs == ()

    asyncio.run(asyncio.wait_for(scenario(), PATIENCE_S))
