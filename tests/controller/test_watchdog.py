"""The watchdog measures and counts delays of the event loop, says what held it, and is never loud."""

import asyncio
import logging
import time

import pytest

from controller.watchdog import IDLE_PERIOD_S, LONG_STALL_S, PERIOD_S, STALL_S, Watchdog, lateness_s


class Now:
    def __init__(self) -> None:
        self.s = 100.0

    def __call__(self) -> float:
        return self.s


def test_delays_are_counted_and_the_worst_is_kept() -> None:
    told: list[float] = []
    watchdog = Watchdog(Now())
    watchdog.follow(told.append)
    for late_s in (0.01, STALL_S + 0.01, LONG_STALL_S + 0.05, 0.06, 0.0):
        watchdog.note(late_s)
    assert (watchdog.stalls, watchdog.long_stalls) == (3, 1)
    assert watchdog.worst_stall_s == LONG_STALL_S + 0.05
    assert told == [STALL_S + 0.01, LONG_STALL_S + 0.05, 0.06]


def test_long_stalls_are_logged_at_most_every_ten_seconds(caplog: pytest.LogCaptureFixture) -> None:
    now = Now()
    watchdog = Watchdog(now)
    for _ in range(5):
        watchdog.note(1.5, collecting_s=0.5)
        now.s += 1.0
    assert len(caplog.records) == 1
    assert "stood still for 1.50 s; garbage collection took 0.50 s of it" in caplog.text
    now.s += 10.0
    watchdog.note(2.0)
    assert len(caplog.records) == 2
    assert "stood still for 2.00 s; 4 more since the last such line" in caplog.text


def test_a_loop_that_is_held_is_noticed_and_what_holds_it_is_named(caplog: pytest.LogCaptureFixture) -> None:
    def hold_the_loop() -> None:
        end_s = time.monotonic() + 2 * LONG_STALL_S
        while time.monotonic() < end_s:
            time.sleep(0.01)

    async def scenario() -> Watchdog:
        watchdog = Watchdog()
        running = asyncio.create_task(watchdog.run())
        await asyncio.sleep(3 * PERIOD_S)
        hold_the_loop()
        await asyncio.sleep(2 * IDLE_PERIOD_S)
        running.cancel()
        return watchdog

    with caplog.at_level(logging.WARNING):
        watchdog = asyncio.run(scenario())
    assert watchdog.worst_stall_s > LONG_STALL_S
    assert watchdog.long_stalls >= 1
    assert "in hold_the_loop" in caplog.text


def test_while_the_loop_is_held_its_delay_is_known_already() -> None:
    async def scenario() -> tuple[float, float]:
        watchdog = Watchdog()
        before_s = watchdog.overdue_s
        running = asyncio.create_task(watchdog.run())
        await asyncio.sleep(0)
        time.sleep(IDLE_PERIOD_S + 0.2)
        overdue_s = watchdog.overdue_s
        running.cancel()
        return before_s, overdue_s

    before_s, overdue_s = asyncio.run(scenario())
    assert before_s == 0.0
    assert overdue_s >= 0.2


@pytest.mark.parametrize(
    ("late_s", "period_s", "worked_s", "expected_s"),
    [
        (0.3, PERIOD_S, 0.3, 0.3),
        (0.0, IDLE_PERIOD_S, 0.05, 0.0),  # many short steps, and the timer was on time
        (0.3, IDLE_PERIOD_S, 0.38, 0.38),  # the loop was held before the timer was due
        (0.3, IDLE_PERIOD_S, 9.0, 0.3 + IDLE_PERIOD_S - PERIOD_S),
        (0.3, IDLE_PERIOD_S, 0.0, 0.3),  # something else held the interpreter
    ],
)
def test_the_delay_of_a_slow_timer_tells_that_of_a_fast_one(
    late_s: float, period_s: float, worked_s: float, expected_s: float
) -> None:
    assert lateness_s(late_s, period_s, worked_s) == pytest.approx(expected_s)
