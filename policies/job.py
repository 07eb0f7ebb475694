"""A registered job as policies see it, with its profile.

A job checks itself and computes its arrays when it is made: jobs change seldom and decisions are many.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from policies.arrays import FlowArrays, LinkArray
from policies.flows import Flow, FlowGroup
from policies.task_graph import TaskGraph, check_sends
from policies.transfers import Transfers, guessed_graph

MAX_COMPUTE_S = 1e6
MAX_WORK = 1e100
"""Small enough that sums of work, and work over any time, stay finite."""


@dataclass(frozen=True, slots=True)
class Profile:
    """What a job computes in one iteration.

    Attributes:
        compute_s: Length of the compute phase.
        comm_start: Communication starts when this fraction of the compute phase is done.
        work: W of Crux: GPU-seconds of computation per iteration over all GPUs; or FLOPs, if every job gives FLOPs.
    """

    compute_s: float
    comm_start: float
    work: float


@dataclass(frozen=True)
class Job:
    """A registered job.

    A job may have no flows, no bytes or no computation, run on one GPU, and have offsets in any order.

    A job that registered only its hosts has them in ``measured_hosts``. Its flows then come from measurement: each is a
    share of the job's traffic with the path it takes, and not a connection.

    ``task_graph`` is what one iteration does, where the job has told it; its transfers name flows by their positions in
    ``flows``.

    Raises:
        ValueError: A field is out of range; the message names the job and the field.
    """

    name: str
    arrival_s: float
    gpus: int
    profile: Profile
    flow_groups: tuple[FlowGroup, ...]
    measured_hosts: tuple[str, ...] = ()
    task_graph: TaskGraph | None = None

    def __post_init__(self) -> None:
        _check_job(self)
        # Compute these now, so that no decision has to wait for them.
        _ = self.arrays, self.highest_link, self.transfers, self.reachable_links

    @cached_property
    def flows(self) -> tuple[Flow, ...]:
        """The flows of all groups, group after group."""
        return tuple(chain.from_iterable(group.flows for group in self.flow_groups))

    @property
    def registered_flows(self) -> tuple[Flow, ...]:
        """The flows that are connections; rules and host directives may name them."""
        return () if self.measured_hosts else self.flows

    @cached_property
    def arrays(self) -> FlowArrays:
        """The flows as arrays."""
        return FlowArrays.of(self.flows)

    @cached_property
    def transfers(self) -> Transfers:
        """Release and due times of the flows within an iteration."""
        if self.task_graph is not None:
            return Transfers.of_graph(self.flow_groups, self.task_graph)
        return Transfers.of(self.flow_groups, self.profile)

    @cached_property
    def played_graph(self) -> TaskGraph:
        """The task graph that models play: the job's own, or one guessed from its profile and offsets."""
        return self.task_graph or guessed_graph(self.transfers, self.profile)

    @cached_property
    def reachable_links(self) -> LinkArray:
        """The links, ascending, on the candidate paths of flows that send anything."""
        return self.arrays.reachable_links

    @cached_property
    def highest_link(self) -> int:
        """The highest number of any link that a flow names; -1 without flows."""
        return max(
            (max(*flow.hashed_path, *flow.host_links, flow.candidates.highest_link) for flow in self.flows), default=-1
        )


def _check_job(job: Job) -> None:
    profile = job.profile
    _require(math.isfinite(job.arrival_s), job, f"arrival_s must be finite, not {job.arrival_s}")
    _require(1 <= job.gpus < math.inf, job, f"gpus must be at least 1, not {job.gpus}")
    _require(
        0 <= profile.compute_s <= MAX_COMPUTE_S,
        job,
        f"compute_s must lie between 0 and {MAX_COMPUTE_S:g}, not {profile.compute_s}",
    )
    _require(0 <= profile.comm_start <= 1, job, f"comm_start must lie between 0 and 1, not {profile.comm_start}")
    _require(0 <= profile.work <= MAX_WORK, job, f"work must lie between 0 and {MAX_WORK:g}, not {profile.work}")
    keys = set()
    for flow in job.flows:
        _require(flow.key.job == job.name, job, f"flow {flow.key} belongs to another job")
        keys.add(flow.key)
        _check_flow(flow)
    _require(len(keys) == len(job.flows), job, "two flows have the same key")
    if job.task_graph is not None:
        try:
            check_sends(job.task_graph, [len(group.flows) for group in job.flow_groups])
        except ValueError as error:
            raise ValueError(f"job {job.name!r}: task_graph.{error}") from None


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
