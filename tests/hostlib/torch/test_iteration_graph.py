"""The task graph and the profile of an iteration, from the times of what it sends."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostlib.task_graph import Computation, TaskGraph, Transfer
from hostlib.torch.iteration_graph import Sending, pipelined_times, profile_of, task_graph_of
from hostlib.torch.measurement import GroupTimes
from hostlib.torch.pipelines import Pass, Table, simulated
from tests.hostlib.torch.test_pipelines import one_forward_one_backward, table


def graph(compute_s: float, *times: tuple[float, float]) -> TaskGraph:
    return task_graph_of(compute_s, {f"g{at}": Sending(GroupTimes(*each)) for at, each in enumerate(times)})


def length_s(found: TaskGraph, transfers_s: Mapping[str, float]) -> float:
    """How long an iteration takes where each transfer takes so long."""
    ends: list[float] = []
    for task in found.tasks:
        takes_s = task.duration_s if isinstance(task, Computation) else transfers_s[task.flow_group]
        ends.append(max((ends[each] for each in task.after), default=0.0) + takes_s)
    return max(ends)


def test_what_has_slack_is_sent_while_others_compute() -> None:
    assert graph(1.0, (0.25, 0.25)).tasks == (
        Computation(0.25),
        Transfer("g0", after=(0,)),
        Computation(0.25, after=(0,)),
        Computation(0.5, after=(2, 1)),
    )


def test_what_has_no_slack_is_waited_for_at_once() -> None:
    assert graph(1.0, (0.25, 0.0)).tasks == (
        Computation(0.25),
        Transfer("g0", after=(0,)),
        Computation(0.75, after=(0, 1)),
    )


def test_what_is_needed_at_the_end_is_waited_for_by_the_next_iteration_alone() -> None:
    assert graph(1.0, (0.25, 9.0)).tasks == (
        Computation(0.25),
        Transfer("g0", after=(0,)),
        Computation(0.75, after=(0,)),
    )


def test_what_is_released_at_once_waits_for_nothing() -> None:
    assert graph(1.0, (0.0, 0.5)).tasks == (
        Transfer("g0"),
        Computation(0.5),
        Computation(0.5, after=(1, 0)),
    )


def test_an_iteration_that_only_communicates_computes_for_a_microsecond() -> None:
    found = graph(0.0, (0.0, 0.0))
    assert [task.duration_s for task in found.tasks if isinstance(task, Computation)] == [1e-6]
    assert length_s(found, {"g0": 1.0}) == pytest.approx(1.0, abs=2e-6)


def test_serial_transfers_add_up_and_hidden_ones_do_not() -> None:
    found = graph(1.0, (0.2, 0.0), (0.4, 0.0), (0.5, 0.4))
    assert length_s(found, {"g0": 0.3, "g1": 0.2, "g2": 0.4}) == pytest.approx(1.5)
    assert length_s(found, {"g0": 0.0, "g1": 0.0, "g2": 0.6}) == pytest.approx(1.2)


_SECONDS = st.floats(0.0, 20.0)


@given(
    compute_s=_SECONDS,
    times=st.lists(st.tuples(st.floats(-1.0, 20.0), _SECONDS), min_size=1, max_size=5),
    takes_s=_SECONDS,
)
def test_every_task_graph_computes_as_long_as_was_measured_and_sends_all_once(
    compute_s: float, times: list[tuple[float, float]], takes_s: float
) -> None:
    found = graph(compute_s, *times)
    names = [f"g{at}" for at in range(len(times))]
    assert sorted(task.flow_group for task in found.tasks if isinstance(task, Transfer)) == names
    assert length_s(found, dict.fromkeys(names, 0.0)) == pytest.approx(max(compute_s, 1e-6), abs=2e-6)
    # One transfer delays by what exceeds its slack, at most.
    for name, (release_s, slack_s) in zip(names, times, strict=True):
        release_s = min(max(release_s, 0.0), compute_s)
        needed_s = min(release_s + slack_s, compute_s)
        expected_s = compute_s + max(0.0, release_s + takes_s - needed_s)
        assert length_s(found, dict.fromkeys(names, 0.0) | {name: takes_s}) == pytest.approx(expected_s, abs=1e-5)


@given(compute_s=st.floats(0.0, 1e6), times=st.lists(st.tuples(_SECONDS, _SECONDS), min_size=1, max_size=3))
def test_every_profile_is_one_that_the_controller_takes(compute_s: float, times: list[tuple[float, float]]) -> None:
    profile = profile_of(compute_s, [Sending(GroupTimes(*each)) for each in times], 4 * compute_s)
    assert profile.work == max(4 * compute_s, 1e-6)
    assert profile.compute_s == max(compute_s, 1e-6)


# ---- pipelines -------------------------------------------------------------------------------------------------------


def test_many_micro_batches_are_one_transfer_that_may_take_the_time_in_which_nobody_waits() -> None:
    assert pipelined_times([(1.0, 1.0), (2.0, 4.0), (3.0, 5.0), (7.0, 7.0)]) == GroupTimes(1.0, 3.0)


def test_what_a_pipeline_sends_has_a_row_of_its_own() -> None:
    found = task_graph_of(10.0, {"g0": Sending(GroupTimes(1.0, 2.0), 7.0)})
    assert found.tasks == (
        Computation(1.0),
        Transfer("g0", after=(0,)),
        Computation(2.0, after=(0,)),
        Computation(4.0, after=(2, 1)),
        Computation(7.0),
        Computation(3.0, after=(4, 3)),
    )


def test_what_delays_one_direction_of_a_pipeline_does_not_add_to_what_delays_the_other() -> None:
    found = task_graph_of(
        10.0,
        {
            "g0": Sending(GroupTimes(1.0, 2.0), 7.0),
            "g1": Sending(GroupTimes(4.0, 0.0), 7.0),
            "g2": Sending(GroupTimes(8.0, 1.0)),
        },
    )
    assert length_s(found, {"g0": 5.0, "g1": 2.0, "g2": 0.0}) == 13.0
    assert length_s(found, {"g0": 1.0, "g1": 2.0, "g2": 0.0}) == 12.0
    # What comes after the pipeline does add to it.
    assert length_s(found, {"g0": 5.0, "g1": 2.0, "g2": 2.0}) == 14.0


@given(
    compute_s=st.floats(0.001, 20.0),
    times=st.lists(st.tuples(_SECONDS, _SECONDS, _SECONDS), min_size=1, max_size=4),
    takes_s=_SECONDS,
)
def test_every_pipeline_computes_as_long_as_simulated_and_waits_for_each_direction(
    compute_s: float, times: list[tuple[float, float, float]], takes_s: float
) -> None:
    sendings = {f"g{at}": Sending(GroupTimes(*each), until_s) for at, (*each, until_s) in enumerate(times)}
    found = task_graph_of(compute_s, sendings)
    assert length_s(found, dict.fromkeys(sendings, 0.0)) == pytest.approx(compute_s, abs=1e-5)
    delays_s = []
    for name, (release_s, slack_s, _) in zip(sendings, times, strict=True):
        release_s = min(release_s, compute_s)
        delays_s.append(max(0.0, release_s + takes_s - min(release_s + slack_s, compute_s)))
        alone_s = length_s(found, dict.fromkeys(sendings, 0.0) | {name: takes_s})
        assert alone_s == pytest.approx(compute_s + delays_s[-1], abs=1e-5)
    # Together they delay at least as much as one of them, and no more than one after the other.
    together_s = length_s(found, dict.fromkeys(sendings, takes_s)) - compute_s
    assert max(delays_s) - 1e-5 <= together_s <= sum(delays_s) + 1e-5


def length_by_messages_s(tables: Mapping[int, Table], message_s: float) -> float:
    """How long a pipeline takes where every connection sends one micro-batch after the other, each for so long."""
    rank_of = {action.stage: rank for rank, own in tables.items() for action in own}
    left = {rank: list(own) for rank, own in tables.items()}
    now_s = dict.fromkeys(tables, 0.0)
    ended_s: dict[tuple[Pass, int, int], float] = {}
    free_s: dict[tuple[int, int], float] = {}
    while any(left.values()):
        for rank, own in left.items():
            while own:
                kind, stage, micro_batch, begin_s, end_s = own[0]
                source = rank_of.get(stage - 1 if kind is Pass.FORWARD else stage + 1)
                if source is not None:
                    needed = kind, stage - 1 if kind is Pass.FORWARD else stage + 1, micro_batch
                    if needed not in ended_s:
                        break
                    arrived_s = max(ended_s[needed], free_s.get((source, rank), 0.0)) + message_s
                    free_s[source, rank] = arrived_s
                    now_s[rank] = max(now_s[rank], arrived_s)
                now_s[rank] += end_s - begin_s
                ended_s[kind, stage, micro_batch] = now_s[rank]
                del own[0]
    return max(now_s.values())


@pytest.mark.parametrize("message_s", [0.1, 0.25, 0.5, 1.0])
@pytest.mark.parametrize(("num_stages", "least"), [(2, 1.0), (3, 0.6), (4, 0.5)])
def test_one_transfer_for_all_micro_batches_delays_1f1b_about_as_they_do(
    num_stages: int, least: float, message_s: float
) -> None:
    durations_s = {Pass.FORWARD: 1.0, Pass.BACKWARD: 2.0}
    tables = {stage: table(one_forward_one_backward(num_stages, 12, stage), durations_s) for stage in range(num_stages)}
    simulation = simulated(tables)
    length_without_s = (12 + num_stages - 1) * 3.0
    names = {f"{source}-{destination}": windows for (source, destination), windows in simulation.windows.items()}
    found = task_graph_of(
        length_without_s,
        {name: Sending(pipelined_times(windows), simulation.last_need_s) for name, windows in names.items()},
    )
    by_messages_s = length_by_messages_s(tables, message_s) - length_without_s
    delayed_s = length_s(found, dict.fromkeys(names, 12 * message_s)) - length_without_s
    assert least * by_messages_s - 1e-6 <= delayed_s <= by_messages_s + 1e-6
