"""What a client asked for last time it asks for beforehand; nobody notices but by the time that it takes."""

import gc
import time
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import runtime as rt
from runtime.arrays import ArraySpec
from runtime.client.habits import Asked, Habit
from runtime.messages import Fetch
from tests.patience import PATIENCE_S

add_one = rt.function(library="numpy", outputs=lambda x: x)(lambda x: x + 1)
wide = rt.function(library="numpy", outputs=lambda _: rt.ArraySpec((1 << 16,), "float64"))(lambda _x: np.zeros(1 << 16))


@rt.function(library="numpy", outputs=lambda x: x)
def root(x: Any) -> Any:
    """Return the square root of what must not be negative."""
    if (x < 0).any():
        raise ValueError("it has no root")
    return np.sqrt(x)


@pytest.mark.parametrize(
    ("last", "spec", "foreseen"),
    [
        (Asked.NOTHING, ArraySpec((2,), "float64"), Asked.NOTHING),
        (Asked.BEING_THERE, ArraySpec((1 << 20,), "float64"), Asked.BEING_THERE),
        (Asked.DATA, ArraySpec((1 << 13,), "float64"), Asked.DATA),
        (Asked.DATA, ArraySpec(((1 << 13) + 1,), "float64"), Asked.NOTHING),
        (Asked.BEING_THERE, ArraySpec((None, 2), "float64"), Asked.NOTHING),
    ],
)
def test_what_is_foreseen_is_what_was_asked_for_unless_that_is_much(
    last: Asked, spec: ArraySpec, foreseen: Asked
) -> None:
    habit = Habit()
    habit.last = last
    assert habit.foreseen(spec) is foreseen


@pytest.fixture(scope="module")
def runtime() -> Iterator[rt.LocalRuntime]:
    with rt.local(islands=1, hosts=2, devices=1) as started:
        yield started


@pytest.fixture
def questions(runtime: rt.LocalRuntime, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, bool]]:
    """The questions for arrays that are sent: handle, and whether for data."""
    sent: list[tuple[int, bool]] = []
    post = runtime._connection.post

    def noted(message: object, *payload: Any) -> None:
        if isinstance(message, Fetch):
            sent.append((message.handle, message.data))
        post(message, *payload)

    monkeypatch.setattr(runtime._connection, "post", noted)
    return sent


def placed(runtime: rt.LocalRuntime, function: rt.Function) -> Any:
    return rt.pmap(function, devices=runtime.make_virtual_device_set().add_slice(2))


@pytest.mark.slow
def test_data_come_without_being_asked_for_once_more(
    runtime: rt.LocalRuntime, questions: list[tuple[int, bool]]
) -> None:
    add = placed(runtime, add_one)
    for number in range(5):
        x = np.full(4, number, np.float64)
        added = add(x)
        assert len(questions) == number + (number > 0)  # beforehand, but for the first time
        x[:] = -1  # it is the caller's own again
        assert (added.numpy(PATIENCE_S) == number + 1).all()
        assert (added.wait(PATIENCE_S).numpy(PATIENCE_S) == number + 1).all()
        assert len(questions) == number + 1
    assert {data for _, data in questions} == {True}


@pytest.mark.slow
def test_who_stops_asking_is_told_no_more(runtime: rt.LocalRuntime, questions: list[tuple[int, bool]]) -> None:
    add = placed(runtime, add_one)
    x: Any = add(np.zeros(4)).wait(PATIENCE_S)
    for _ in range(4):
        x = add(x)
    assert len(questions) == 3  # the first of the loop is let go of after the second call
    assert (x.numpy(PATIENCE_S) == 5).all()


@pytest.mark.slow
def test_data_are_asked_for_where_only_being_there_was_foreseen(
    runtime: rt.LocalRuntime, questions: list[tuple[int, bool]]
) -> None:
    make = placed(runtime, wide)
    for _ in range(2):
        assert len(make(np.zeros(2)).wait(PATIENCE_S).numpy(PATIENCE_S)) == 1 << 17
    assert [data for _, data in questions] == [False, True] * 2  # a megabyte never comes for nothing


@pytest.mark.slow
def test_an_error_that_comes_beforehand_is_raised_to_all_who_ask(runtime: rt.LocalRuntime) -> None:
    take = placed(runtime, root)
    assert take(np.full(2, 9.0)).numpy(PATIENCE_S).tolist() == [3, 3]
    failed = take(np.full(2, -1.0))
    for _ in range(2):
        with pytest.raises(rt.ComputationError, match="it has no root"):
            failed.numpy(PATIENCE_S)
    with pytest.raises(rt.ComputationError, match="it has no root"):
        failed.wait(PATIENCE_S)
    is_gone = weakref.ref(failed)
    del failed
    assert is_gone() is None  # without the garbage collector, though others may hold the error
    del take(np.full(2, -1.0)).arrival  # nobody hears of it
    assert take(np.full(2, 4.0)).numpy(PATIENCE_S).tolist() == [2, 2]


@pytest.mark.slow
def test_who_does_not_wait_long_enough_may_ask_again(runtime: rt.LocalRuntime) -> None:
    wait = placed(runtime, rt.timer(0.3))
    wait(np.zeros(2)).numpy(PATIENCE_S)
    waiting = wait(np.ones(2))
    with pytest.raises(TimeoutError, match=f"array {waiting.handle} is not there after 0.01 s"):
        waiting.numpy(0.01)
    assert waiting.numpy(PATIENCE_S).shape == (2,)


@pytest.mark.slow
def test_what_was_asked_for_beforehand_is_not_kept(runtime: rt.LocalRuntime) -> None:
    add = placed(runtime, add_one)
    add(np.zeros(2)).numpy(PATIENCE_S)
    array = add(np.zeros(2))
    is_gone = weakref.ref(array)
    assert array.arrival is not None
    del array
    assert is_gone() is None  # without the garbage collector
    end_s = time.monotonic() + PATIENCE_S
    while any(host["handles"] for host in runtime.status()["hosts"]):
        gc.collect()
        assert time.monotonic() < end_s
