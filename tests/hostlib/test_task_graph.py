"""A task graph is checked when it is made and against the job's groups; the controller always has the newest one."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from experiments.scenarios.driven.clock import DrivenClock
from hostlib import BlockingClient, Client, Computation, Flow, FlowGroup, Nic, Profile, TaskGraph, Transfer
from hostlib.connection import Connection
from hostlib.messages import MAX_MESSAGE_BYTES, flow_groups_to_wire, task_graph_to_wire
from policies import task_graph as planned
from tests.hostlib.served import GPT, RING, Served, served
from tests.patience import PATIENCE_S, until
from tests.ports import free_port

LONG = "x" * 256
TREE = FlowGroup("tree", RING.flows[:1])
GRAPH = TaskGraph((Computation(0.5), Transfer("ring", after=(0,)), Computation(0.5, after=(0,))))
BOTH = TaskGraph((Computation(1.0), Transfer("ring", (1,), (0,)), Transfer("tree", after=(0,)), Transfer("ring", (0,))))

WRONG: dict[str, tuple[str, Callable[[], object]]] = {
    "no time": ("^duration_s: must be above 0", lambda: Computation(0)),
    "negative time": ("^duration_s: expected a number", lambda: Computation(-0.1)),
    "not a time": ("^duration_s: expected a number", lambda: Computation(float("nan"))),
    "endless time": ("^duration_s: expected a number", lambda: Computation(float("inf"))),
    "one task": ("^after: expected a tuple, each item an integer, got 3", lambda: Computation(0.1, after=3)),
    "text": ("^after: expected a tuple", lambda: Computation(0.1, after="12")),
    "negative position": (r"^after\[1\]: must lie between 0", lambda: Computation(0.1, after=(0, -1))),
    "half a position": (r"^after\[0\]: expected an integer, got 0.5", lambda: Transfer("ring", after=[0.5])),
    "group": ("^flow_group: expected text", lambda: Transfer(RING)),
    "negative flow": (r"^flows\[0\]: must lie between 0", lambda: Transfer("ring", flows=(-1,))),
    "flow twice": ("^flows: a flow is named twice", lambda: Transfer("ring", flows=(1, 1))),
    "tasks": ("^tasks: expected a tuple, each item a Computation or Transfer", lambda: TaskGraph(Computation(0.1))),
    "no task": (r"^tasks\[1\]: expected a Computation or Transfer, got 2", lambda: TaskGraph((Computation(0.1), 2))),
    "itself": (r"^tasks\[1\]\.after: must name earlier tasks, not 1", lambda: graph_of(Computation(0.1, (0, 1)))),
    "later task": (r"^tasks\[1\]\.after: must name earlier tasks, not 7", lambda: graph_of(Transfer("ring", (), (7,)))),
    "all twice": (r"^tasks\[2\]\.flows: flows of flow group 'a'", lambda: graph_of(Transfer("a"), Transfer("a"))),
    "one again": (r"^tasks\[2\]\.flows: .* second time", lambda: graph_of(Transfer("a"), Transfer("a", (1,)))),
    "all again": (r"^tasks\[2\]\.flows: .* second time", lambda: graph_of(Transfer("a", (1,)), Transfer("a"))),
    "nothing computed": ("^tasks: expected at least one computation", lambda: TaskGraph((Transfer("ring"),))),
    "empty": ("^tasks: expected at least one computation", lambda: TaskGraph(())),
    "guess": ("^is_guessed: expected a bool", lambda: TaskGraph((Computation(0.1),), is_guessed="yes")),
    "too many": ("^tasks: a job has room for 100,000, not for 1,000,000", lambda: TaskGraph((GRAPH.tasks[0],) * 10**6)),
}


def graph_of(*tasks: Computation | Transfer) -> TaskGraph:
    """A graph of these tasks behind a computation."""
    return TaskGraph((Computation(0.1), *tasks))


@pytest.mark.parametrize("case", WRONG)
def test_what_no_controller_could_accept_is_refused_by_the_field(case: str) -> None:
    problem, make = WRONG[case]
    with pytest.raises(ValueError, match=problem) as refused:
        make()
    assert len(str(refused.value)) < 300


def test_lists_and_numpys_numbers_become_pythons() -> None:
    made = TaskGraph([Computation(np.float32(0.5)), Transfer("a", np.array([1, 0]), [np.int64(0)])])
    assert made == TaskGraph((Computation(0.5), Transfer("a", (1, 0), (0,))))
    assert hash(made) == hash(TaskGraph((Computation(0.5), Transfer("a", (1, 0), (0,)))))
    assert {type(number) for number in (*made.tasks[1].flows, *made.tasks[1].after)} == {int}


def test_a_graph_goes_with_the_last_groups_or_behind_them_where_both_are_too_large() -> None:
    one, *_ = few = flow_groups_to_wire([RING, TREE], BOTH)
    assert (len(few), one.task_graph, one.HasField("task_graph")) == (1, task_graph_to_wire(BOTH), True)
    flow = RING.flows[0]
    large = [FlowGroup(f"{number}", (flow,) * 50_000) for number in range(3)]
    sent = [Transfer(LONG, (number,), (0,)) for number in range(12_000)]
    requests = flow_groups_to_wire(large, TaskGraph((Computation(0.1), *sent)))
    assert [len(request.flow_groups) for request in requests] == [1, 1, 1, 0]
    assert [request.HasField("task_graph") for request in requests] == [False, False, False, True]
    assert max(request.ByteSize() for request in requests) < MAX_MESSAGE_BYTES
    assert not any(request.HasField("task_graph") for request in flow_groups_to_wire(large, None))


def test_the_client_holds_a_graph_against_the_groups_of_the_job() -> None:
    async def scenario() -> None:
        async with Client("127.0.0.1:1") as client:
            client.register_job(GPT)
            too_large = TaskGraph((Computation(0.1), *(Transfer(LONG, (number,)) for number in range(20_000))))
            wrong = [
                ("task_graph: expected a TaskGraph, got 'ring'", "ring"),
                (r"task_graph\.tasks\[1\]\.flows: flow group 'ring' has no flow 2", graph_of(Transfer("ring", (0, 2)))),
                (r"task_graph\.tasks: no transfer sends flow 1 of flow group 'ring'", graph_of(Transfer("ring", (0,)))),
                (r"task_graph\.tasks: no transfer sends flow 0 of flow group 'ring'", graph_of(Transfer("rang"))),
                ("task_graph: takes 5,[0-9,]* bytes, a message has room for 3,670,016", too_large),
            ]
            for problem, graph in wrong:
                with pytest.raises(ValueError, match=problem):
                    client.register_flow_groups("gpt", [RING], graph)
                with pytest.raises(ValueError, match="has no flow group 'ring'"):  # all or nothing
                    client.start_flow_groups("gpt", ["ring"], 1)
            client.register_flow_groups("gpt", [RING], GRAPH)
            with pytest.raises(ValueError, match="no transfer sends flow 0 of flow group 'ring'"):
                client.report_profile("gpt", Profile(1.0, 0.5, 1.0), graph_of())
            # Another process of the job may have registered this group.
            client.report_profile("gpt", Profile(1.0, 0.5, 1.0), graph_of(Transfer("ring"), Transfer("of another")))

    asyncio.run(scenario())


def _known(controller: Served) -> planned.TaskGraph | None:
    (job,) = controller.registry.jobs
    return job.task_graph


def test_a_graph_arrives_is_amended_and_is_dropped_with_groups_that_it_does_not_send() -> None:
    async def scenario() -> None:
        async with served() as controller, Client(controller.address) as client:
            client.register_job(GPT)
            client.register_flow_groups("gpt", [RING], GRAPH)
            assert await client.acknowledged("gpt", PATIENCE_S)
            expected = planned.TaskGraph(
                (planned.Computation(0.5), planned.Transfer((0, 1), (0,)), planned.Computation(0.5, (0,)))
            )
            assert _known(controller) == expected
            client.register_flow_groups("gpt", [RING])
            slower = TaskGraph((Computation(0.75), *GRAPH.tasks[1:]), is_guessed=True)
            client.report_profile("gpt", GPT.profile, slower)
            assert await client.acknowledged("gpt", PATIENCE_S)
            amended = planned.TaskGraph((planned.Computation(0.75), *expected.tasks[1:]), is_guessed=True)
            assert _known(controller) == amended
            client.report_profile("gpt", replace(GPT.profile, work=1.0))
            assert await client.acknowledged("gpt", PATIENCE_S)
            assert _known(controller) == amended
            client.register_flow_groups("gpt", [TREE])
            assert await client.acknowledged("gpt", PATIENCE_S)
            assert _known(controller) is None
            client.register_flow_groups("gpt", [], BOTH)
            assert await client.acknowledged("gpt", PATIENCE_S)
            sent = [task.flows for task in _known(controller).tasks if isinstance(task, planned.Transfer)]
            assert sent == [(1,), (2,), (0,)]

    asyncio.run(scenario())


def test_a_controller_that_knows_nothing_gets_the_newest_graph() -> None:
    async def scenario() -> None:
        async with served(f"127.0.0.1:{free_port()}") as first:
            address = first.address
            client = Client(address, clock=DrivenClock())
            await client.__aenter__()
            client.register_job(GPT)
            client.register_flow_groups("gpt", [RING], GRAPH)
            assert await client.acknowledged("gpt", PATIENCE_S)
            client.report_profile("gpt", GPT.profile, TaskGraph((Computation(0.25), *GRAPH.tasks[1:])))
            assert await client.acknowledged("gpt", PATIENCE_S)
            known = _known(first)
        await asyncio.wait_for(client.lost("gpt"), PATIENCE_S)
        async with served(address) as second:
            await until(lambda: bool(second.registry.jobs) and _known(second) is not None)
            assert _known(second) == known
            assert known.tasks[0] == planned.Computation(0.25)
            await client.close()

    asyncio.run(scenario())


def test_the_blocking_client_tells_graphs_too() -> None:
    async def scenario() -> None:
        async with served() as controller:

            def tell() -> None:
                with BlockingClient(controller.address) as client:
                    client.register_job(GPT)
                    client.register_flow_groups("gpt", [RING], GRAPH)
                    client.report_profile("gpt", GPT.profile, TaskGraph((Computation(0.25), *GRAPH.tasks[1:])))
                    assert client.acknowledged("gpt", PATIENCE_S)

            await asyncio.to_thread(tell)
            assert _known(controller).tasks[0] == planned.Computation(0.25)

    asyncio.run(scenario())


def test_a_large_registration_with_its_graph_arrives_in_several_messages() -> None:
    flows = tuple(Flow(Nic("h0"), Nic("h2"), 1_000) for _ in range(2))
    groups = [FlowGroup(f"{number:04}{LONG[4:]}", flows) for number in range(6_000)]
    graph = TaskGraph((Computation(0.1), *(Transfer(group.name, after=(0,)) for group in groups)))

    async def scenario() -> None:
        async with served() as controller, Connection(controller.address) as connection:
            await connection.register_job(GPT)
            assert len(flow_groups_to_wire(groups, graph)) > 1
            await connection.register_flow_groups("gpt", groups, graph)
            assert _known(controller).num_flows == 12_000

    asyncio.run(scenario())
