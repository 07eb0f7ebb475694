"""Programs of tenants whose computations are timers: what they send, and how long they take."""

import time
from collections.abc import Iterator
from functools import partial

import pytest

import runtime as rt
from experiments.real_islands.programs import data_parallel, initial_state, pipelined
from experiments.real_islands.rates import Trained, train
from experiments.real_islands.spread import _host
from runtime.pipelines import gpipe, one_forward_one_backward
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.slow

STEP_S = 0.01


@pytest.fixture(scope="module")
def slices() -> Iterator[list[rt.VirtualSlice]]:
    with rt.local(islands=2, hosts=1, devices=1) as runtime:
        devices = runtime.make_virtual_device_set()
        yield [devices.add_slice(1, island=f"island-{number}") for number in range(2)]


@pytest.mark.parametrize("schedule", [gpipe, partial(one_forward_one_backward, extra=1)])
def test_a_pipeline_sends_each_activation_and_gradient_once(slices: list[rt.VirtualSlice], schedule: object) -> None:
    step = pipelined(slices, schedule, micro_batches=3, stage_s=STEP_S, activation_bytes=1000)  # type: ignore[arg-type]
    state = initial_state(slices)
    program = step.trace(*state)  # type: ignore[attr-defined]
    names = [call.name for _, call in program.nodes()]
    assert (names.count("forward"), names.count("backward"), names.count("update")) == (6, 6, 2)
    crossing = 0
    for _, call in program.nodes():
        for given in call.inputs:
            maker = given.value.node
            if maker >= len(program.arguments) and program.call(maker).slice != call.slice:
                assert program.spec(given.value).size_bytes == 1000
                crossing += 1
    assert crossing == 6
    for array in step(*state):
        array.wait(PATIENCE_S)


def test_replicas_exchange_each_bucket(slices: list[rt.VirtualSlice]) -> None:
    step = data_parallel(slices, forward_s=STEP_S, backward_s=STEP_S, buckets=4, gradient_bytes=4000)
    state = initial_state(slices)
    program = step.trace(*state)  # type: ignore[attr-defined]
    updates = [call for _, call in program.nodes() if call.name == "update"]
    assert [len(each.inputs) for each in updates] == [8, 8]
    assert {program.spec(given.value).size_bytes for each in updates for given in each.inputs} == {1000}


def test_steps_take_at_least_what_their_timers_take(slices: list[rt.VirtualSlice]) -> None:
    step = pipelined(slices, gpipe, micro_batches=3, stage_s=STEP_S, activation_bytes=1000)
    began_s = time.perf_counter()
    trained = train(step, initial_state(slices), lambda ended: ended >= 8)
    assert len(trained.ended_s) == 6  # without those to warm up
    assert trained.ended_s[-1] - began_s >= 8 * 2 * STEP_S * (3 + 1)


def test_a_tenant_that_has_ended_no_two_steps_is_not_measured() -> None:
    with pytest.raises(ValueError, match="too few steps"):
        _ = Trained((1.0,)).step_s


def test_two_islands_are_on_either_side_of_the_link() -> None:
    assert [_host(number, 2) for number in range(2)] == [0, 1]
    assert [_host(number, 4) for number in range(4)] == [0, 1, 2, 3]
