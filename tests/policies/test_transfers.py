from dataclasses import replace

import pytest

from policies.flows import FlowGroup, FlowKey
from policies.job import Job, Profile
from policies.task_graph import Computation, Task, TaskGraph, Transfer
from policies.transfers import MAX_TRANSFERS, Transfers
from tests.policies.builders import make_job


def group(offsets_s: list[float]) -> FlowGroup:
    (made,) = make_job("a", [(1.0, ((0,),))] * len(offsets_s)).flow_groups
    flows = tuple(
        type(flow)(FlowKey("a", "g", number), flow.five_tuple, 1.0, offset_s, flow.candidates, flow.hashed_path)
        for number, (flow, offset_s) in enumerate(zip(made.flows, offsets_s, strict=True))
    )
    return FlowGroup("g", flows)


def test_a_coflow_has_the_rest_of_the_computation() -> None:
    transfers = Transfers.of([group([3.0, 3.0])], Profile(4.0, 0.25, 1.0))
    assert (transfers.transfer_of.tolist(), transfers.release_s.tolist(), transfers.due_s.tolist()) == (
        [0, 0],
        [1.0],
        [4.0],
    )


def test_offsets_in_any_order_stagger_releases_and_needs() -> None:
    transfers = Transfers.of([group([]), group([2.0, 0.0, 1.0])], Profile(4.0, 0.25, 1.0))
    assert transfers.transfer_of.tolist() == [2, 0, 1]
    assert transfers.group_of.tolist() == [1, 1, 1]
    assert transfers.release_s.tolist() == [1.0, 2.0, 3.0]
    assert transfers.due_s.tolist() == [2.0, 3.0, 4.0]


def test_offsets_beyond_the_computation_leave_no_window() -> None:
    transfers = Transfers.of([group([0.0, 9.0])], Profile(4.0, 0.25, 1.0))
    assert transfers.release_s.tolist() == [1.0, 4.0]
    assert transfers.due_s.tolist() == [1.0, 4.0]


def test_many_offsets_are_taken_together_with_their_neighbours() -> None:
    transfers = Transfers.of([group([float(number) for number in range(20)])], Profile(40.0, 0.0, 1.0))
    assert len(transfers.group_of) == MAX_TRANSFERS
    assert transfers.transfer_of.tolist() == sorted(transfers.transfer_of.tolist())
    assert (transfers.due_s > transfers.release_s).all()


def job_of(offsets_s: list[float], task_graph: TaskGraph | None = None) -> Job:
    groups = (group(offsets_s),)
    return Job("a", 0.0, 1, Profile(4.0, 0.25, 1.0), groups, task_graph=task_graph)


def test_a_task_graph_tells_releases_and_needs() -> None:
    blocking = TaskGraph((Computation(1.0), Transfer((0,), (0,)), Computation(2.0, (1,)), Transfer((1,), (0,))))
    transfers = job_of([0.0, 0.0], blocking).transfers
    assert transfers.transfer_of.tolist() == [0, 1]
    assert transfers.release_s.tolist() == [1.0, 1.0]
    assert transfers.due_s.tolist() == [1.0, 3.0]


def test_transfers_of_a_graph_that_block_have_no_slack_together_either() -> None:
    tasks: list[Task] = []
    for number in range(20):
        tasks += [Computation(1.0, tuple(range(len(tasks)))), Transfer((number,), (2 * number,))]
    transfers = job_of([0.0] * 20, TaskGraph(tuple(tasks))).transfers
    assert len(transfers.group_of) == MAX_TRANSFERS
    assert transfers.due_s.tolist() == transfers.release_s.tolist()


def test_the_guess_computes_in_one_line_and_waits_for_what_is_due() -> None:
    graph = job_of([2.0, 0.0, 1.0]).played_graph
    assert graph.is_guessed
    assert graph.tasks == (
        *(Computation(1.0), Transfer((1,), (0,))),
        *(Computation(1.0, (0,)), Transfer((2,), (2,))),
        *(Computation(1.0, (2, 1)), Transfer((0,), (4,))),
        Computation(1.0, (4, 3)),
    )


def test_the_guess_lets_an_iteration_without_computation_begin() -> None:
    job = replace(job_of([0.0]), profile=Profile(0.0, 0.0, 0.0))
    (transfer, computation) = job.played_graph.tasks
    assert transfer == Transfer((0,))
    assert isinstance(computation, Computation)


@pytest.mark.parametrize(
    ("transfer", "problem"),
    [
        (Transfer((0, 2)), r"job 'a': task_graph.tasks\[1\].flows: the job has flows 0 to 1, not 2"),
        (Transfer((1,)), "job 'a': task_graph.tasks: no transfer sends 1 of the job's 2 flows"),
    ],
)
def test_a_graph_that_does_not_send_the_jobs_flows_is_refused(transfer: Transfer, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        job_of([0.0, 0.0], TaskGraph((Computation(1.0), transfer)))


def test_a_transfer_sends_flows_of_one_group() -> None:
    (other,) = make_job("a", [(1.0, ((0,),))]).flow_groups
    groups = (group([0.0]), other)
    with pytest.raises(ValueError, match=r"task_graph.tasks\[1\].flows: they must be of one flow group"):
        Job("a", 0.0, 1, Profile(4.0, 0.25, 1.0), groups, task_graph=TaskGraph((Computation(1.0), Transfer((0, 1)))))
