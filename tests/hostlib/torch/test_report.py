"""Reports of ranks travel as text, and what is no report is refused."""

import json
from collections.abc import Iterator
from ipaddress import IPv4Address
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostlib.torch.measurement import GroupTimes, Measurement
from hostlib.torch.pipelines import Action, Pass
from hostlib.torch.report import GroupReport, RankReport
from hostlib.torch.sockets import Endpoints


def _pairs(times_s: list[float]) -> Iterator[tuple[float, float]]:
    return zip(times_s[::2], times_s[1::2], strict=False)


_SECONDS = st.floats(-1.0, 1e6)
_RANKS = st.integers(0, 1 << 20)
_NAMES = st.text()
_PORTS = st.integers(0, 65535)
_ENDPOINTS = st.builds(Endpoints, st.ip_addresses(v=4), _PORTS, st.ip_addresses(v=4), _PORTS)
_TIMES = st.builds(GroupTimes, _SECONDS, _SECONDS)
_NUMBERS = st.integers(0, 1 << 20)
_PASSES = st.lists(_SECONDS, max_size=6).flatmap(
    lambda times_s: st.tuples(
        *(
            st.builds(Action, st.sampled_from(Pass), _NUMBERS, _NUMBERS, st.just(begin_s), st.just(end_s))
            for begin_s, end_s in _pairs(sorted(times_s))
        )
    )
)
_GROUPS = st.builds(
    GroupReport,
    name=_NAMES,
    role=_NAMES,
    backend=_NAMES,
    ranks=st.lists(_RANKS).map(tuple),
    sent_bytes=st.dictionaries(_RANKS, st.integers(0, 1 << 50)),
    connections=st.lists(_ENDPOINTS, max_size=3).map(tuple),
    times=_TIMES,
)
_REPORTS = st.builds(
    RankReport,
    rank=_RANKS,
    address=st.none() | st.ip_addresses(v=4),
    measurement=st.builds(
        Measurement,
        _SECONDS,
        _SECONDS,
        st.dictionaries(_NAMES, _TIMES, max_size=3),
        st.dictionaries(_NAMES, _PASSES, max_size=2),
    ),
    groups=st.lists(_GROUPS, max_size=3).map(tuple),
    unowned=st.lists(_ENDPOINTS, max_size=3).map(tuple),
)

_REPORT = RankReport(
    3,
    IPv4Address("10.0.0.1"),
    Measurement(
        2.0,
        1.0,
        {"0": GroupTimes(0.1, 0.2)},
        {"0": (Action(Pass.FORWARD, 0, 3, 0.1, 0.2), Action(Pass.BACKWARD, 0, 3, 0.5, 0.7))},
    ),
    (
        GroupReport(
            "0",
            "data",
            "gloo",
            (3, 4),
            {4: 100},
            (Endpoints(IPv4Address("10.0.0.1"), 1, IPv4Address("10.0.0.2"), 2),),
            GroupTimes(0.1, 0.2),
        ),
    ),
)


@given(_REPORTS)
def test_a_report_is_the_same_after_its_way(report: RankReport) -> None:
    assert RankReport.from_json(report.to_json()) == report


@pytest.mark.parametrize("text", ["", "nonsense", "null", "[]", "7", "{}", '{"rank": 0}', '"report"'])
def test_what_is_no_report_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"^not the report of a rank: "):
        RankReport.from_json(text)


@pytest.mark.parametrize(
    ("way", "nonsense"),
    [
        (("rank",), "3"),
        (("rank",), -1),
        (("address",), "10.0.0.300"),
        (("address",), 1.5),
        (("groups",), None),
        (("groups",), [None]),
        (("groups", 0, "name"), 7),
        (("groups", 0, "role"), None),
        (("groups", 0, "ranks"), ["3"]),
        (("groups", 0, "sent_bytes"), [100]),
        (("groups", 0, "sent_bytes"), {"four": 100}),
        (("groups", 0, "sent_bytes"), {"4": -1}),
        (("groups", 0, "sent_bytes"), {"4": 0.5}),
        (("groups", 0, "connections", 0, "port"), 65536),
        (("groups", 0, "connections", 0, "peer_address"), "::1"),
        (("groups", 0, "times", "slack_s"), "0.2"),
        (("measurement", "compute_s"), None),
        (("measurement", "iteration_s"), float("nan")),
        (("measurement", "groups"), [0.1]),
        (("measurement", "passes"), [0.1]),
        (("measurement", "passes", "0", 0), ["forward", 0, 3, 0.1]),
        (("measurement", "passes", "0", 0, 0), "sideways"),
        (("measurement", "passes", "0", 0, 1), -1),
        (("measurement", "passes", "0", 0, 2), "3"),
        (("measurement", "passes", "0", 0, 3), float("nan")),
        (("measurement", "passes", "0", 0, 4), 0.6),
        (("version",), 1),
        (("unowned",), 5),
    ],
)
def test_nonsense_in_a_report_is_refused(way: tuple[str | int, ...], nonsense: object) -> None:
    found: Any = json.loads(_REPORT.to_json())
    at = found
    for step in way[:-1]:
        at = at[step]
    at[way[-1]] = nonsense
    with pytest.raises(ValueError, match=r"^not the report of a rank: "):
        RankReport.from_json(json.dumps(found))


@pytest.mark.parametrize("lacking", ["version", "rank", "address", "measurement", "groups", "unowned"])
def test_a_report_that_lacks_something_is_refused(lacking: str) -> None:
    found = json.loads(_REPORT.to_json())
    del found[lacking]
    with pytest.raises(ValueError, match=lacking):
        RankReport.from_json(json.dumps(found))
