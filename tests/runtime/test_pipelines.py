from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import runtime as rt
from runtime.pipelines import Schedule, Step, gpipe, interleaved, one_forward_one_backward
from tests.patience import PATIENCE_S

SCHEDULES = st.sampled_from([gpipe, one_forward_one_backward, partial(one_forward_one_backward, extra=1)])


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


def test_one_extra_keeps_a_stage_at_work_while_it_waits_for_the_next() -> None:
    assert list(map(text, one_forward_one_backward(2, 4, extra=1))) == [
        "F0 F1 F2 B0 F3 B1 B2 B3",
        "F0 B0 F1 B1 F2 B2 F3 B3",
    ]


@pytest.mark.slow
def test_devices_follow_the_schedule_however_little_is_granted_ahead() -> None:
    stages, micro_batches = 3, 4
    steps = list(interleaved(gpipe(stages, micro_batches)))
    with rt.local(islands=stages, hosts=1, devices=1, look_ahead_s=1e-3) as runtime:
        devices = runtime.make_virtual_device_set()
        slices = [devices.add_slice(1, island=f"island-{stage}") for stage in range(stages)]
        run = {
            each: rt.pmap(rt.timer(3e-3, name=f"{each.kind} {each.micro_batch}"), devices=slices[each.stage])
            for each in steps
        }

        @rt.program
        def program(x: Any) -> Any:
            made: dict[Step, Any] = {}
            for each in steps:
                stage, number = each.stage, each.micro_batch
                if each.kind == "forward":
                    given = made[Step(stage - 1, "forward", number)] if stage else x
                elif stage == stages - 1:
                    given = made[Step(stage, "forward", number)]
                else:
                    given = made[Step(stage + 1, "backward", number)]
                made[each] = run[each](given)
            return made[steps[-1]]

        x = np.zeros(1, np.uint8)
        for _ in range(3):
            x = program(x)
        x.wait(PATIENCE_S)
        ran = sorted((each for each in runtime.trace() if each["ph"] == "X"), key=lambda each: each["ts"])
    for stage in range(stages):
        names = [each["name"] for each in ran if each["pid"] == stage]
        assert names == [f"{each.kind} {each.micro_batch}" for each in steps if each.stage == stage] * 3


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
