"""Events of the log: they keep their kind and fields, and the last ones can be asked for."""

import logging

from controller.events import EventKind, RecentEvents, log_event


def test_recent_events_are_those_after_a_number_as_far_as_they_are_kept() -> None:
    logger, recent = logging.Logger("of this test"), RecentEvents()
    logger.addHandler(recent)
    logger.warning("no event")
    assert (recent.newest_number, recent.since(0)) == (0, ())
    for number in range(1, 1_501):
        log_event(logger, logging.WARNING, EventKind.SWITCH_AWAY, "switch %s: away", f"t{number}", switch=f"t{number}")
    assert recent.newest_number == 1_500
    assert [event.number for event in recent.since(1_498)] == [1_499, 1_500]
    assert [event.number for event in recent.since(0)] == [*range(501, 1_501)]
    assert recent.since(1_500) == ()
    newest = recent.since(1_499)[0]
    assert (newest.kind, newest.severity, newest.message) == (EventKind.SWITCH_AWAY, "warning", "switch t1500: away")
    assert newest.fields == {"switch": "t1500"}


def test_what_others_have_sent_is_escaped_and_cut_off() -> None:
    logger, recent = logging.Logger("of this test"), RecentEvents()
    logger.addHandler(recent)
    log_event(logger, logging.WARNING, EventKind.CALL_REFUSED, "%s refused", "\x1b[2J\n" + "x" * 100_000)
    (event,) = recent.since(0)
    assert event.message.startswith(r"\x1b[2J\nxxx")
    assert len(event.message) < 5_000
