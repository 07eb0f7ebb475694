"""The process groups of this process that carry NetSense's compressed gradients, as the job's registration needs them.

Their collectives say how much is sent now. The job is registered with what it would send uncompressed; what it sends
is told with its iterations, and what it may count on comes back with the levels.
"""

import math
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from hostlib.compression import attached
from hostlib.compression.direction import Direction
from hostlib.compression.telling import Telling
from hostlib.torch.events import Completion, Issue, Wait
from hostlib.torch.iterations import Iteration
from hostlib.torch.measurement import GroupTimes, Measurement, measured
from hostlib.torch.template import Template
from hostlib.types import Directives

_MOST_RATE_BPS = 1e15
_MOST_SLACK_S = 1e6
_LEAST_SLACK_S = 1e-3
"""Less is what rounding leaves."""


@dataclass(frozen=True, slots=True)
class RankDirection:
    """What one rank may count on for one process group: its rate, and how long after the backward pass it may take."""

    rank: int
    group: str
    rate_bps: float
    slack_s: float


@dataclass(frozen=True, slots=True)
class Share:
    """What a process group sends of what it would send uncompressed, and why."""

    share: float
    reason: str


class CompressedGroups:
    """What this process compresses. Every method looks anew, for NetSense may be attached at any time."""

    def __init__(self) -> None:
        self._directions: dict[str, Direction] = {}
        self._tellings: dict[str, Telling] = {}
        self._sent: dict[str, tuple[int, float]] = {}
        """By process group, what it had sent when its share was last told, and would have sent uncompressed."""

    @property
    def gradient_bytes(self) -> Mapping[str, int]:
        """By name of process group, what its model hands over to be reduced in a step; 0 before the first."""
        return {name: each.steps.gradient_bytes for name, each in attached.compressed().items()}

    def measured(self, iteration: Iteration) -> Measurement:
        """Measure an iteration; NetSense's own threads wait for its collectives, and it knows when these are ready."""
        groups = attached.compressed()
        found = measured(_without(iteration, groups.keys()))
        compute_s, times = found.compute_s, dict(found.groups)
        for name, each in groups.items():
            own = each.steps.times
            if own is not None:
                first_s = min(own.ready_s, default=own.backward_s)
                compute_s = min(compute_s, own.compute_s)
                times[name] = GroupTimes(max(0.0, own.compute_s - own.backward_s + first_s), own.backward_s - first_s)
        return replace(found, compute_s=compute_s, groups=times)

    def to_tell(self) -> Mapping[str, Share]:
        """Return by process group the share that it sends, where that is to be told now."""
        found = {}
        for name, each in attached.compressed().items():
            totals = each.steps.completed
            sent_bytes, dense_bytes = self._sent.get(name, (0, 0.0))
            if totals.dense_bytes <= dense_bytes:
                continue
            share = (totals.sent_bytes - sent_bytes) / (totals.dense_bytes - dense_bytes)
            telling = self._tellings.setdefault(name, Telling())
            if telling.is_due(time.monotonic()):
                self._sent[name] = totals.sent_bytes, totals.dense_bytes
                if telling.update(time.monotonic(), share):
                    found[name] = Share(share, each.steps.reason)
        return found

    def direct(self, directions: Sequence[RankDirection]) -> None:
        """Follow these directions from now on, and none that came before."""
        self._directions = {each.group: Direction(each.rate_bps, each.slack_s) for each in directions}
        self.pass_on()

    def pass_on(self) -> None:
        """Pass the directions in force on to every NetSense, those that were attached meanwhile too."""
        for name, each in attached.compressed().items():
            if name in self._directions:
                each.steps.direction = self._directions[name]

    def release(self) -> None:
        """Have every NetSense that was directed decide by itself again."""
        for name, each in attached.compressed().items():
            if name in self._directions:
                each.steps.direction = Direction()
        self._directions = {}


def directions_of(template: Template, directives: Directives) -> tuple[list[RankDirection], int]:
    """Return what each rank may count on, and of how many flow groups a directive is nonsense, and so ignored.

    A rank may count on the rates of all flows by which it sends for the group. A slack counts from the group's release,
    and NetSense's from the end of the backward pass, behind which the template's window is.
    """
    directions, ignored = [], 0
    for label, group in template.process_groups.items():
        rates_bps: dict[int, float] = {}
        of_label = [flow for flow in directives.flows if flow.flow_group == label and flow.rate_bps is not None]
        for flow in of_label:
            connection = template.connections.get((label, flow.flow))
            if connection is not None and flow.rate_bps is not None:
                rates_bps[connection.source] = rates_bps.get(connection.source, 0.0) + flow.rate_bps
        slack_s = directives.slacks_s.get(label, 0.0)
        values = [flow.rate_bps for flow in of_label if flow.rate_bps is not None]
        if not (all(map(_is_rate, values)) and 0 <= slack_s <= _MOST_SLACK_S):
            ignored += 1
            continue
        after_s = slack_s - template.windows_s.get(label, 0.0)
        after_s = after_s if after_s >= _LEAST_SLACK_S else 0.0
        directions += [RankDirection(rank, group, rate_bps, after_s) for rank, rate_bps in sorted(rates_bps.items())]
    return directions, ignored


def _is_rate(rate_bps: float) -> bool:
    return math.isfinite(rate_bps) and 0 < rate_bps <= _MOST_RATE_BPS


def _without(iteration: Iteration, groups: Collection[str]) -> Iteration:
    """Return an iteration without the collectives of these process groups."""
    left_out = {issue.number for issue in iteration.issues if issue.group in groups}
    events = tuple(
        event
        for event in iteration.events
        if not (isinstance(event, Issue | Completion | Wait) and event.number in left_out)
    )
    return replace(iteration, events=events)
