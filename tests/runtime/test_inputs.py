"""Input pipelines: the iterators of a host, and batches of real processes."""

import gc
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import runtime as rt
from runtime.executor.inputs import InputBatches
from tests.patience import PATIENCE_S

ROWS, LAST = 2, 12
OF_SHARD = rt.ArraySpec((ROWS,), "int64")


def numbers(step: int, shard: int, _shards: int) -> Iterator[Any]:
    """Yield batches that say which step and rows they are."""
    for each in range(step, LAST):
        yield np.arange(ROWS) + ROWS * shard + 1000 * each


def batch(step: int, shards: int) -> list[int]:
    return [row + 1000 * step for row in range(ROWS * shards)]


def until(holds: Callable[[], bool]) -> None:
    end_s = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end_s
        time.sleep(0.01)


@given(st.lists(st.tuples(st.integers(0, LAST + 2), st.integers(0, 2)), max_size=30))
def test_a_batch_depends_on_its_step_and_shard_alone(asked: list[tuple[int, int]]) -> None:
    found = InputBatches(numbers)
    for step, shard in asked:
        place = np.array([(step, shard, 3)])
        if step < LAST:
            assert found(place)[0].tolist() == batch(step, 3)[ROWS * shard : ROWS * (shard + 1)]
        else:
            with pytest.raises(rt.InputEndedError, match=f"there is no step {step} in shard {shard}"):
                found(place)


def test_steps_that_follow_each_other_come_from_one_iterator_which_is_closed_when_others_come() -> None:
    began: list[tuple[int, int]] = []

    def counted(step: int, shard: int, shards: int) -> Iterator[Any]:
        began.append((step, shard))
        try:
            yield from numbers(step, shard, shards)
        finally:
            began.append((-1, shard))

    found = InputBatches(counted)
    for step, shard in [(0, 0), (0, 1), (1, 0), (2, 0), (1, 1), (7, 0), (8, 0)]:
        found(np.array([(step, shard, 2)]))
    assert began == [(0, 0), (0, 1), (-1, 0), (7, 0)]
    with pytest.raises(rt.InputEndedError):
        found(np.array([(-1, 1, 2)]))
    assert began[4:] == [(-1, 1)]


@pytest.fixture(scope="module")
def runtime() -> Iterator[rt.LocalRuntime]:
    with rt.local(islands=1, hosts=2, devices=2, weights={"other": 1}) as started:
        yield started


def add(x: Any) -> Any:
    return x + 1


add_one = rt.function(library="numpy", outputs=lambda x: x)(add)


@pytest.mark.slow
def test_programs_take_batches_by_handle_until_there_are_no_more(runtime: rt.LocalRuntime) -> None:
    devices = runtime.make_virtual_device_set().add_slice(4)
    added = rt.pmap(add_one, devices=devices)
    step = rt.program(lambda x: added(added(x)))
    taken = []
    for each in rt.input_pipeline(numbers, devices=devices, outputs=OF_SHARD):
        assert isinstance(each, rt.Array)
        taken.append(step(each))
    assert [each.numpy(PATIENCE_S).tolist() for each in taken] == [
        [row + 2 for row in batch(step, 4)] for step in range(LAST)
    ]
    names = {(each["name"], each["tid"]) for each in runtime.trace() if each["ph"] == "X"}
    assert ("numbers", 2) in names  # a row of its own after those of the two devices
    assert {tid for name, tid in names if name == "add"} == {0, 1}


@pytest.mark.slow
def test_a_pipeline_goes_on_where_another_one_was(runtime: rt.LocalRuntime) -> None:
    devices = runtime.make_virtual_device_set().add_slice(2)

    def pairs(step: int, shard: int, _shards: int) -> Iterator[Any]:
        while True:
            numbers = np.random.default_rng((step, shard))
            yield numbers.random((1, 3)), numbers.integers(10, size=(1,))
            step += 1

    outputs = [rt.ArraySpec((1, 3), "float64"), rt.ArraySpec((1,), "int64")]
    made = rt.input_pipeline(pairs, devices=devices, outputs=outputs, depth=5)
    for _ in range(4):
        next(made)
    with made, rt.input_pipeline(pairs, devices=devices, outputs=outputs, depth=1, start=made.step) as again:
        for _ in range(3):
            for one, other in zip(next(made), next(again), strict=True):
                assert one.numpy(PATIENCE_S).tolist() == other.numpy(PATIENCE_S).tolist()
        assert made.step == again.step == 7
    with pytest.raises(StopIteration):
        next(made)


