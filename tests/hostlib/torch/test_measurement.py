"""What an iteration's events say: how long it computes, when transfers are released, and how long they may take."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostlib.torch.events import Completion, Event, Issue, StepBegin, Wait
from hostlib.torch.iterations import Iteration
from hostlib.torch.measurement import GroupTimes, Measurement, combined, measured

MS = 1_000_000


def issue(number: int, at_ms: float, operation: str = "allreduce_", group: str = "0") -> Issue:
    return Issue(number, int(at_ms * MS), operation, group, 8, None, ())


def completion(number: int, at_ms: float) -> Completion:
    return Completion(number, int(at_ms * MS))


def wait(number: int | None, begin_ms: float, end_ms: float) -> Wait:
    return Wait(number, int(begin_ms * MS), int(end_ms * MS))


def step_begin(at_ms: float) -> StepBegin:
    return StepBegin(int(at_ms * MS))


def measured_ms(
    *events: Event, end_ms: float = 100, begin_ms: float = 0
) -> tuple[float, dict[str, tuple[float, float]]]:
    """The computation in ms, and by group the release and the slack in ms."""
    found = measured(Iteration(int(begin_ms * MS), int(end_ms * MS), events))
    assert found.iteration_s == pytest.approx((end_ms - begin_ms) / 1e3)
    times = {
        name: (pytest.approx(each.release_s * 1e3), pytest.approx(each.slack_s * 1e3))
        for name, each in found.groups.items()
    }
    return pytest.approx(found.compute_s * 1e3), times


def test_buckets_of_ddp_may_take_the_rest_of_the_backward_pass() -> None:
    # The backward pass ends at 80, when the last bucket begins; then DDP waits until 95 for all of them.
    events = (
        issue(1, 40),
        issue(2, 60),
        completion(1, 70),
        issue(3, 80),
        completion(2, 85),
        completion(3, 95),
        step_begin(95),
    )
    assert measured_ms(*events) == (85, {"0": (40, 40)})


def test_futures_that_end_before_the_last_bucket_begins_stall_nobody() -> None:
    events = (issue(1, 40), completion(1, 50), issue(2, 80), completion(2, 80), step_begin(81))
    assert measured_ms(*events) == (100, {"0": (40, 40)})


def test_a_step_that_does_not_wait_for_them_is_no_stall() -> None:
    events = (issue(1, 40), step_begin(50), completion(1, 90))
    assert measured_ms(*events) == (100, {"0": (40, 60)})


def test_a_step_that_was_given_a_closure_has_the_backward_pass_within_itself() -> None:
    events = (step_begin(0), issue(1, 40), completion(1, 50), issue(2, 60), completion(2, 90))
    assert measured_ms(*events) == (70, {"0": (40, 20)})


def test_a_collective_has_ended_when_that_was_seen_first() -> None:
    events = (issue(1, 40), completion(1, 50), step_begin(50), completion(1, 55))
    assert measured_ms(*events) == (90, {"0": (40, 0)})


def test_what_is_waited_for_at_once_has_no_slack() -> None:
    # Tensor parallelism: 20 ms of waits, in which nothing is computed.
    events = (issue(1, 10), wait(1, 10, 20), completion(1, 20), issue(2, 50), wait(2, 50, 60), completion(2, 60))
    assert measured_ms(*events) == (80, {"0": (10, 0)})


def test_prefetched_parameters_may_take_until_the_layer_that_needs_them() -> None:
    # FSDP gathers layer 2 at 0 while layer 1 computes, and layer 3 at 30 while layer 2 does.
    gather = "_allgather_base_"
    events = (issue(1, 0, gather), wait(1, 30, 40), issue(2, 40, gather), wait(2, 60, 60), step_begin(90))
    assert measured_ms(*events) == (90, {"0": (0, 50)})


def test_overlapping_collectives_of_a_group_are_counted_once() -> None:
    gather = "_allgather_base_"
    events = (issue(1, 0, gather), issue(2, 10, gather), wait(1, 30, 30), wait(2, 50, 50))
    assert measured_ms(*events) == (100, {"0": (0, 50)})


def test_groups_are_measured_each_by_itself() -> None:
    events = (
        issue(1, 10, group="tensor"),
        wait(1, 10, 20),
        issue(2, 50, group="data"),
        issue(3, 60, group="data"),
        completion(2, 60),
        completion(3, 70),
        step_begin(70),
    )
    assert measured_ms(*events) == (80, {"tensor": (10, 0), "data": (40, 10)})


def test_what_is_sent_to_others_may_take_to_the_end_of_the_iteration() -> None:
    events = (issue(1, 30, "send", "pipeline"), issue(2, 40, "recv_", "pipeline"), wait(2, 40, 60))
    assert measured_ms(*events) == (80, {"pipeline": (30, 50)})
    # It stays so where others are waited for by their futures.
    futures = (issue(3, 70), completion(3, 90), step_begin(90))
    assert measured_ms(issue(1, 30, "send", "pipeline"), *futures) == (80, {"pipeline": (30, 50), "0": (70, 0)})


def test_waits_that_name_no_collective_are_for_the_oldest_that_nobody_has_waited_for() -> None:
    events = (issue(1, 0), issue(2, 10), issue(3, 20), wait(2, 20, 20), wait(None, 30, 40), wait(None, 60, 70))
    # 1: 0 to 30; 2: 10 to 20; 3: 20 to 60, less the 10 of the first wait.
    assert measured_ms(*events) == (80, {"0": (0, 50)})


def test_a_wait_for_nothing_that_is_known_only_stalls() -> None:
    events = (wait(None, 0, 10), wait(77, 20, 30), issue(1, 50), wait(1, 60, 60))
    assert measured_ms(*events) == (80, {"0": (30, 10)})


def test_waits_that_overlap_are_one_stall() -> None:
    events = (issue(1, 10), issue(2, 10), wait(1, 20, 50), wait(2, 40, 60))
    assert measured_ms(*events) == (60, {"0": (10, 10)})


def test_times_begin_with_the_iteration() -> None:
    events = (issue(1, 1010), wait(1, 1030, 1040))
    assert measured_ms(*events, begin_ms=1000, end_ms=1100) == (90, {"0": (10, 20)})


_EVENTS = st.lists(
    st.tuples(st.integers(0, 100), st.integers(0, 100), st.sampled_from(["0", "1"]), st.booleans(), st.booleans()),
    max_size=8,
)


@given(_EVENTS, st.booleans())
def test_all_times_lie_within_the_computation(rows: Sequence[tuple[int, int, str, bool, bool]], steps: bool) -> None:
    events: list[Event] = []
    for number, (one, other, group, is_waited_for, is_named) in enumerate(rows):
        begin, end = sorted((one, other))
        events.append(issue(number, begin, group=group))
        events.append(wait(number if is_named else None, begin, end) if is_waited_for else completion(number, end))
    if steps:
        events.append(step_begin(100))
    events.sort(key=lambda event: event.begin_ns if isinstance(event, Wait) else event.time_ns)
    found = measured(Iteration(0, 100 * MS, tuple(events)))
    assert 0 <= found.compute_s <= found.iteration_s
    assert set(found.groups) == {group for _, _, group, _, _ in rows}
    for times in found.groups.values():
        assert times.release_s >= 0
        assert 0 <= times.slack_s <= found.compute_s + 1e-9


def test_iterations_and_processes_are_combined_by_their_medians() -> None:
    found = combined(
        [
            Measurement(1.0, 0.5, {"0": GroupTimes(0.1, 0.2), "1": GroupTimes(0.4, 0.0)}),
            Measurement(2.0, 0.7, {"0": GroupTimes(0.3, 0.6)}),
            Measurement(9.0, 0.6, {"0": GroupTimes(0.2, 0.1)}),
        ]
    )
    assert found == Measurement(2.0, 0.6, {"0": GroupTimes(0.2, 0.2), "1": GroupTimes(0.4, 0.0)})
