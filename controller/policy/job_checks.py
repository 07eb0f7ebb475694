"""What every job of a Snapshot must be, checked when it is made: jobs change seldom and decisions are many."""

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from controller.policy.snapshot import Flow, Job

LONGEST_COMPUTATION_S = 1e6
MOST_WORK = 1e100
"""So that it can be divided by any time and added up."""


def check_job(job: "Job") -> None:
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


def _check_flow(flow: "Flow") -> None:
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


def _require(is_so: bool, job: "Job", message: str) -> None:
    if not is_so:
        raise ValueError(f"job {job.name!r}: {message}")


def _refuse(flow: "Flow", message: str) -> None:
    raise ValueError(f"job {flow.key.job!r}, group {flow.key.group!r}, flow {flow.key.flow}: {message}")
