"""The page of two tenants on islands."""

from typing import Any

import pytest

pytest.importorskip("matplotlib")

from experiments.real_islands.comparison import Compared
from experiments.real_islands.report import islands_report, leads_ms, share_alone
from experiments.report.numbers import percent, seconds

ALONE_S = {"pipeline": 0.7, "replicas": 0.4}


def transfer(begin_us: float, ranked_us: float | None) -> dict[str, Any]:
    told = {"job": "pipeline#1 step 3", "announced_us": begin_us - 5000, "ranked_us": ranked_us, "made_us": begin_us}
    return {
        "ph": "X",
        "cat": "transfer",
        "name": "to host 1",
        "pid": 0,
        "tid": 1000,
        "ts": begin_us,
        "dur": 9,
        "args": told,
    }


def computation(client: str, begin_us: float) -> dict[str, Any]:
    args = {"client": client, "execution": 1}
    return {"ph": "X", "cat": client, "name": "forward", "pid": 0, "tid": 0, "ts": begin_us, "dur": 99, "args": args}


EVENTS = (
    {"ph": "M", "name": "process_name", "pid": 0, "args": {"name": "island-0, host 0"}},
    computation("pipeline#1", 0.0),
    computation("replicas#2", 200.0),
    transfer(100.0, -900.0),
    transfer(300.0, -700.0),
    transfer(400.0, None),
)


def test_the_page_has_shares_and_a_picture_of_each_policy() -> None:
    compared = [
        Compared("ecmp", {"pipeline": 1.4, "replicas": 0.5}, None, EVENTS[:3]),
        Compared("echelonflow", {"pipeline": 0.75, "replicas": 0.5}, 0.995, EVENTS),
    ]
    assert share_alone(compared[0], ALONE_S, "pipeline") == pytest.approx(0.5)
    report = islands_report(ALONE_S, compared)
    assert [each.title for each in report.figures] == ["Under ecmp", "Under echelonflow"]
    assert report.figures[1].description.startswith("What 1 devices ran and 1 flows carried")
    page = report.html()
    assert f"{seconds(0.75)}, {percent(0.7 / 0.75)}" in page
    assert percent(0.995) in page


def test_what_was_known_before_is_a_median_of_what_was_ranked() -> None:
    assert leads_ms(EVENTS) == (5.0, 1.0)
    assert leads_ms(EVENTS[:3]) is None
