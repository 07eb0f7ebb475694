"""The thread of a device: what it passes on itself, and what it leaves when something fails."""

import time
from collections import deque
from collections.abc import Callable, Sequence
from threading import Event
from typing import Any, cast

import numpy as np
import pytest

from runtime.arrays import ArraySpec, Sharding
from runtime.executor import workers
from runtime.executor.computations import Array, Computation, Done, Feed, LoadedCall, LoadedFunction
from runtime.executor.devices import Device
from runtime.executor.loop import Loop
from runtime.messages import RegisterFunction
from runtime.program import Call, Input, Output, Value
from tests.patience import PATIENCE_S

SPEC, ONE = ArraySpec((2,), "float64"), Sharding(None, 1)


class HandLoop:
    """A loop that calls back when it is told to."""

    def __init__(self) -> None:
        self.busy_threads = 0
        self.posted: deque[Callable[[], None]] = deque()
        self._has_posted = Event()

    def post(self, callback: Callable[[], None]) -> None:
        self.posted.append(callback)
        self._has_posted.set()

    take_turn = post

    def turn(self) -> None:
        """Wait for what is posted, and call it."""
        assert self._has_posted.wait(PATIENCE_S)
        self._has_posted.clear()
        while self.posted:
            self.posted.popleft()()


class Chain:
    """Computations on one device, each of which takes what the one before it makes, and inputs that come by hand.

    Where they are ``apart`` each is of an execution of its own.
    """

    def __init__(self, calls: Sequence[Callable[[Array], Array]], *, apart: bool = False) -> None:
        self._apart = apart
        self.loop = HandLoop()
        self.device = Device(0, cast("Loop", self.loop), self._end)
        self.ended: list[tuple[int, Done]] = []
        self.computations = [self._computation(node, call) for node, call in enumerate(calls)]
        self.computations[0].inputs[0] = np.zeros(SPEC.shape)
        self.computations[0].missing = 0

    def _computation(self, node: int, call: Callable[[Array], Array]) -> Computation:
        function = LoadedFunction(RegisterFunction(node, f"f{node}", "numpy", 1.0, None))
        function._call = lambda x: [call(x)]
        placed = Call(node, function.name, 0, (Input(Value(node), ONE),), (Output(SPEC, ONE),))
        execution = node if self._apart else 0
        made = Computation(0, execution, node, 0, 0, LoadedCall(placed, function), cast("list[Array]", [None]), 1)
        made.feeds = (Feed(0, node - 1, 0, 0, execution - 1 if self._apart else None),) if node else ()
        made.is_told = False
        return made

    def enqueue(self) -> None:
        for computation in self.computations:
            self.device.enqueue(computation)

    def _end(self, computation: Computation, done: Done, _: float) -> None:
        """Pass on what has ended, as the dataflow of a host does."""
        self.ended.append((computation.node, done))
        for follower in self.computations[computation.node + 1 :][:1]:
            if done.outputs is None:
                follower.failure = done.failure
            else:
                follower.inputs[0] = done.outputs[0]
            follower.missing -= 1
            self.device.advance()

    def run(self) -> None:
        while len(self.ended) < len(self.computations):
            self.loop.turn()
        while self.loop.busy_threads:
            self.loop.turn()


def add_one(x: Array) -> Array:
    return x + 1


@pytest.mark.parametrize("apart", [False, True])
def test_results_are_passed_on_while_the_loop_does_something_else(apart: bool) -> None:
    goes_on, has_run = Event(), Event()

    def last(x: Array) -> Array:
        has_run.set()
        return x + 1

    def first(x: Array) -> Array:
        assert goes_on.wait(PATIENCE_S)
        return x + 1

    chain = Chain([first, add_one, add_one, last], apart=apart)
    chain.enqueue()
    goes_on.set()
    assert has_run.wait(PATIENCE_S)  # the loop has taken nothing yet
    assert chain.ended == []
    chain.run()
    assert [(node, done.outputs[0].tolist()) for node, done in chain.ended if done.outputs is not None] == [
        (node, [node + 1.0] * 2) for node in range(4)
    ]
    assert chain.device.queued == 0


def test_what_follows_a_failure_is_not_run() -> None:
    ran: list[int] = []

    def fail(x: Array) -> Array:
        raise ValueError(f"no luck with {x.shape}")

    def note(x: Array) -> Array:
        ran.append(1)
        return x

    chain = Chain([add_one, fail, note, note])
    chain.enqueue()
    chain.run()
    assert [(node, done.failure is None) for node, done in chain.ended] == [
        (0, True),
        (1, False),
        (2, False),
        (3, False),
    ]
    assert ran == []
    assert chain.device.queued == 0


@pytest.mark.parametrize("length", [2, 5])
def test_what_has_not_begun_can_be_dropped(length: int) -> None:
    has_begun, goes_on = Event(), Event()

    def wait(x: Array) -> Array:
        has_begun.set()
        assert goes_on.wait(PATIENCE_S)
        return x

    calls: list[Any] = [wait, *[add_one] * (length - 1)]
    chain = Chain(calls)
    chain.enqueue()
    assert has_begun.wait(PATIENCE_S)
    dropped = chain.device.drop(lambda _: True)
    assert [each.node for each in dropped] == list(range(1, length))
    assert not any(each.is_running for each in dropped)
    goes_on.set()
    while not chain.ended:
        chain.loop.turn()
    assert [node for node, _ in chain.ended] == [0]
    assert chain.device.queued == 0


def test_a_long_queue_behind_a_failure_leaves_the_thread_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(x: Array) -> Array:
        raise ValueError(f"no luck with {x.shape}")

    class Slow(Chain):
        def _end(self, computation: Computation, done: Done, end_s: float) -> None:
            super()._end(computation, done, end_s)
            if computation.node == 10:
                time.sleep(0.1)  # for the thread, if it were woken here

    chain = Slow([*[add_one] * 10, fail, *[add_one] * 200])
    monkeypatch.setattr(workers, "_MOST_UNTOLD", 1 << 30)  # the thread tells of all together
    chain.enqueue()
    chain.run()
    assert [done.outputs is not None for _, done in chain.ended] == [True] * 10 + [False] * 201
    assert chain.device.queued == 0


def test_a_function_that_ends_its_process_fails_alone() -> None:
    def leave(_: Array) -> Array:
        raise SystemExit(3)

    chain = Chain([leave, add_one])
    chain.enqueue()
    chain.run()
    first, second = (done for _, done in chain.ended)
    assert first.failure is not None
    assert "SystemExit" in first.failure.message
    assert second.outputs is None
