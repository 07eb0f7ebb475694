"""A registered job as decisions see it, checked when it is made: jobs change seldom and decisions are many."""

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from policies.flow_arrays import FlowArrays, LinkArray
from policies.flows import Flow, FlowGroup
from policies.profile import Profile
from policies.windows import Windows

LONGEST_COMPUTATION_S = 1e6
MOST_WORK = 1e100
"""So that it can be divided by any time and added up."""


@dataclass(frozen=True)
class Job:
    """A registered job. Raises ValueError, naming the job and the field, for what cannot be meant.

    Sound are a job without flows, bytes or computation, on one GPU, and with offsets in any order. Where it has told
    its hosts alone, these are ``measured_hosts``, and its flows are what was measured, if anything was: no connections,
    but shares of its traffic, each with its path.
    """

    name: str
    arrival_s: float
    gpus: int
    profile: Profile
    flow_groups: tuple[FlowGroup, ...]
    measured_hosts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check_job(self)
        # Made now, so that no decision has to wait for them.
        _ = self.arrays, self.highest_link, self.windows, self.reach

    @cached_property
    def flows(self) -> tuple[Flow, ...]:
        """Flows of all groups, in order."""
        return tuple(chain.from_iterable(group.flows for group in self.flow_groups))

    @property
    def told_flows(self) -> tuple[Flow, ...]:
        """The flows that are connections, which rules and directives may name."""
        return () if self.measured_hosts else self.flows

    @cached_property
    def arrays(self) -> FlowArrays:
        """The flows to compute with."""
        return FlowArrays.of(self.flows)

    @cached_property
    def windows(self) -> Windows:
        """When the flows are released and needed within an iteration."""
        return Windows.of(self.flow_groups, self.profile)

    @cached_property
    def reach(self) -> LinkArray:
        """The links, ascending, that flows which send anything may take."""
        return self.arrays.reach

    @cached_property
    def highest_link(self) -> int:
        """The highest number of any link that a flow may take; -1 where there is none."""
        return max(
            (max(*flow.hashed_path, *flow.host_links, flow.candidates.highest_link) for flow in self.flows), default=-1
        )


def _check_job(job: Job) -> None:
    """Raise ValueError, naming the job and the field, for what cannot be meant."""
    profile = job.profile
    _require(math.isfinite(job.arrival_s), job, f"arrival_s must be finite, not {job.arrival_s}")
    _require(1 <= job.gpus < math.inf, job, f"gpus must be at least 1, not {job.gpus}")
    _require(
        0 <= profile.compute_s <= LONGEST_COMPUTATION_S,
        job,
        f"compute_s must lie between 0 and {LONGEST_COMPUTATION_S:g}, not {profile.compute_s}",
    )
    _require(0 <= profile.comm_start <= 1, job, f"comm_start must lie between 0 and 1, not {profile.comm_start}")
    _require(0 <= profile.work <= MOST_WORK, job, f"work must lie between 0 and {MOST_WORK:g}, not {profile.work}")
    keys = set()
    for flow in job.flows:
        _require(flow.key.job == job.name, job, f"key {flow.key} is not its own")
        keys.add(flow.key)
        _check_flow(flow)
    _require(len(keys) == len(job.flows), job, "a key names two flows")


def _check_flow(flow: Flow) -> None:
    if not 0 <= flow.size_bytes < math.inf:
        _refuse(flow, f"size_bytes must be finite and not negative, not {flow.size_bytes}")
    if not math.isfinite(flow.offset_s):
        _refuse(flow, f"offset_s must be finite, not {flow.offset_s}")
    if not flow.candidates:
        _refuse(flow, "candidates must name at least one path")
    if not (flow.hashed_path and flow.candidates.shortest):
        _refuse(flow, "candidates and hashed_path must not hold a path without links")
    if min(*flow.hashed_path, *flow.host_links, 0) < 0:
        _refuse(flow, "hashed_path and host_links must not name negative links")


def _require(is_so: bool, job: Job, message: str) -> None:
    if not is_so:
        raise ValueError(f"job {job.name!r}: {message}")


def _refuse(flow: Flow, message: str) -> None:
    raise ValueError(f"job {flow.key.job!r}, group {flow.key.group!r}, flow {flow.key.flow}: {message}")
