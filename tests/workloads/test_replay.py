import heapq
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workloads.jobs import TrainingJob
from workloads.placement import Placement
from workloads.replay import (
    CommunicationInterval,
    ComputeInterval,
    HoldIteration,
    Iteration,
    JobReplay,
    StartComputation,
    StartTransfer,
)
from workloads.scenario import JobSpecification
from workloads.task_graph import Computation, FlowGroupSpec, FlowSpec, GroupTransfer, Task, TaskGraph

OVERLAPPED = (
    Computation("first", ("h0", "h1"), 1.0),
    Computation("second", ("h0", "h1"), 3.0, after=(0,)),
    GroupTransfer("g", after=(0,)),
)


def job_of(tasks: tuple[Task, ...], **end: Any) -> TrainingJob:
    specification = JobSpecification.model_validate(
        {
            "name": "job",
            "hosts": ["h0", "h1"],
            "gpus_per_host": 4,
            "arrival_s": 10.0,
            "workload": {"type": "phases", "compute_s": 4, "comm_start": 0.25, "bytes": 1, "pattern": "ring"},
            **end,
        }
    )
    groups = (
        FlowGroupSpec(task.group, (FlowSpec("h0", 0, "h1", 0, 1.0),))
        for task in tasks
        if isinstance(task, GroupTransfer)
    )
    return TrainingJob(specification, Placement({}, {}), TaskGraph(tasks, tuple(groups)))


def replay_of(tasks: tuple[Task, ...], **end: Any) -> JobReplay:
    return JobReplay(job_of(tasks, **end))


def test_an_iteration_ends_when_computation_and_communication_have() -> None:
    replay = replay_of(OVERLAPPED, iterations=2)
    assert replay.start(10.0) == [StartComputation(0, "first", 11.0)]
    assert replay.finish([0], 11.0) == [StartComputation(1, "second", 14.0), StartTransfer(2, "g", (0,))]
    assert replay.finish([1], 14.0) == []
    assert replay.finish([2], 15.0) == [StartComputation(0, "first", 16.0)]
    assert replay.finish([0], 16.0) == [StartComputation(1, "second", 19.0), StartTransfer(2, "g", (0,))]
    assert replay.finish([2], 17.0) == []
    assert not replay.departed
    assert replay.finish([1], 19.0) == []
    assert replay.departed_s == 19.0
    assert replay.iterations == [Iteration(0, 10.0, 15.0), Iteration(1, 15.0, 19.0)]
    assert replay.communicating == [
        CommunicationInterval("g", 0, 11.0, 15.0, 1.0),
        CommunicationInterval("g", 1, 16.0, 17.0, 1.0),
    ]
    assert replay.computing[:2] == [
        ComputeInterval("first", ("h0", "h1"), 0, 10.0, 11.0),
        ComputeInterval("second", ("h0", "h1"), 0, 11.0, 14.0),
    ]


def test_a_job_finishes_the_iteration_in_which_its_duration_ends() -> None:
    replay = replay_of((Computation("only", ("h0", "h1"), 2.0),), duration_s=5)
    (action,) = replay.start(10.5)
    while isinstance(action, StartComputation):
        following = replay.finish([0], action.ends_at_s)
        if not following:
            break
        (action,) = following
    assert [iteration.end_s for iteration in replay.iterations] == [12.5, 14.5, 16.5]
    assert replay.departed_s == 16.5


def test_a_held_iteration_begins_when_it_is_told_to_and_counts_the_wait() -> None:
    delays_s = iter([0.0, 0.5, 0.25])
    replay = JobReplay(job_of((Computation("only", ("h0", "h1"), 2.0),), iterations=3), lambda _: next(delays_s))
    assert replay.start(10.0) == [StartComputation(0, "only", 12.0)]
    with pytest.raises(ValueError, match="holds no iteration"):
        replay.begin_iteration(11.0)
    assert replay.finish([0], 12.0) == [HoldIteration(12.5)]
    with pytest.raises(ValueError, match="not running task 0"):
        replay.finish([0], 12.25)
    assert replay.begin_iteration(12.5) == [StartComputation(0, "only", 14.5)]
    assert replay.finish([0], 14.5) == [HoldIteration(14.75)]
    replay.withdraw(14.6)
    with pytest.raises(ValueError, match="holds no iteration"):
        replay.begin_iteration(14.75)
    assert replay.iterations == [Iteration(0, 10.0, 12.0), Iteration(1, 12.0, 14.5)]
    assert [interval.start_s for interval in replay.computing] == [10.0, 12.5]


