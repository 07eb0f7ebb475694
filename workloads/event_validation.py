"""Validation of a scenario's events against each other and against the topology."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from topologies.fabric import Fabric
from topologies.problems import Problem
from workloads.events import EVENT_KEYS, ElementState

Events = Mapping[int, Mapping[str, Any]]
"""Valid events by their position in the list."""

_RECOVERING = ("switch", "controller")


def event_problems(events: Events, recovery_s: float) -> Iterator[Problem]:
    """Yield events out of order, and changes of state that are repeated, too early or never reverted."""
    before_s = 0.0
    for number, event in events.items():
        if event["at_s"] < before_s:
            yield Problem(
                ("events", number, "at_s"), f"expected no less than the {before_s} before, got {event['at_s']}"
            )
        before_s = max(before_s, event["at_s"])
    histories: dict[tuple[object, ...], list[int]] = {}
    for number, event in events.items():
        histories.setdefault(_element(event), []).append(number)
    for numbers in histories.values():
        yield from _problems_of_one(numbers, events, recovery_s)


def unknown_element_problems(events: Events, fabric: Fabric) -> Iterator[Problem]:
    """Yield events of elements that the topology does not have."""
    for number, event in events.items():
        for key, kind, names in (("switch", "switch", fabric.switches), ("host", "host", fabric.hosts)):
            if key in event and event[key] not in names:
                yield Problem(("events", number, key), f"expected a {kind} of the topology, got {event[key]!r}")
        if "link" in event:
            first, second = event["link"]
            count = len(fabric.links_between(first, second)) if first in fabric.links_from else 0
            if not count:
                expected = f"expected two nodes with a cable between them, got [{first}, {second}]"
                yield Problem(("events", number, "link"), expected)
            elif event.get("parallel", 0) >= count:
                expected = f"expected less than {count}, the cables between {first!r} and {second!r}"
                yield Problem(("events", number, "parallel"), f"{expected}, got {event['parallel']}")


def _problems_of_one(numbers: Sequence[int], events: Events, recovery_s: float) -> Iterator[Problem]:
    """Yield the problems in the history of one element, which is up at first."""
    is_up, serves_s = True, 0.0
    for number in numbers:
        event = events[number]
        comes_up = event["state"] == ElementState.UP
        if comes_up == is_up:
            expected = "expected down: it is up" if is_up else "expected up: it is down"
            yield Problem(("events", number, "state"), f"{expected} already")
        elif event["at_s"] < serves_s:
            expected = f"expected no less than {serves_s}: until then it recovers"
            yield Problem(("events", number, "at_s"), f"{expected}, got {event['at_s']}")
        is_up = comes_up
        if is_up and any(key in event for key in _RECOVERING):
            serves_s = event["at_s"] + recovery_s
    if not is_up:
        yield Problem(
            ("events", numbers[-1], "state"), "expected a later event that brings it up; jobs would wait for it"
        )


def _element(event: Mapping[str, Any]) -> tuple[object, ...]:
    """Return the key of the element that an event concerns."""
    if "link" in event:
        return ("link", *sorted(event["link"]), event.get("parallel", 0))
    return next((key, event[key]) for key in EVENT_KEYS if key in event)
