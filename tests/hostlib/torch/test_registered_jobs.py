"""What the controller knows of a real job: all that it sends, for as long as its process groups are there."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from controller.registry.jobs import RegisteredJob
from policies.transfers import Transfers
from tests.hostlib.torch.jobs import Fabric, Ranks, fabric, ranks
from tests.hostlib.torch.programs import pipeline
from tests.patience import PATIENCE_S, until

pytestmark = pytest.mark.slow

STOPPING_BYTES = 2 * 4 // 2
"""Of the all-reduce by which the ranks of a program agree to stop, in a ring of two."""
STORE_ENDED = ("recvValue failed", "Exception raised from recvBytes", "frame #", "<omitting python frames>")
"""The page that PyTorch prints about a call whose store ends meanwhile: nobody knows when another rank ends it."""
DDP_PARAMETERS = 3 * (64 * 64 + 64)
PACE = ("--pace-s", "0.02")


def run(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(scenario(), PATIENCE_S))


def sent(job: RegisteredJob) -> dict[str, dict[str, int]]:
    """The bytes that each host sends in an iteration, by flow group."""
    return {group.name: {flow.source.host: flow.size_bytes for flow in group.flows} for group in job.flow_groups}


async def registered(
    there: Fabric, job: Ranks, name: str, holds: Callable[[RegisteredJob], bool] = lambda _: True
) -> RegisteredJob:
    """Wait until a job is registered with flow groups, and something holds for it."""
    found: list[RegisteredJob] = []

    def is_there() -> bool:
        known = there.controller.registry.job(name)
        found[:] = [known] if known is not None and known.flow_groups and holds(known) else []
        return bool(found)

    await job.until(is_there)
    return found[0]


def test_accumulated_gradients_and_forked_data_loaders_are_one_job_with_whole_iterations(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with fabric(tmp_path) as there:
            arguments = ("--accumulate", "3", "--workers", "2", *PACE)
            async with ranks(
                "train_ddp", tmp_path / "job", *arguments, place=there.place, environment=there.environment
            ) as job:
                await job.until_levels()
                found = await registered(there, job, "train_ddp")
                # Each of three backward passes reduces all gradients; one iteration in four asks whether to stop.
                size_bytes = 3 * 4 * DDP_PARAMETERS
                for host in ("h0", "h2"):
                    assert sent(found)["data 0"][host] in (size_bytes, size_bytes + STOPPING_BYTES)
                assert (found.request.hosts, found.request.gpus) == (("h0", "h2"), 2)
                await job.until_steps(20)
                assert [known.request.name for known in there.controller.registry.jobs] == ["train_ddp"]
                job.stop()
                results = await job.results()
            await until(lambda: there.controller.registry.jobs == ())
        for result in results:
            assert result["errors"] == []
            assert result["network"]["state"] == "registered"
            assert result["network"]["iterations"] >= 10  # it looks a few times a second

    run(scenario)


def test_a_job_that_regroups_is_registered_anew_and_withdrawn_between(tmp_path: Path) -> None:
    async def scenario() -> None:
        folder = tmp_path / "job"
        async with fabric(tmp_path) as there:
            async with ranks("regroup", folder, before=(), place=there.place, environment=there.environment) as job:
                # Attached after init_process_group: the connections are there already, and found.
                attached = await registered(there, job, "regroup")
                assert sent(attached) == {"data 0": dict.fromkeys(("h0", "h2"), 2000 + STOPPING_BYTES)}
                (folder / "detached").touch()
                await job.until(lambda: there.controller.registry.jobs == ())
                (folder / "attached").touch()
                first = await registered(there, job, "regroup")
                assert sent(first) == {"data 0": dict.fromkeys(("h0", "h2"), 4000 + STOPPING_BYTES)}
                assert not any(flow.is_assigned for flow in first.flow_groups[0].flows)
                (folder / "groups").touch()
                second = await registered(there, job, "regroup", lambda known: len(known.flow_groups) == 3)
                assert [each["h0"] for each in sent(second).values()] == [4000 + STOPPING_BYTES, 8000, 12_000]
                tuples = {flow.five_tuple for group in second.flow_groups for flow in group.flows}
                assert len(tuples) == 6
                (folder / "again").touch()
                third = await registered(
                    there,
                    job,
                    "regroup",
                    lambda known: sent(known).get("data 0", {}).get("h0") == 2000 + STOPPING_BYTES,
                )
                assert len(third.flow_groups) == 1
                assert tuples.isdisjoint(flow.five_tuple for flow in third.flow_groups[0].flows)
                job.stop()
                results = await job.results(*STORE_ENDED)
            await until(lambda: there.controller.registry.jobs == ())
        assert [result["errors"] for result in results] == [[], []]

    run(scenario)


def test_ranks_that_disagree_are_registered_as_each_of_them_sends(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with (
            fabric(tmp_path) as there,
            ranks("disagree", tmp_path / "job", place=there.place, environment=there.environment) as job,
        ):
            found = await registered(there, job, "disagree")
            # What rank 0 does alone crosses no network.
            assert sent(found) == {"pipeline 0": {"h0": 4000 + STOPPING_BYTES, "h2": 12_000 + STOPPING_BYTES}}
            job.stop()
            results = await job.results()
        assert [(result["errors"], result["received"]) for result in results] == [([], [1.0]), ([], [0.0])]

    run(scenario)


def test_a_pipeline_is_registered_with_each_direction_by_its_schedule(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with (
            fabric(tmp_path) as there,
            ranks("pipeline", tmp_path / "job", place=there.place, environment=there.environment) as job,
        ):
            found = await registered(there, job, "pipeline", lambda known: len(known.flow_groups) == 2)
            size_bytes = pipeline.MICRO_BATCHES * pipeline.ROWS * pipeline.WIDTH * 4 + STOPPING_BYTES
            forward, backward = "pipeline 0 0-1", "pipeline 0 1-0"
            assert sent(found) == {forward: {"h0": size_bytes}, backward: {"h2": size_bytes}}
            assert [flow.is_assigned for group in found.flow_groups for flow in group.flows] == [False, False]
            graph, profile = found.task_graph, found.request.profile
            assert graph is not None
            assert profile is not None
            groups: Any = found.flow_groups
            transfers = Transfers.of_graph(groups, graph)
            (released_s, returned_s), slacks_s = transfers.release_s, transfers.due_s - transfers.release_s
            passes_s = pipeline.FORWARD_S + pipeline.BACKWARD_S
            # The first activation is there after a pass, the first gradient after two more. Nobody waits for the second
            # activation while the second stage goes back for the first time; every gradient is waited for.
            assert pipeline.FORWARD_S <= released_s < returned_s
            assert returned_s >= released_s + passes_s
            assert 0 < slacks_s[0] < profile.compute_s
            assert slacks_s[1] < slacks_s[0]
            # Each stage waits for the other one while the first micro-batch goes to and fro: that is no work.
            assert profile.compute_s >= (pipeline.MICRO_BATCHES + 1) * passes_s
            assert profile.work >= 2 * pipeline.MICRO_BATCHES * passes_s
            assert profile.work < 2 * profile.compute_s
            await job.until_levels()
            levels = [set(state["levels"]) for state in job.states() if state is not None]
            assert levels == [{forward}, {backward}], "each rank marks what it sends"
            job.stop()
            results = await job.results()
        assert [result["errors"] for result in results] == [[], []]

    run(scenario)
