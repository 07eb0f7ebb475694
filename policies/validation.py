"""Validation: what every policy may assume about a Snapshot, and everybody else about a Plan."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import NoReturn, TypeGuard

import numpy as np

from policies.flows import Flow
from policies.plan import JobPlan, Plan
from policies.snapshot import Snapshot
from topologies.fabric import Path
from topologies.paths import NO_LINK


class InvalidPlanError(ValueError):
    """A policy returned something other than a valid Plan; the message names the job or flow and the field."""


def check_snapshot(snapshot: Snapshot) -> None:
    """Check that a policy can decide on a Snapshot. One level is enough, and there may be more levels than jobs.

    Raises:
        ValueError: It cannot; the message names the job or link and the field.
    """
    if not snapshot.num_levels >= 1:
        raise ValueError(f"num_levels must be at least 1, not {snapshot.num_levels}")
    rates_bps = snapshot.links.rates_bps
    for index in np.flatnonzero(~((rates_bps > 0) & (rates_bps < math.inf))):
        raise ValueError(f"links[{index}]: rate_bps must be positive and finite, not {rates_bps[index]}")
    names: set[str] = set()
    num_links = len(snapshot.links)
    for job in snapshot.jobs:
        if job.name in names:
            raise ValueError(f"job {job.name!r}: another job has the same name")
        names.add(job.name)
        if job.highest_link >= num_links:
            raise ValueError(
                f"job {job.name!r}: candidates, hashed_path or host_links name link {job.highest_link},"
                f" there are {num_links} links"
            )


def check_plan(plan: Plan, snapshot: Snapshot) -> None:
    """Check that a Plan decides on every job and flow of its Snapshot once, and within bounds.

    Raises:
        InvalidPlanError: It does not.
    """
    if not isinstance(plan, Plan):
        raise InvalidPlanError(f"expected a Plan, got {type(plan).__name__}")
    _check_names([job.name for job in plan.jobs], [job.name for job in snapshot.jobs])
    for rank, job in enumerate(plan.jobs):
        _check_job_plan(job, rank, snapshot.num_levels)
    flows = [flow for job in snapshot.jobs for flow in job.flows]
    keys = set(map(attrgetter("key"), flows))
    if different := keys ^ plan.flows.keys():
        key = min(different, key=repr)
        raise InvalidPlanError(f"flow {key}: {'is missing' if key in keys else 'is not in the Snapshot'}")
    plans = [plan.flows[flow.key] for flow in flows]
    # Check each pair of level and order once: a Plan has many flows and few such pairs.
    bad = {
        decided for decided in {decided[1:] for decided in plans} if not _is_in_bounds(*decided, snapshot.num_levels)
    }
    for flow, decided in zip(flows, plans, strict=True) if bad else ():
        if decided[1:] in bad:
            raise InvalidPlanError(
                f"flow {flow.key}: level must lie between 0 and {snapshot.num_levels - 1} and order be a whole number"
                f" from 0, not {decided.level!r} and {decided.order!r}"
            )
    chosen = [
        (flow, one.path) for flow, one in zip(flows, plans, strict=True) if one.path not in (None, flow.hashed_path)
    ]
    _check_paths(chosen)


def _check_names(planned: Iterable[str], expected: Iterable[str]) -> None:
    left = dict.fromkeys(expected)
    for name in planned:
        if name not in left:
            raise InvalidPlanError(f"job {name!r}: appears twice, or is not in the Snapshot")
        del left[name]
    if left:
        raise InvalidPlanError(f"job {next(iter(left))!r}: is missing")


def _check_job_plan(job: JobPlan, rank: int, num_levels: int) -> None:
    if job.rank != rank:
        raise InvalidPlanError(f"job {job.name!r}: rank must be {rank}, its place in the Plan, not {job.rank!r}")
    if not _is_in_bounds(job.level, 0, num_levels):
        raise InvalidPlanError(f"job {job.name!r}: level must lie between 0 and {num_levels - 1}, not {job.level!r}")
    for field in ("intensity", "correction_factor", "priority"):
        value = getattr(job, field)
        if value is not None and math.isnan(value):
            raise InvalidPlanError(f"job {job.name!r}: {field} must be a number or None, not {value}")
    if job.time_shift_s is not None and not 0 <= job.time_shift_s < math.inf:
        raise InvalidPlanError(
            f"job {job.name!r}: time_shift_s must be finite and not negative, not {job.time_shift_s}"
        )


def _is_in_bounds(level: object, order: object, num_levels: int) -> bool:
    return _is_whole(level) and _is_whole(order) and level in range(num_levels) and order >= 0


def _is_whole(number: object) -> TypeGuard[int]:
    return isinstance(number, int | np.integer)


def _check_paths(chosen: Sequence[tuple[Flow, Path]]) -> None:
    """Check that paths are candidates of their flows, by groups of flows whose candidates have the same shape."""
    by_shape: defaultdict[tuple[int, ...], list[tuple[Flow, Path]]] = defaultdict(list)
    for flow, path in chosen:
        by_shape[flow.candidates.links.shape].append((flow, path))
    for (_, longest), alike in by_shape.items():
        paths = [path for _, path in alike]
        short = [path + (NO_LINK,) * (longest - len(path)) if len(path) < longest else path for path in paths]
        if set(map(len, short)) != {longest} or (links := np.array(short)).dtype.kind != "i":
            _refuse_first(alike)
        candidates = np.stack([flow.candidates.links for flow, _ in alike])
        if not (candidates == links[:, np.newaxis]).all(axis=2).any(axis=1).all():
            _refuse_first(alike)


def _refuse_first(chosen: Iterable[tuple[Flow, Path]]) -> NoReturn:
    """Raise the error for the first flow whose path is not a candidate; there is one."""
    for flow, path in chosen:
        if path not in tuple(flow.candidates) or not all(map(_is_whole, path)):
            raise InvalidPlanError(f"flow {flow.key}: path {path} is not one of its candidates")
    raise AssertionError("every path is a candidate")