@pytest.mark.slow
def test_batches_are_made_so_many_ahead_and_no_more(runtime: rt.LocalRuntime, tmp_path: Path) -> None:
    marks = str(tmp_path)
    devices = runtime.make_virtual_device_set().add_slice(1)

    def marked(step: int, _shard: int, _shards: int) -> Iterator[Any]:
        while True:
            Path(marks, str(step)).touch()
            yield np.array([step])
            step += 1

    with rt.input_pipeline(marked, devices=devices, outputs=rt.ArraySpec((1,), "int64"), depth=3) as made:
        after = rt.pmap(add_one, devices=devices.host_cpus)  # on the same thread, after all that was asked for
        after(np.zeros(1)).wait(PATIENCE_S)
        assert len(list(Path(marks).iterdir())) == 3
        for _ in range(5):
            next(made)
        after(np.zeros(1)).wait(PATIENCE_S)
        assert len(list(Path(marks).iterdir())) == 8


@pytest.mark.slow
def test_batches_are_made_while_devices_are_busy(runtime: rt.LocalRuntime) -> None:
    devices = runtime.make_virtual_device_set().add_slice(4)
    with rt.connect(runtime.address, runtime.tokens["other"]) as other:
        rt.pmap(rt.timer(600), devices=other.make_virtual_device_set().add_slice(4))(np.zeros(4))
        until(lambda: all(sum(host["queued"]) == 2 for host in runtime.status()["hosts"]))
        with rt.input_pipeline(numbers, devices=devices, outputs=OF_SHARD) as made:
            assert next(made).numpy(PATIENCE_S).tolist() == batch(0, 4)


@pytest.mark.slow
def test_what_an_input_function_raises_comes_with_its_traceback_at_its_step(runtime: rt.LocalRuntime) -> None:
    devices = runtime.make_virtual_device_set().add_slice(2)

    def fails(step: int, shard: int, _shards: int) -> Iterator[Any]:
        for each in range(step, 10):
            if each == 2 and shard == 1:
                raise OSError("the file of step 2 is gone")
            yield np.array([each])

    made = rt.input_pipeline(fails, devices=devices, outputs=rt.ArraySpec((1,), "int64"))
    assert [next(made).numpy(PATIENCE_S).tolist() for _ in range(2)] == [[0, 0], [1, 1]]
    for _ in range(2):
        with pytest.raises(rt.ComputationError, match="fails raised OSError: the file of step 2 is gone") as caught:
            next(made)
        assert 'raise OSError("the file of step 2 is gone")' in str(caught.value)
        assert "in test_what_an_input_function_raises" in str(caught.value)
        assert made.step == 2
    made.step = 3  # whoever can do without it passes over it
    assert next(made).numpy(PATIENCE_S).tolist() == [3, 3]


@pytest.mark.slow
def test_batches_of_another_shape_than_stated_are_refused_by_name(runtime: rt.LocalRuntime) -> None:
    devices = runtime.make_virtual_device_set().add_slice(1)
    made = rt.input_pipeline(numbers, devices=devices, outputs=rt.ArraySpec((ROWS + 1,), "int64"))
    with pytest.raises(rt.ComputationError, match=r"numbers: stated that it returns \(int64\[3\]\), and returned"):
        next(made)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["close", "end of the client"])
