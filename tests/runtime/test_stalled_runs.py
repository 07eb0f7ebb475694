"""When a host says that a run is stalled, with a clock that does not move by itself."""

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from runtime import messages
from runtime.arrays import Sharding
from runtime.executor import stalls
from runtime.executor.stalls import Stalls
from runtime.lowering.assign import AT_CLIENT, Placement
from runtime.lowering.subprograms import lower
from runtime.program import Call, Input, Output, Program, Value
from tests.runtime.simulated_hosts import ENOUGH_BYTES, SPEC, Host, start

RUN = 4


@dataclass
class Dataflow:
    """Runs that wait and stall as a test says."""

    is_waiting_: bool = True
    is_stalled_: bool = True

    def is_running(self, _run: int) -> bool:
        return True

    def is_waiting(self, _run: int) -> bool:
        return self.is_waiting_

    def is_stalled(self, _run: int) -> bool:
        return self.is_stalled_


@dataclass
class Held:
    """A reservation that waits."""

    execution: int = RUN
    waiting: list[Callable[[], None]] = field(default_factory=list)


class World:
    """A host whose timers end when a test says so."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.timers: list[tuple[float, Callable[[], None]]] = []
        self.told: list[bool] = []
        self.dataflow = Dataflow()
        loop: Any = self
        dataflow: Any = self.dataflow
        self.stalls = Stalls(loop, dataflow, self.tell)

    def at(self, time_s: float, callback: Callable[[], None]) -> None:
        self.timers.append((time_s, callback))

    def tell(self, message: Any) -> None:
        assert message == messages.RunStalled(RUN, message.is_stalled)
        self.told.append(message.is_stalled)

    def watch(self) -> Held:
        held = Held()
        waiting: Any = held
        self.stalls.watch(waiting)
        return held

    def look(self) -> float:
        """Let the only timer end, and return after how long."""
        before_s = self.now_s
        ((self.now_s, callback),) = self.timers
        self.timers.clear()
        callback()
        return self.now_s - before_s


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    made = World()
    monkeypatch.setattr(stalls, "time", SimpleNamespace(perf_counter=lambda: made.now_s))
    return made


def test_a_stalled_run_goes_on_with_a_reservation_that_waited_or_one_that_found_room_at_once(world: World) -> None:
    held = world.watch()
    world.look()
    assert world.told == [True]
    world.stalls.go_on(RUN)
    assert world.told == [True, False]
    world.look()
    assert world.told == [True, False, True]
    held.waiting[0]()
    assert world.told == [True, False, True, False]


def test_what_goes_on_before_it_was_told_is_not_told(world: World) -> None:
    world.watch()
    world.stalls.go_on(RUN)
    world.stalls.go_on(RUN + 1)
    world.dataflow.is_waiting_ = False
    world.look()
    assert (world.told, world.timers) == ([], [])


def test_a_run_that_waits_and_does_not_stall_is_looked_at_ever_less_often(world: World) -> None:
    world.dataflow.is_stalled_ = False
    world.watch()
    assert [world.look() for _ in range(6)] == pytest.approx([0.01, 0.02, 0.04, 0.08, 0.1, 0.1])
    world.dataflow.is_stalled_ = True
    world.look()
    world.stalls.go_on(RUN)
    assert world.look() == pytest.approx(stalls.STALLED_S)


@pytest.mark.parametrize("is_full", [False, True])
def test_each_grant_says_whether_it_waits_or_goes_on(is_full: bool) -> None:
    whole = Sharding(None, 1)
    call = Call(0, "scale", 0, (Input(Value(0), whole),), (Output(SPEC, whole),))
    lowered = lower(Program("step", (SPEC,), (call,), (Value(1),)), {0: Placement("island", (0,), (0,))}, [AT_CLIENT])
    hosts: list[Host] = []
    hosts += [Host(0, hosts, 2 * SPEC.size_bytes if is_full else ENOUGH_BYTES)]
    for number in range(2):
        start(hosts, number, lowered, [-1], [np.ones(SPEC.shape)], first=number, stretch=1)
    from_server = hosts[0].wire[-1]
    while from_server:
        from_server.popleft()()
    assert (hosts[0].went_on, hosts[0].waits) == (([0], [1]) if is_full else ([0, 1], []))
