"""What each process of a job tells the first one, so that the job is registered once, as a whole."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from ipaddress import IPv4Address
from typing import Any

from hostlib.torch.measurement import GroupTimes, Measurement
from hostlib.torch.sockets import Endpoints


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
        return json.dumps(asdict(self), default=str)

    @classmethod
    def from_json(cls, text: str) -> "RankReport":
        """Return the report of a text. Raises ValueError, KeyError or TypeError for what is none."""
        found = json.loads(text)
        groups = tuple(
            GroupReport(
                each["name"],
                each["role"],
                each["backend"],
                tuple(each["ranks"]),
                {int(rank): sent for rank, sent in each["sent_bytes"].items()},
                _endpoints(each["connections"]),
                GroupTimes(**each["times"]),
            )
            for each in found["groups"]
        )
        measured = found["measurement"]
        times = {name: GroupTimes(**each) for name, each in measured["groups"].items()}
        return cls(
            found["rank"],
            None if found["address"] is None else IPv4Address(found["address"]),
            Measurement(measured["iteration_s"], measured["compute_s"], times),
            groups,
            _endpoints(found["unowned"]),
        )


def _endpoints(rows: Iterable[dict[str, Any]]) -> tuple[Endpoints, ...]:
    return tuple(
        Endpoints(IPv4Address(row["address"]), row["port"], IPv4Address(row["peer_address"]), row["peer_port"])
        for row in rows
    )
