"""What one process knows of its own iterations: it measures some, and notices when what they send has changed."""

import logging
import os
import threading
from collections import deque
from collections.abc import Iterable
from dataclasses import replace
from ipaddress import IPv4Address
from pathlib import Path
from statistics import median
from typing import Protocol

from hostlib.torch.algorithms import Collective, sent_bytes
from hostlib.torch.compressed_groups import CompressedGroups
from hostlib.torch.events import Issue
from hostlib.torch.iterations import Cutter, Iteration
from hostlib.torch.measurement import GroupTimes, Measurement, combined_iterations
from hostlib.torch.network_address import own_address
from hostlib.torch.process_groups import Group, GroupWatch, known_groups, role_of
from hostlib.torch.recorder import Recorder
from hostlib.torch.recording import write_recording
from hostlib.torch.report import GroupReport, RankReport
from hostlib.torch.sockets import Endpoints

_LOG = logging.getLogger("hostlib.torch")

_DRIFT_SHARE = 0.1
"""An iteration is another one if it sends this much more or less than the one that was reported."""
_DRIFT_ITERATIONS = 3
"""So many of them in a row, because a few are different in every job: those that evaluate, or save."""
_REPORTED_AFTER = 2
"""Iterations: the first one of a job is often not like the others."""
_RECENT = 50
_PIPELINED_SHARE = 0.9
"""Of what a process group moves, this much must go from stage to stage, else its schedule does not say when."""
_FROM_STAGE_TO_STAGE = frozenset({"send", "recv_"})
_OF_ONE_PART = frozenset({"gather_", "scatter_"})
"""The tee sees the part of one rank; the algorithms take all parts."""


class Reports(Protocol):
    """Takes reports: the exchange with the other ranks."""

    def report(self, round_number: int, text: str) -> None:
        """Give the report of this rank in a round."""


