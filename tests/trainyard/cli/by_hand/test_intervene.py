"""``trainyard pause``, ``resume``, ``release``, ``pin``, ``unpin`` and ``show pins`` against a running controller."""

import asyncio
import json
import re

import pytest

from tests.controller.api.operations.builders import PlannedController
from tests.trainyard.cli.conftest import Ended, Trainyard


def settle(controller: PlannedController) -> None:
    """Make the Plan of now; nothing else makes any."""
    asyncio.run(controller.planner.settle())


def answer(trainyard: Trainyard, *arguments: str) -> list[dict[str, object]]:
    ended = trainyard("show", *arguments)
    assert ended.exit_code == 0, ended.stderr
    found: list[dict[str, object]] = json.loads(ended.stdout)[arguments[0]]
    return found


def said(ended: Ended, status: int = 0) -> str:
    assert ended.exit_code == status, ended.stdout + ended.stderr
    return ended.stdout if status == 0 else ended.stderr


def test_planning_is_paused_and_goes_on(trainyard: Trainyard, address: str) -> None:
    at = ("--controller", address)
    assert said(trainyard("resume", *at)) == "planning was not paused\n"
    assert said(trainyard("pause", "--reason", "new ToR", *at)) == "planning is paused\n"
    assert said(trainyard("pause", *at)) == "already paused 4 s ago: new ToR\n"
    [state] = answer(trainyard, "controller", "--json", *at)
    assert state["pause"] == {"since_ago_s": 4.0, "by": "", "reason": "new ToR", "is_released": False}
    shown = " ".join(trainyard("show", "controller", *at).stdout.split())
    assert "paused 4 s ago: new ToR" in shown
    explained = said(trainyard("explain", "gpt", *at)).splitlines()
    assert explained[1].startswith("Planning was paused 4 s ago: new ToR.")
    assert said(trainyard("resume", *at)) == "planning goes on\n"
    [state] = answer(trainyard, "controller", "--json", *at)
    assert "pause" not in state


def test_all_is_released_and_comes_back(trainyard: Trainyard, controller: PlannedController, address: str) -> None:
    at = ("--controller", address)
    assert answer(trainyard, "rules", "--json", *at)
    assert said(trainyard("release", *at)) == "released: planning is paused, and all rules are out\n"
    assert said(trainyard("release", *at)) == "already released 4 s ago\n"
    assert answer(trainyard, "rules", "--json", *at) == []
    assert {flow["level"] for flow in answer(trainyard, "paths", "--json", *at)} == {0}
    assert "released 4 s ago" in " ".join(trainyard("show", "controller", *at).stdout.split())
    for name in ("gpt", "gpt/ring/0"):
        assert said(trainyard("explain", name, *at)).splitlines()[1].startswith("All rules are out (released 4 s ago)")
    trainyard("resume", *at)
    settle(controller)
    assert answer(trainyard, "rules", "--json", *at)


def test_a_level_is_pinned_explained_and_unpinned(
    trainyard: Trainyard, controller: PlannedController, address: str
) -> None:
    at = ("--controller", address)
    time = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC"
    pinned = said(trainyard("pin", "resnet", "--level", "7", "--for", "1h30m", *at))
    assert re.fullmatch(rf"pinned: resnet to level 7 until {time}; waits for the next Plan\n", pinned)
    idle = rf"It is pinned by somebody until {time} to level 7, which does not hold: waits for the next Plan\."
    assert re.fullmatch(idle, said(trainyard("explain", "resnet", *at)).splitlines()[1])
    settle(controller)
    [pin] = answer(trainyard, "pins", "--json", *at)
    assert (pin["name"], pin["level"], pin["left_s"], pin["holds"]) == ("resnet", 7, 5400.0, True)
    explained = said(trainyard("explain", "resnet", *at))
    assert re.search(rf"Its level was pinned by somebody until {time}", explained)
    assert "level 7" in explained.splitlines()[0]
    assert said(trainyard("unpin", "resnet", *at)) == "no longer pinned: resnet\n"
    assert "nothing is pinned for 'resnet'; pinned: nothing" in said(trainyard("unpin", "resnet", *at), 2)
    settle(controller)
    assert "pinned" not in said(trainyard("explain", "resnet", *at))
    assert answer(trainyard, "pins", "--json", *at) == []


def test_a_path_is_pinned_as_it_is_printed(
    trainyard: Trainyard, controller: PlannedController, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    at = ("--controller", address)
    explained = said(trainyard("explain", "gpt/ring/0", *at))
    paths = re.findall(r"h0\.0>\S+", explained.partition("Candidate paths")[2])
    taken = re.search(r"Its path, chosen by .*: (h0\S+)", explained)
    assert taken is not None
    other = next(path for path in paths if path != taken[1] and ".1>" in path)
    assert said(trainyard("pin", "gpt/ring/0", "--path", other, "--for", "2h", *at)).startswith(
        f"pinned: gpt/ring/0 to {other} until "
    )
    settle(controller)
    assert re.search(
        rf"Its path, pinned by somebody until .* UTC: {re.escape(other)}\n",
        said(trainyard("explain", "gpt/ring/0", *at)),
    )
    shown = " ".join(trainyard("show", "pins", *at).stdout.split())
    assert re.search(rf"gpt/ring/0 \S {re.escape(other)}", shown)
    assert "1 pin" in shown


@pytest.mark.parametrize(
    ("arguments", "status", "problem"),
    [
        (("gpt", "--for", "1h"), 2, "expected one of --level and --path"),
        (("gpt", "--level", "1", "--path", "h0>t0", "--for", "1h"), 2, "expected one of --level and --path"),
        (("gpt", "--level", "1"), 2, "--for"),
        (("gpt", "--level", "8", "--for", "1h"), 2, "Invalid value for '--level': should be less than or equal to 7"),
        (("gpt", "--level", "1", "--for", "soon"), 2, "--for 'soon': expected a time such as"),
        (("gpt", "--level", "1", "--for", "0s"), 1, "for_s: a pin for 0 s has expired already"),
        (("gpt", "--level", "1", "--for", "8d"), 1, "for_s: a pin holds for 604800 s (7 days) at most, not 691200 s"),
        (("nobody", "--level", "1", "--for", "1h"), 2, "no job 'nobody' is registered; registered: bert, gpt, resnet"),
        (
            ("gpt/ring/7", "--path", "h0>t0", "--for", "1h"),
            2,
            "job 'gpt' has no flow 'gpt/ring/7'; its flows: gpt/ring/0 to gpt/ring/1",
        ),
        (("gpt/ring/0", "--path", "h0>t1>h2", "--for", "1h"), 1, "no link leads from h0 to t1; h0 has some to t0"),
    ],
)
def test_what_cannot_be_pinned_is_one_line(
    trainyard: Trainyard, address: str, arguments: tuple[str, ...], status: int, problem: str
) -> None:
    assert problem in said(trainyard("pin", *arguments, "--controller", address), status)
    assert answer(trainyard, "pins", "--json", "--controller", address) == []


def test_a_reason_is_one_printable_line(trainyard: Trainyard, address: str) -> None:
    ended = trainyard("pause", "--reason", "one\ntwo", "--controller", address)
    assert "reason: expected one line of at most 500 printable characters" in said(ended, 1)
    [state] = answer(trainyard, "controller", "--json", "--controller", address)
    assert "pause" not in state