def test_a_withdrawn_job_keeps_what_it_did_but_not_the_iteration() -> None:
    replay = replay_of(OVERLAPPED, iterations=2)
    replay.start(10.0)
    replay.finish([0], 11.0)
    replay.withdraw(12.0)
    assert replay.departed_s == 12.0
    assert replay.iterations == []
    assert [(interval.start_s, interval.end_s) for interval in replay.computing] == [(10.0, 11.0), (11.0, 12.0)]
    assert replay.communicating == [CommunicationInterval("g", 0, 11.0, 12.0, 1.0)]
    with pytest.raises(ValueError, match="not running task 2"):
        replay.finish([2], 13.0)
    with pytest.raises(ValueError, match="already departed"):
        replay.withdraw(13.0)


def test_calls_that_do_not_fit_are_refused_and_change_nothing() -> None:
    replay = replay_of(OVERLAPPED, iterations=1)
    with pytest.raises(ValueError, match=r"9\.0 s is before 10\.0 s"):
        replay.start(9.0)
    replay.start(10.0)
    with pytest.raises(ValueError, match="already started"):
        replay.start(10.0)
    for task in (1, 2, 3, -1):
        with pytest.raises(ValueError, match=f"not running task {task}"):
            replay.finish([task], 11.0)
    with pytest.raises(ValueError, match="not running task 2"):
        replay.finish([2], 11.0)
    with pytest.raises(ValueError, match=r"9\.5 s is before 10\.0 s"):
        replay.finish([0], 9.5)
    assert replay.finish([0], 11.0) == [StartComputation(1, "second", 14.0), StartTransfer(2, "g", (0,))]


@st.composite
def graphs(draw: st.DrawFn) -> tuple[Task, ...]:
    tasks: list[Task] = []
    for number in range(draw(st.integers(1, 8))):
        after = tuple(sorted(draw(st.sets(st.integers(0, number - 1))))) if number else ()
        if draw(st.booleans()):
            tasks.append(Computation(f"c{number}", ("h0",), draw(st.sampled_from([0.5, 1.0, 2.0])), after))
        else:
            tasks.append(GroupTransfer(f"g{number}", after))
    return tuple(tasks)


@given(tasks=graphs(), iterations=st.integers(1, 4), data=st.data())
def test_replay_keeps_the_order_of_any_graph(tasks: tuple[Task, ...], iterations: int, data: st.DataObject) -> None:
    """For any transfer times, each task runs once per iteration, as soon as everything it waits for has ended."""
    replay = replay_of(tasks, iterations=iterations)
    events: list[tuple[float, int]] = []
    time_s, actions = 10.0, replay.start(10.0)
    while True:
        for action in actions:
            if isinstance(action, StartComputation):
                heapq.heappush(events, (action.ends_at_s, action.task))
            else:
                takes_s = data.draw(st.sampled_from([0.25, 1.0, 3.0]))
                heapq.heappush(events, (time_s + takes_s, action.task))
        if not events:
            break
        time_s, task = heapq.heappop(events)
        actions = replay.finish([task], time_s)

    assert replay.departed_s == time_s
    spans = {(interval.iteration, interval.name): (interval.start_s, interval.end_s) for interval in replay.computing}
    spans |= {
        (interval.iteration, interval.group): (interval.start_s, interval.end_s) for interval in replay.communicating
    }
    names = [task.name if isinstance(task, Computation) else task.group for task in tasks]
    assert len(replay.computing) + len(replay.communicating) == len(spans) == len(tasks) * iterations
    for iteration in replay.iterations:
        for task_number, task_here in enumerate(tasks):
            earlier = [spans[iteration.number, names[number]][1] for number in task_here.after]
            assert spans[iteration.number, names[task_number]][0] == max(earlier, default=iteration.start_s)
        assert iteration.end_s == max(spans[iteration.number, name][1] for name in names)
