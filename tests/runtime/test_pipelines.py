import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.pipelines import Schedule, Step, gpipe, interleaved, one_forward_one_backward

SCHEDULES = st.sampled_from([gpipe, one_forward_one_backward])


def text(order: list[Step]) -> str:
    return " ".join(f"{step.kind[0].upper()}{step.micro_batch}" for step in order)


def test_gpipe_of_two_stages() -> None:
    assert list(map(text, gpipe(2, 3))) == ["F0 F1 F2 B2 B1 B0"] * 2


def test_one_forward_one_backward_of_three_stages() -> None:
    assert list(map(text, one_forward_one_backward(3, 4))) == [
        "F0 F1 F2 B0 F3 B1 B2 B3",
        "F0 F1 B0 F2 B1 F3 B2 B3",
        "F0 B0 F1 B1 F2 B2 F3 B3",
    ]


@given(SCHEDULES, st.integers(1, 6), st.integers(1, 9))
def test_every_step_is_taken_once_after_what_it_needs(schedule: Schedule, stages: int, micro_batches: int) -> None:
    orders = schedule(stages, micro_batches)
    merged = list(interleaved(orders))
    assert len(set(merged)) == len(merged) == 2 * stages * micro_batches
    at = {step: number for number, step in enumerate(merged)}
    for step in merged:
        stage, each = step.stage, step.micro_batch
        if step.kind == "forward" and stage:
            assert at[Step(stage - 1, "forward", each)] < at[step]
        if step.kind == "backward":
            assert at[Step(stage, "forward", each)] < at[step]
            assert stage == stages - 1 or at[Step(stage + 1, "backward", each)] < at[step]
    for stage, order in enumerate(orders):
        assert [step for step in merged if step.stage == stage] == order


@given(st.integers(1, 6), st.integers(1, 9))
def test_a_stage_keeps_no_more_micro_batches_than_stages_follow_it(stages: int, micro_batches: int) -> None:
    for stage, order in enumerate(one_forward_one_backward(stages, micro_batches)):
        kept = most = 0
        for step in order:
            kept += 1 if step.kind == "forward" else -1
            most = max(most, kept)
        assert most <= stages - stage


def test_orders_that_wait_for_each_other_are_refused() -> None:
    orders = [[Step(0, "backward", 0), Step(0, "forward", 0)], [Step(1, "forward", 0), Step(1, "backward", 0)]]
    with pytest.raises(ValueError, match="stages wait for each other"):
        list(interleaved(orders))
