"""What NetSense sends, as the job's registration has it, and what the controller says to it."""

from ipaddress import IPv4Address
from typing import Any

import pytest

from hostlib.compression import attached
from hostlib.compression.direction import Direction
from hostlib.torch.compressed_groups import CompressedGroups, RankDirection, Share, directions_of
from hostlib.torch.leader import sent_of
from hostlib.torch.sockets import Endpoints
from hostlib.torch.template import Connection, Template
from hostlib.types import Directives, Flow, FlowDirective, FlowGroup, Nic, Sent

_ENDS = Endpoints(IPv4Address("10.0.0.1"), 1000, IPv4Address("10.0.0.2"), 2000)
_BOTH = (Flow(Nic("h0"), Nic("h1"), 1000), Flow(Nic("h1"), Nic("h0"), 3000))


class _Totals:
    def __init__(self, sent_bytes: int, dense_bytes: float) -> None:
        self.sent_bytes, self.dense_bytes = sent_bytes, dense_bytes


class _Steps:
    """What is looked at of NetSense's steps."""

    def __init__(self) -> None:
        self.direction = Direction()
        self.completed = _Totals(0, 0.0)
        self.gradient_bytes = 0
        self.times = None
        self.reason = "Dense fits"


@pytest.fixture
def steps() -> Any:
    made: Any = _Steps()
    attached.note("7", made)
    return made


def _template() -> Template:
    return Template(
        None,
        (FlowGroup("data 7", _BOTH),),
        None,
        {("data 7", 0): Connection(0, 1, 1000, _ENDS), ("data 7", 1): Connection(1, 0, 3000, _ENDS.reversed)},
        frozenset(),
        {"data 7": "7"},
        {"data 7": 0.2},
    )


def _directives(*rates_bps: float | None, slack_s: float | None = 0.2) -> Directives:
    flows = [FlowDirective("data 7", flow, (), 3, 0, 1000, rate) for flow, rate in enumerate(rates_bps)]
    return Directives(1, None, tuple(flows), {} if slack_s is None else {"data 7": slack_s})


def test_each_rank_may_count_on_what_its_flows_may() -> None:
    directions, ignored = directions_of(_template(), _directives(1e8, 3e8))
    assert (directions, ignored) == ([RankDirection(0, "7", 1e8, 0.0), RankDirection(1, "7", 3e8, 0.0)], 0)


def test_slack_counts_from_the_end_of_the_backward_pass() -> None:
    directions, _ = directions_of(_template(), _directives(1e8, slack_s=0.25))
    assert directions == [RankDirection(0, "7", 1e8, pytest.approx(0.05))]
    # What rounding leaves is none.
    (direction,), _ = directions_of(_template(), _directives(1e8, slack_s=0.2004))
    assert direction.slack_s == 0


@pytest.mark.parametrize("rate", [0.0, -1.0, float("nan"), float("inf"), 1e30])
def test_a_nonsense_rate_is_ignored_and_counted(rate: float) -> None:
    assert directions_of(_template(), _directives(1e8, rate)) == ([], 1)


@pytest.mark.parametrize("slack", [-1.0, float("nan"), float("inf")])
def test_a_nonsense_slack_is_ignored_and_counted(slack: float) -> None:
    assert directions_of(_template(), _directives(1e8, slack_s=slack)) == ([], 1)


def test_an_old_controller_directs_nobody() -> None:
    assert directions_of(_template(), _directives(None, None, slack_s=None)) == ([], 0)


def test_directions_reach_netsense_whichever_was_attached_first(steps: Any) -> None:
    groups = CompressedGroups()
    groups.direct([RankDirection(0, "7", 1e8, 0.0), RankDirection(0, "8", 2e8, 0.1)])
    assert steps.direction == Direction(1e8, 0.0)
    later: Any = _Steps()
    attached.note("8", later)
    groups.pass_on()
    assert later.direction == Direction(2e8, 0.1)
    groups.release()
    assert steps.direction == later.direction == Direction()


def test_a_model_that_is_gone_is_forgotten(steps: Any) -> None:
    assert attached.compressed()["7"].steps is steps
    other: Any = _Steps()
    attached.note("9", other)
    del other
    assert "9" not in attached.compressed()


def test_the_share_of_the_steps_since_is_told_when_it_has_changed(steps: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = [0.0]
    monkeypatch.setattr("hostlib.torch.compressed_groups.time.monotonic", lambda: now_s[0])
    groups = CompressedGroups()
    assert groups.to_tell() == {}
    steps.completed = _Totals(1000, 1000.0)
    assert groups.to_tell() == {"7": Share(1.0, "Dense fits")}
    steps.completed, steps.reason = _Totals(1100, 2000.0), "Dense does not fit"
    assert groups.to_tell() == {}  # too soon
    now_s[0] = 60.0
    assert groups.to_tell() == {"7": Share(0.1, "Dense does not fit")}
    now_s[0], steps.completed = 120.0, _Totals(1201, 3000.0)
    assert groups.to_tell() == {}


def test_a_flow_group_sends_its_share() -> None:
    assert sent_of(_template(), {"7": Share(0.25, "why"), "8": Share(0.5, "")}) == {"data 7": Sent(1000, "why")}
