"""What each process of a job tells the first one, so that the job is registered once, as a whole."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from ipaddress import IPv4Address
from typing import Any

from hostlib import checks
from hostlib.torch.measurement import GroupTimes, Measurement
from hostlib.torch.pipelines import Action, Pass
from hostlib.torch.sockets import Endpoints

VERSION = 2
"""Of the text. Ranks that do not have the same one do not understand each other."""


@dataclass(frozen=True, slots=True)
class GroupReport:
    """A process group as one of its ranks sees it, in an iteration.

    Attributes:
        name: The group's name.
        role: What it is for: data, sharded, tensor, pipeline, expert, context or other.
        backend: Its back end, such as gloo.
        ranks: Its ranks in the job, in their order in the group.
        sent_bytes: What this rank sends to each rank of the job, if the back end's algorithms are known.
        connections: The TCP connections that this rank has for the group.
        times: When its collectives happen.
    """

    name: str
    role: str
    backend: str
    ranks: tuple[int, ...]
    sent_bytes: dict[int, int]
    connections: tuple[Endpoints, ...]
    times: GroupTimes


@dataclass(frozen=True, slots=True)
class RankReport:
    """One process of a job.

    Attributes:
        rank: Its rank in the job.
        address: The address that it sends from.
        measurement: Its iterations.
        groups: The process groups that it is in and that have sent something.
        unowned: Connections that none of them is known to have opened.
    """

    rank: int
    address: IPv4Address | None
    measurement: Measurement
    groups: tuple[GroupReport, ...]
    unowned: tuple[Endpoints, ...] = ()

    def to_json(self) -> str:
        """Return the report as text."""
        return json.dumps({"version": VERSION, **asdict(self)}, default=str)

    @classmethod
    def from_json(cls, text: str) -> "RankReport":
        """Return the report of a text. Raises ValueError for what is none."""
        try:
            return _report(json.loads(text))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"not the report of a rank: {checks.shown(text)} ({error!r})") from error


def _report(found: Any) -> RankReport:
    if found["version"] != VERSION:
        raise ValueError(f"version: expected {VERSION}, got {checks.shown(found['version'])}")
    measured = found["measurement"]
    return RankReport(
        _rank(found["rank"]),
        None if found["address"] is None else IPv4Address(found["address"]),
        Measurement(
            _seconds(measured["iteration_s"]),
            _seconds(measured["compute_s"]),
            {name: _times(each) for name, each in measured["groups"].items()},
            {name: _passes(rows) for name, rows in measured["passes"].items()},
        ),
        tuple(
            GroupReport(
                checks.instance("name", each["name"], str),
                checks.instance("role", each["role"], str),
                checks.instance("backend", each["backend"], str),
                tuple(_rank(rank) for rank in each["ranks"]),
                {
                    int(rank): checks.integer("sent_bytes", sent, 0, checks.MAX_SIZE_BYTES)
                    for rank, sent in each["sent_bytes"].items()
                },
                _endpoints(each["connections"]),
                _times(each["times"]),
            )
            for each in found["groups"]
        ),
        _endpoints(found["unowned"]),
    )


def _rank(value: object) -> int:
    return checks.integer("rank", value, 0, checks.MAX_32)


def _seconds(value: object) -> float:
    """Check a time, which may lie a little before the iteration's begin."""
    if not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"expected seconds, got {checks.shown(value)}")
    return value


def _times(row: Mapping[str, Any]) -> GroupTimes:
    return GroupTimes(_seconds(row["release_s"]), _seconds(row["slack_s"]))


def _passes(rows: Sequence[Sequence[Any]]) -> tuple[Action, ...]:
    """Check the passes of a pipeline, of which each ends before the next begins."""
    found = tuple(
        Action(
            Pass(kind),
            checks.integer("stage", stage, 0, checks.MAX_32),
            checks.integer("micro_batch", micro_batch, 0, checks.MAX_32),
            _seconds(begin_s),
            _seconds(end_s),
        )
        for kind, stage, micro_batch, begin_s, end_s in rows
    )
    times_s = [time_s for action in found for time_s in (action.begin_s, action.end_s)]
    if times_s != sorted(times_s):
        raise ValueError("passes: expected times in order")
    return found


def _endpoints(rows: Iterable[Mapping[str, Any]]) -> tuple[Endpoints, ...]:
    return tuple(
        Endpoints(
            IPv4Address(row["address"]), _port(row["port"]), IPv4Address(row["peer_address"]), _port(row["peer_port"])
        )
        for row in rows
    )


def _port(value: object) -> int:
    return checks.integer("port", value, 0, checks.MAX_PORT)