class Observation:
    """The iterations of a process.

    It reports twice in a row: after two whole iterations, so that the job is registered soon, and after
    ``profile_iterations``. Where what they send has changed for good, it measures and reports again.

    One thread looks, another one begins anew and sends the reports.

    Args:
        recorder: What the process does.
        groups: Which connections belong to which process group.
        profile_iterations: Over so many iterations the profile is measured.
        compressed: Process groups that are reported with what they would send uncompressed, whatever they send.
        trace_folder: Where the last measured iteration is recorded; None: nowhere.

    Attributes:
        num_iterations: Iterations that have ended.
        rendezvous_port: The store's, whose connections are no group's; None: it has none.
    """

    def __init__(
        self,
        recorder: Recorder,
        groups: GroupWatch,
        profile_iterations: int,
        compressed: CompressedGroups,
        trace_folder: str | None = None,
    ) -> None:
        self.num_iterations = 0
        self.rendezvous_port: int | None = None
        self._recorder = recorder
        self._groups = groups
        self._profile_iterations = profile_iterations
        self._compressed = compressed
        self._trace_folder = trace_folder
        self._cutter = Cutter()
        self._measuring = threading.Lock()
        self._rank = 0
        self._rounds = 0
        self._reports: deque[str] = deque()
        self._measured: list[Measurement] = []
        self._reported: dict[str, int] = {}
        self._differing = 0
        self._recent: deque[float] = deque(maxlen=_RECENT)
        self._compute_s: float | None = None

    @property
    def iteration_s(self) -> float | None:
        """The median of the last iterations; None before the first."""
        return median(self._recent) if self._recent else None

    @property
    def compute_s(self) -> float | None:
        """How long an iteration computes; None before one was measured."""
        return self._compute_s

    @property
    def has_reports(self) -> bool:
        """Whether there is something to report."""
        return bool(self._reports)

    def begin(self, rank: int) -> None:
        """Begin anew, in a new default process group."""
        with self._measuring:
            self._rank, self._rounds = rank, 0
            self._reports.clear()
            self._measure()

    def look(self) -> list[Iteration]:
        """Take what was recorded; return the iterations that have ended."""
        iterations = self._cutter.cut(self._recorder.take())
        for iteration in iterations:
            self.num_iterations += 1
            self._recent.append((iteration.end_ns - iteration.begin_ns) / 1e9)
            with self._measuring:
                if self._recorder.is_profiling:
                    self._profile(iteration)
                else:
                    self._compare(iteration)
        return iterations

    def send_report(self, reports: Reports) -> None:
        """Give the reports that are there."""
        while self._reports:
            reports.report(self._rounds, self._reports.popleft())
            self._rounds += 1

    def _measure(self) -> None:
        self._measured.clear()
        self._differing = 0
        self._recorder.start_profiling()

    def _profile(self, iteration: Iteration) -> None:
        self._measured.append(self._compressed.measured(iteration))
        if len(self._measured) in (min(_REPORTED_AFTER, self._profile_iterations), self._profile_iterations):
            together = combined_iterations(self._measured)
            self._compute_s = together.compute_s
            self._reported = self._signature(iteration)
            self._reports.append(self._report(iteration, together).to_json())
        if len(self._measured) >= self._profile_iterations:
            self._recorder.stop_profiling()
            self._record(iteration)

    def _record(self, iteration: Iteration) -> None:
        """Record an iteration for others to play, if asked; the job goes on where that fails."""
        if self._trace_folder is None:
            return
        try:
            write_recording(Path(self._trace_folder), self._rank, self.num_iterations, iteration, known_groups())
        except OSError as error:
            _LOG.warning("the trace of rank %d cannot be written: %s", self._rank, error)

    def _compare(self, iteration: Iteration) -> None:
        now, before = self._signature(iteration), self._reported
        differing = sum(abs(now.get(name, 0) - before.get(name, 0)) for name in {*now, *before})
        if differing <= _DRIFT_SHARE * sum(before.values()):
            self._differing = 0
            return
        self._differing += 1
        if self._differing >= _DRIFT_ITERATIONS:
            self._measure()

    def _signature(self, iteration: Iteration) -> dict[str, int]:
        """Return what an iteration moves by process group; of one that compresses, what it would uncompressed."""
        return iteration.sent_bytes | dict(self._compressed.gradient_bytes)

    def _report(self, iteration: Iteration, measurement: Measurement) -> RankReport:
        known = known_groups()
        reports = [
            self._group_report(known[name], iteration, times)
            for name, times in measurement.groups.items()
            if name in known
        ]
        owned = frozenset(each for report in reports for each in report.connections)
        unowned = tuple(
            each for each in self._groups.unowned() - owned if self.rendezvous_port not in (each.port, each.peer_port)
        )
        passes = {name: found for name, found in measurement.passes.items() if _is_pipelined(iteration, name)}
        return RankReport(self._rank, _address(reports), replace(measurement, passes=passes), tuple(reports), unowned)

    def _collectives(self, group: Group, iteration: Iteration) -> Iterable[Collective]:
        """Return what an iteration does in a process group; one that compresses would have summed its gradients."""
        gradient_bytes = self._compressed.gradient_bytes.get(group.name)
        if gradient_bytes is not None:
            return (Collective("allreduce_", gradient_bytes),)
        return (_collective(issue, len(group.ranks)) for issue in iteration.issues if issue.group == group.name)

    def _group_report(self, group: Group, iteration: Iteration, times: GroupTimes) -> GroupReport:
        totals: dict[int, int] = {}
        operations: dict[str, int] = {}
        own = group.ranks.index(self._rank)
        for collective in self._collectives(group, iteration):
            operations[collective.operation] = operations.get(collective.operation, 0) + collective.size_bytes
            for peer, size_bytes in sent_bytes(collective, own, len(group.ranks), group.backend).items():
                totals[group.ranks[peer]] = totals.get(group.ranks[peer], 0) + size_bytes
        opened = tuple(
            each
            for each in self._groups.opened_by(group.name)
            if self.rendezvous_port not in (each.port, each.peer_port)
        )
        return GroupReport(
            group.name,
            self._groups.roles.get(group.name) or role_of(group, operations),
            group.backend,
            group.ranks,
            totals,
            opened,
            times,
        )


def _collective(issue: Issue, world_size: int) -> Collective:
    parts = world_size if issue.operation in _OF_ONE_PART else 1
    return Collective(issue.operation, issue.size_bytes * parts, issue.peer, issue.splits_bytes)


def _is_pipelined(iteration: Iteration, group: str) -> bool:
    """Return whether a process group does little but move activations and gradients from stage to stage."""
    sizes = [
        (issue.operation in _FROM_STAGE_TO_STAGE, issue.size_bytes)
        for issue in iteration.issues
        if issue.group == group
    ]
    return sum(size for moves, size in sizes if moves) >= _PIPELINED_SHARE * sum(size for _, size in sizes)


def _address(reports: Iterable[GroupReport]) -> IPv4Address | None:
    """Return the address that this process sends from: that of a group's connection, else of the way to the master."""
    addresses: list[Endpoints] = [each for report in reports for each in report.connections]
    if addresses:
        return addresses[0].address
    master = os.environ.get("MASTER_ADDR")
    return own_address(master) if master else None
