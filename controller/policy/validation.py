"""What every policy may assume of a Snapshot."""

import math
from itertools import chain

from controller.policy.snapshot import Flow, Job, Snapshot

_LONGEST_COMPUTATION_S = 1e6


def check(snapshot: Snapshot) -> None:
    """Raise ValueError, naming the job or link and the field, where a Snapshot makes no sense.

    Jobs without flows, without bytes or without computation are sound: policies give them a defined result.
    """
    if snapshot.num_levels < 1:
        raise ValueError(f"num_levels must be at least 1, not {snapshot.num_levels}")
    for index, link in enumerate(snapshot.links):
        if not (math.isfinite(link.rate_bps) and link.rate_bps > 0):
            raise ValueError(f"links[{index}]: rate_bps must be positive and finite, not {link.rate_bps}")
    known_links = set(range(len(snapshot.links)))
    names: set[str] = set()
    for job in snapshot.jobs:
        if job.name in names:
            raise ValueError(f"job {job.name!r}: its name is taken by another job")
        names.add(job.name)
        _check_job(job)
        keys = set()
        for flow in job.flows:
            if flow.key.job != job.name or flow.key in keys:
                raise ValueError(f"job {job.name!r}: key {flow.key} is not its own or names two flows")
            keys.add(flow.key)
            _check_flow(flow, known_links)


def _check_job(job: Job) -> None:
    profile = job.profile
    if not math.isfinite(job.arrival_s):
        raise ValueError(f"job {job.name!r}: arrival_s must be finite, not {job.arrival_s}")
    if not 1 <= job.gpus < math.inf:
        raise ValueError(f"job {job.name!r}: gpus must be at least 1, not {job.gpus}")
    if not 0 <= profile.compute_s <= _LONGEST_COMPUTATION_S:
        raise ValueError(
            f"job {job.name!r}: compute_s must lie between 0 and {_LONGEST_COMPUTATION_S:g}, not {profile.compute_s}"
        )
    if not 0 <= profile.comm_start <= 1:
        raise ValueError(f"job {job.name!r}: comm_start must lie between 0 and 1, not {profile.comm_start}")
    if not (math.isfinite(profile.work) and profile.work >= 0):
        raise ValueError(f"job {job.name!r}: work must be finite and not negative, not {profile.work}")


def _check_flow(flow: Flow, known_links: set[int]) -> None:
    where = f"job {flow.key.job!r}, group {flow.key.group!r}, flow {flow.key.flow}"
    if not (math.isfinite(flow.size_bytes) and flow.size_bytes >= 0):
        raise ValueError(f"{where}: size_bytes must be finite and not negative, not {flow.size_bytes}")
    if not flow.candidates:
        raise ValueError(f"{where}: candidates must name at least one path")
    if not (flow.hashed_path and all(flow.candidates)):
        raise ValueError(f"{where}: candidates and hashed_path must not hold a path without links")
    if unknown := set(chain(flow.hashed_path, flow.host_links, *flow.candidates)) - known_links:
        raise ValueError(f"{where}: candidates, hashed_path or host_links name unknown links {sorted(unknown)}")
