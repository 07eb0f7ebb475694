"""Switches that are lost or never reached stand in the log, once, and none of them floods it."""

import asyncio
import logging
import re
from collections.abc import Callable

import pytest

from controller import events
from controller.events import EventKind, RecentEvents
from controller.southbound.reachability import Reachability
from controller.switch_addresses import SwitchAddress
from tests.patience import until

Lines = Callable[[], list[str]]


class Harness:
    """A Reachability of some switches whose time the test moves."""

    def __init__(self, num_switches: int = 1) -> None:
        self.now_s = 0.0
        self.names = [f"t{number}" for number in range(num_switches)]
        addresses = [SwitchAddress(name=name, address="127.0.0.1:9559") for name in self.names]
        self.reach = Reachability(addresses, lambda: self.now_s)

    def reached(self, name: str) -> None:
        async def reached() -> None:
            self.reach.reached(name)

        asyncio.run(reached())

    def pass_time(self, seconds: float) -> None:
        for _ in range(int(seconds)):
            self.now_s += 1.0
            self.reach.tell_due()


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Lines:
    """The lines logged so far, without the time of day."""
    return lambda: [re.sub(r"\d\d:\d\d:\d\d", "TIME", message) for message in caplog.messages]


def test_a_switch_that_is_never_reached_has_one_line_with_address_reason_and_time(lines: Lines) -> None:
    harness = Harness()
    harness.reach.away("t0", "UNAVAILABLE: connection refused")
    harness.pass_time(4)
    assert lines() == []
    harness.pass_time(600)
    assert lines() == ["switch t0 at 127.0.0.1:9559: not reached since TIME (5 s): UNAVAILABLE: connection refused"]
    harness.reached("t0")
    assert lines()[1:] == ["switch t0 at 127.0.0.1:9559: reached, after 604.0 s without contact"]


def test_a_switch_that_is_reached_soon_has_no_line(lines: Lines) -> None:
    harness = Harness()
    harness.reach.away("t0", "UNAVAILABLE")
    harness.reached("t0")
    harness.pass_time(60)
    assert lines() == []


def test_a_lost_switch_has_a_line_at_once_and_one_when_it_is_back(lines: Lines) -> None:
    harness = Harness()
    harness.reached("t0")
    harness.now_s = 100.0
    harness.reach.away("t0", "UNAVAILABLE: Socket closed")
    assert lines() == ["switch t0 at 127.0.0.1:9559: away since TIME: UNAVAILABLE: Socket closed"]
    for _ in range(20):
        harness.reach.away("t0", "UNAVAILABLE: connection refused")
    harness.pass_time(30)
    assert (harness.reach.changed_ago_s("t0"), harness.reach.reason("t0")) == (30, "UNAVAILABLE: connection refused")
    harness.reached("t0")
    assert lines()[1:] == ["switch t0 at 127.0.0.1:9559: reached, after 30.0 s without contact"]
    assert harness.reach.reason("t0") == ""


def test_a_switch_that_another_controller_takes_is_an_error(lines: Lines, caplog: pytest.LogCaptureFixture) -> None:
    harness = Harness()
    harness.reach.taken("t0", "lost to another controller")
    assert lines() == ["switch t0 at 127.0.0.1:9559: lost to another controller, since TIME"]
    assert caplog.records[0].levelno == logging.ERROR


def test_a_switch_that_flaps_has_a_line_a_minute_which_counts_the_others(lines: Lines) -> None:
    harness = Harness()
    harness.reached("t0")
    for _ in range(300):
        harness.reach.away("t0", "UNAVAILABLE")
        harness.pass_time(1)
        harness.reached("t0")
        harness.pass_time(1)
    shown = lines()
    assert 4 + 9 <= len(shown) <= 4 + 10
    assert "changes before this one are not logged)" in shown[-1]
    harness.pass_time(120)
    assert lines()[-1].startswith("switch t0 at 127.0.0.1:9559: reached, after 1.0 s without contact")


def test_hundreds_of_switches_that_die_at_once_do_not_flood_the_log_and_each_has_its_line(lines: Lines) -> None:
    async def die() -> None:
        harness = Harness(500)
        for name in harness.names:
            harness.reach.reached(name)
        for name in harness.names:
            harness.reach.away(name, "UNAVAILABLE")
        assert len(lines()) == 40
        harness.pass_time(60)
        assert len(lines()) == 40 + 30
        harness.pass_time(1000)
        assert len(lines()) == 500

    asyncio.run(die())


def test_switches_that_are_reached_first_are_information_of_which_there_is_not_too_much(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "_REFILL_S", 0.01)
    caplog.set_level(logging.INFO, "controller")

    async def reach() -> None:
        harness = Harness(500)
        for name in harness.names:
            harness.reach.reached(name)
        assert caplog.messages[:2] == [f"switch {name} at 127.0.0.1:9559: reached" for name in ("t0", "t1")]
        told = len(caplog.messages)
        assert told < 50
        await until(lambda: len(caplog.messages) > told)
        assert caplog.messages[told:] == [f"and {500 - told} more: switch reached"]

    asyncio.run(reach())


def test_a_lost_switch_is_an_event_with_address_reason_and_time() -> None:
    recent = RecentEvents()
    logging.getLogger("controller").addHandler(recent)
    try:
        harness = Harness()
        harness.reached("t0")
        harness.reach.away("t0", "UNAVAILABLE: Socket closed")
    finally:
        logging.getLogger("controller").removeHandler(recent)
    (event,) = recent.since(0)
    assert (event.kind, event.severity) == (EventKind.SWITCH_AWAY, "warning")
    assert abs(float(event.fields["since_s"] or 0.0) - event.time_s) < 5
    assert {**event.fields, "since_s": 0} == {
        "switch": "t0",
        "address": "127.0.0.1:9559",
        "reason": "UNAVAILABLE: Socket closed",
        "since_s": 0,
    }
