"""No two controllers may write at once, whatever databases and clocks do within reason."""

import heapq
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import count
from random import Random

import pytest

from controller.leadership.lease import VACANT, HeldLease, LeaseObserver, LeaseRecord

_LEASE_S = 4.0
_OBSERVE_S = 0.5


def test_a_holder_stops_before_the_others_stop_waiting() -> None:
    hold = HeldLease(1, _LEASE_S, confirmed_s=10.0)
    assert hold.renewal_due_s == 11.0
    assert hold.may_write(12.9)
    assert not hold.may_write(13.0)
    assert hold.is_over(13.0)
    assert hold.confirm(11.0).may_write(13.9)
    assert hold.confirm(9.0) == hold


def test_a_clock_that_goes_back_ends_the_hold() -> None:
    assert HeldLease(1, _LEASE_S, confirmed_s=10.0).is_over(9.9)


def test_a_doubt_is_lifted_only_by_a_renewal_that_is_asked_for_later() -> None:
    hold = HeldLease(1, _LEASE_S, confirmed_s=10.0).doubt(11.5)
    assert not hold.may_write(11.6)
    assert not hold.is_over(11.6)
    assert hold.renewal_due_s == 11.5
    assert not hold.confirm(11.0).may_write(11.6)
    assert not hold.confirm(11.5).may_write(11.6)
    assert hold.confirm(11.6).may_write(11.6)


def test_a_lease_that_was_never_held_or_was_given_back_is_taken_at_once() -> None:
    assert LeaseObserver(VACANT, 0.0).may_take
    assert not LeaseObserver(LeaseRecord("a", 1, 0, _LEASE_S), 0.0).may_take
    assert LeaseObserver(LeaseRecord("a", 1, 0, _LEASE_S), 0.0).observe(LeaseRecord("a", 1, 1, 0.0), 0.1).may_take


def test_every_renewal_that_is_seen_begins_the_wait_anew() -> None:
    observer = LeaseObserver(LeaseRecord("a", 1, 0, _LEASE_S), 0.0)
    for number in range(1, 100):
        observer = observer.observe(LeaseRecord("a", 1, number // 7, _LEASE_S), number * _OBSERVE_S)
        assert not observer.may_take


def test_a_time_without_observation_counts_for_two_intervals() -> None:
    record = LeaseRecord("a", 1, 0, _LEASE_S)
    observer = LeaseObserver(record, 0.0).observe(record, 1000.0)
    assert not observer.may_take
    assert observer.unchanged_s == 2 * _OBSERVE_S
    assert observer.observe(record, 0.0).unchanged_s == observer.unchanged_s  # nor does it run backwards


class _Controller:
    """One that counts its own time, and looks or renews when that says so, or much later."""

    def __init__(self, name: str, draws: Random) -> None:
        self.name = name
        self.observer: LeaseObserver | None = None
        self.hold: HeldLease | None = None
        self._rate = draws.choice((0.95, 1.0, 1.05))
        self._offset_s = draws.uniform(0, 1e3)

    def clock_s(self, true_s: float) -> float:
        return self._offset_s + self._rate * true_s

    def true_s(self, clock_s: float) -> float:
        return (clock_s - self._offset_s) / self._rate

    @property
    def next_clock_s(self) -> float:
        """When it next asks the database."""
        if self.hold is not None:
            return self.hold.renewal_due_s
        return 0.0 if self.observer is None else self.observer.observed_s + _OBSERVE_S / 10


class _Fabric:
    """Controllers and the record between them. What is asked is carried out and answered later, often much later."""

    def __init__(self, draws: Random) -> None:
        self.record = VACANT
        self.num_takes = 0
        self._draws = draws
        self._numbers = count()
        self._controllers = [_Controller(name, draws) for name in "abc"]
        self._due: list[tuple[float, int, Callable[[float], None]]] = []
        for controller in self._controllers:
            self._plan(0.0, controller)

    def step(self) -> None:
        """Have the next thing happen."""
        true_s, _, happen = heapq.heappop(self._due)
        happen(true_s)

    def _later(self, true_s: float, happen: Callable[[float], None]) -> None:
        delay_s = (
            self._draws.expovariate(200) if self._draws.random() < 0.98 else self._draws.uniform(0, 1.5 * _LEASE_S)
        )
        heapq.heappush(self._due, (true_s + delay_s, next(self._numbers), happen))

    def _plan(self, true_s: float, controller: _Controller) -> None:
        due_s = max(true_s, controller.true_s(controller.next_clock_s))
        self._later(due_s, partial(self._ask, controller))

    def _ask(self, controller: _Controller, true_s: float) -> None:
        asked_s, hold, observer = controller.clock_s(true_s), controller.hold, controller.observer
        if hold is not None and hold.is_over(asked_s):
            controller.hold = hold = controller.observer = observer = None
        if hold is not None:
            self._later(true_s, partial(self._renew, controller, asked_s))
        elif observer is not None and observer.may_take:
            self._later(true_s, partial(self._take, controller, asked_s, observer.record))
        else:
            self._later(true_s, lambda true_s: self._later(true_s, partial(self._look, controller, self.record)))

    def _renew(self, controller: _Controller, asked_s: float, true_s: float) -> None:
        hold = controller.hold
        assert hold is not None
        is_held = self.record.term == hold.term
        if is_held:
            self.record = replace(self.record, renewals=self.record.renewals + 1)
        self._later(true_s, partial(self._note_hold, controller, hold.confirm(asked_s) if is_held else None))

    def _take(self, controller: _Controller, asked_s: float, seen: LeaseRecord, true_s: float) -> None:
        hold = None
        if self.record == seen:
            for other in self._controllers:
                assert other.hold is None or other.true_s(other.hold.end_s) <= true_s, (other.hold, true_s)
            hold = HeldLease(seen.term + 1, _LEASE_S, asked_s)
            self.record = LeaseRecord(controller.name, hold.term, 0, _LEASE_S)
            self.num_takes += 1
        self._later(true_s, partial(self._note_hold, controller, hold))

    def _note_hold(self, controller: _Controller, hold: HeldLease | None, true_s: float) -> None:
        controller.hold, controller.observer = hold, None
        self._plan(true_s, controller)

    def _look(self, controller: _Controller, seen: LeaseRecord, true_s: float) -> None:
        now_s, observer = controller.clock_s(true_s), controller.observer
        controller.observer = LeaseObserver(seen, now_s) if observer is None else observer.observe(seen, now_s)
        self._plan(true_s, controller)


@pytest.mark.parametrize("seed", range(10))
def test_no_two_hold_the_lease_at_once(seed: int) -> None:
    """Clocks that differ by 5 %, a database that takes its time before and after it has committed, and stalls."""
    fabric = _Fabric(Random(seed))
    for _ in range(30_000):
        fabric.step()
    assert fabric.num_takes > 5