def test_a_pipeline_that_ends_lets_its_function_end(runtime: rt.LocalRuntime, tmp_path: Path, how: str) -> None:
    mark = str(tmp_path / "closed")

    def held(step: int, _shard: int, _shards: int) -> Iterator[Any]:
        try:
            while True:
                yield np.array([step])
        finally:
            Path(mark).touch()

    with rt.connect(runtime.address, runtime.tokens["other"]) as client:
        devices = client.make_virtual_device_set().add_slice(1)
        made = rt.input_pipeline(held, devices=devices, outputs=rt.ArraySpec((1,), "int64"))
        next(made).wait(PATIENCE_S)
        assert not Path(mark).exists()
        if how == "close":
            made.close()
            until(Path(mark).exists)
    until(Path(mark).exists)


@pytest.mark.slow
def test_batches_that_nobody_took_are_forgotten(runtime: rt.LocalRuntime) -> None:
    gc.collect()
    until(lambda: all(not host["handles"] for host in runtime.status()["hosts"]))
    devices = runtime.make_virtual_device_set().add_slice(4)
    made = rt.input_pipeline(numbers, devices=devices, outputs=OF_SHARD, depth=4)
    until(lambda: [host["spilled_bytes"] for host in runtime.status()["hosts"]] == [4 * 2 * ROWS * 8] * 2)
    made.close()
    until(lambda: all(not host["handles"] and not host["spilled_bytes"] for host in runtime.status()["hosts"]))


@pytest.mark.slow
def test_a_pipeline_goes_on_where_its_slice_moves_when_a_host_is_killed() -> None:
    with rt.local(islands=1, hosts=2, devices=2) as runtime:
        devices = runtime.make_virtual_device_set().add_slice(2)
        made = rt.input_pipeline(numbers, devices=devices, outputs=OF_SHARD)
        assert next(made).numpy(PATIENCE_S).tolist() == batch(0, 2)
        status = runtime.status()
        (host,) = [host for host in status["hosts"] if host["handles"]]
        os.kill(host["pid"], signal.SIGKILL)
        until(lambda: runtime.status()["epoch"] > status["epoch"])
        with pytest.raises(rt.LostError, match=f"host {host['host']} of island island-0 ended"):
            next(made)
        assert [each.numpy(PATIENCE_S).tolist() for each in made] == [batch(step, 2) for step in range(1, LAST)]


@pytest.mark.slow
def test_a_pipeline_follows_a_client_that_moves() -> None:
    with rt.local(islands=2, devices=2, weights={"other": 1}) as runtime:
        with rt.connect(runtime.address, runtime.tokens["other"]) as client:
            devices = client.make_virtual_device_set().add_slice(2)
            runtime.migrate("other", "island-0")
            made = rt.input_pipeline(numbers, devices=devices, outputs=OF_SHARD)
            batches = [next(made).numpy(PATIENCE_S).tolist() for _ in range(3)]
            runtime.migrate("other", "island-1")
            batches += [each.numpy(PATIENCE_S).tolist() for each in made]
        assert batches == [batch(step, 2) for step in range(LAST)]
        assert {each["pid"] for each in runtime.trace() if each["name"] == "numbers"} == {0, 1}


@pytest.mark.slow
def test_what_cannot_be_a_pipeline_is_refused_by_name(runtime: rt.LocalRuntime) -> None:
    devices = runtime.make_virtual_device_set().add_slice(2)
    with pytest.raises(ValueError, match="depth: expected at least one batch, got 0"):
        rt.input_pipeline(numbers, devices=devices, outputs=OF_SHARD, depth=0)
    with pytest.raises(ValueError, match="start: expected a step from 0, got -1"):
        rt.input_pipeline(numbers, devices=devices, outputs=OF_SHARD, start=-1)
    made = rt.input_pipeline(numbers, devices=devices, outputs=OF_SHARD)
    with pytest.raises(ValueError, match="numbers: take batches outside of programs"):
        rt.program(lambda: next(made))()
    with pytest.raises(ValueError, match="summed: collective functions do not run on the CPUs of hosts"):
        rt.pmap(rt.function(collective=True, name="summed")(lambda x: x), devices=devices.host_cpus)
