from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from workloads.events import ElementState
from workloads.loading import ScenarioError, load_scenario

Document = dict[str, Any]


@pytest.fixture
def messages(document: Document, tmp_path: Path) -> Callable[..., list[str]]:
    """Return the messages of loading the small scenario with these events, without the file name."""

    def found(*events: object, **more: Any) -> list[str]:
        path = tmp_path / "events.yaml"
        path.write_text(yaml.safe_dump(document | {"events": list(events)} | more))
        try:
            load_scenario(path)
        except ScenarioError as error:
            return [message.removeprefix(f"{path}: ") for message in error.messages]
        return []

    return found


def _event(at_s: float, state: str, **named: object) -> Document:
    return {"at_s": at_s, "state": state} | (named or {"switch": "t0"})


def test_events_of_every_kind_are_read(document: Document, tmp_path: Path) -> None:
    named: list[Document] = [{"link": ["t1", "t0"]}, {"switch": "t0"}, {"host": "h3"}, {"controller": 0}]
    path = tmp_path / "events.yaml"
    document["events"] = [_event(at_s, state, **name) for at_s, state in ((1, "down"), (2.5, "up")) for name in named]
    path.write_text(yaml.safe_dump(document))
    scenario = load_scenario(path)
    assert [(event.at_s, event.state) for event in scenario.events[::4]] == [
        (1.0, ElementState.DOWN),
        (2.5, ElementState.UP),
    ]
    assert (scenario.events[0].link, scenario.events[0].parallel) == (("t1", "t0"), 0)
    assert scenario.recovery_s == 1.0


@pytest.mark.parametrize(
    ("events", "message"),
    [
        ([_event(-1, "down")], "events[0] t0, at_s: expected greater than or equal to 0, got -1"),
        ([_event(1, "off")], "events[0] t0, state: expected 'down' or 'up', got 'off'"),
        (
            [_event(1, "down", spine="t0")],
            "events[0].spine: unknown key; expected one of at_s, controller, host",
        ),
        (
            [_event(1, "down", switch="t0", host="h0")],
            "events[0] h0: expected exactly one of link, switch, host, controll",
        ),
        ([{"at_s": 1, "state": "down"}], "events[0]: expected exactly one of link, switch, host, controller"),
        ([_event(1, "down", controller=1)], "events[0].controller: expected less than or equal to 0, got 1"),
        ([_event(1, "down", switch="t0", parallel=0)], "events[0] t0: expected parallel only beside link"),
        (["down"], "events[0]: expected a mapping, got 'down'"),
    ],
)
def test_an_event_that_cannot_be_meant_is_named_with_its_key_path(
    messages: Callable[..., list[str]], events: list[object], message: str
) -> None:
    (found,) = messages(*events)
    assert found.startswith(message)


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ({"switch": "t7"}, ".switch: expected a switch of the topology, got 't7'"),
        ({"host": "t0"}, ".host: expected a host of the topology, got 't0'"),
        ({"link": ["h0", "t1"]}, ".link: expected two nodes with a cable between them, got [h0, t1]"),
        ({"link": ["x", "t1"]}, ".link: expected two nodes with a cable between them, got [x, t1]"),
        (
            {"link": ["t0", "t1"], "parallel": 1},
            " t0 to t1, parallel: expected less than 1, the cables between 't0' and 't1', got 1",
        ),
    ],
)
def test_what_the_topology_does_not_have_cannot_fail(
    messages: Callable[..., list[str]], named: Document, message: str
) -> None:
    assert messages(_event(1, "down", **named), _event(3, "up", **named)) == [
        f"events[{number}]{message}" for number in range(2)
    ]


@pytest.mark.parametrize(
    ("states", "wrong"),
    [
        ([(1, "up"), (2, "down"), (3, "up")], ["events[0] t0, state: expected down: it is up already"]),
        ([(1, "down"), (2, "down"), (3, "up")], ["events[1] t0, state: expected up: it is down already"]),
        ([(1, "down")], ["events[0] t0, state: expected a later event that brings it up; jobs would wait for it"]),
        (
            [(2, "down"), (1, "up")],
            ["events[1] t0, at_s: expected no less than the 2 before, got 1"],
        ),
        (
            [(1, "down"), (2, "up"), (2.5, "down"), (3, "up")],
            ["events[2] t0, at_s: expected no less than 3.0: until then it recovers, got 2.5"],
        ),
        ([(1, "down"), (2, "up"), (3, "down"), (4, "up")], []),
    ],
)
def test_what_happens_to_one_switch_has_to_make_sense(
    messages: Callable[..., list[str]], states: list[tuple[float, str]], wrong: list[str]
) -> None:
    assert messages(*(_event(at_s, state) for at_s, state in states)) == wrong


def test_a_cable_is_the_same_from_either_end_and_back_at_once(messages: Callable[..., list[str]]) -> None:
    cuts = [(1, "down"), (2, "up"), (2, "down"), (2.5, "up")]
    ends = (["t0", "t1"], ["t1", "t0"])
    assert messages(*(_event(at_s, state, link=ends[n % 2]) for n, (at_s, state) in enumerate(cuts))) == []


def test_a_longer_recovery_is_checked_against(messages: Callable[..., list[str]]) -> None:
    states = [(1, "down"), (2, "up"), (3, "down"), (4, "up")]
    events = [_event(at_s, state, controller=0) for at_s, state in states]
    assert messages(*events, recovery_s=1) == []
    assert messages(*events, recovery_s=1.5) == [
        "events[2].at_s: expected no less than 3.5: until then it recovers, got 3"
    ]
    assert messages(*events, recovery_s=-1) == ["recovery_s: expected greater than or equal to 0, got -1"]
