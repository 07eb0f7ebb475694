"""EchelonFlow: the flows of a group finish in the formation that computation needs, and groups go in order of a rank.

Objective: the least weighted sum of the tardiness of flow groups. Source: Pan, Lei, Li, Xie, Yuan and Xia, *Efficient
Flow Scheduling in Distributed Deep Learning Training with Echelon Formation*, HotNets 2022, section 3, and its
technical report. Neither has an algorithm beyond "MADD, by tardiness". Inputs: bytes by link, link rates, ideal finish
times (offsets). Under ideal enforcement the allocator is echelon-MADD at flow events, and ``open_group_order`` ranks
the open flow groups. With levels, at job events, all groups are ranked as they come in every iteration. It takes O(h +
f log f) for f flows and h pairs of flow and link.

``docs/echelonflow.md`` derives our choices: what ranks groups (the paper allows any ``Rank``), what the latest flow
means for the rates of the others, and weights. With all offsets 0, order and rates are those of Varys. Groups that
share a link get different levels, by rank, as far as there are levels; spare ones separate a group's flows by ideal
finish (``policies.echelonflow.levels``). The order at the host follows both in full. Both tell a job's flows apart only
as far as that does not slow the job alone (``Parting``).
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from policies.arrays import FloatArray, IntArray
from policies.baselines.varys import bottleneck_times, sebf
from policies.coflows import JobCoflow, JobWeight, job_coflows, occupied_seconds, weights_of
from policies.echelonflow.formations import Parting, Unit, formations, units
from policies.echelonflow.levels import layers, levels
from policies.echelonflow.lone_jobs import lone_job
from policies.enforcement import Allocator, Cadence, RateControl, Tiers
from policies.flows import FlowGroup
from policies.job import Job
from policies.open_groups import OpenGroups
from policies.plan import FlowPlan, Plan
from policies.plan_builder import SENDS_NOTHING, JobDecision, job_plans
from policies.policy import Policy
from policies.snapshot import Snapshot

if TYPE_CHECKING:
    from policies.rates.network import Network, Order


class Rank(StrEnum):
    """What flow groups are ranked by."""

    GAMMA = "gamma"
    """The time that the group needs if served alone, over its weight; least first."""

    PRESSING = "pressing"
    """How long the group would delay others plus how long it can wait itself, over its weight; least first."""

    TARDINESS_ASCENDING = "tardiness_ascending"
    """How late the group ends if served alone, over its weight; least first."""

    TARDINESS_DESCENDING = "tardiness_descending"
    """How late the group ends if served alone, times its weight; most first."""


@dataclass(frozen=True, slots=True)
class EchelonFlowOptions:
    """What the paper leaves open.

    Attributes:
        rank: Ranks the groups of whole iterations; ``open_group_order`` ranks open groups.
        weight: What a job weighs.
    """

    rank: Rank = Rank.GAMMA
    weight: JobWeight = JobWeight.ONE


DEFAULT_OPTIONS = EchelonFlowOptions()


def echelonflow(snapshot: Snapshot, options: EchelonFlowOptions = DEFAULT_OPTIONS) -> Plan:
    """Serve flow groups by rank, and the flows of each by ideal finish. A job has the rank of its first group."""
    coflows = job_coflows(snapshot)
    partings = [_parting_alone(snapshot, options, coflow) for coflow in coflows]
    return _harmless_plan(snapshot, options, coflows, partings)[0]


def _parting_alone(snapshot: Snapshot, options: EchelonFlowOptions, coflow: JobCoflow) -> Parting:
    """Return what to tell apart in a job if it were the only one."""
    job = coflow.job
    parting = Parting.first(job)
    if parting is Parting.NOTHING:
        return parting
    known, key = lone_job(job, snapshot.links).partings, (snapshot.num_levels, options)
    if key not in known:
        known[key] = _harmless_plan(replace(snapshot, jobs=(job,)), options, [coflow], [parting])[1][0]
    return known[key]


def _harmless_plan(
    snapshot: Snapshot, options: EchelonFlowOptions, coflows: Sequence[JobCoflow], partings: Sequence[Parting]
) -> tuple[Plan, Sequence[Parting]]:
    """Return the Plan that tells apart no more than this of every job, and no more than is harmless to it alone."""
    while True:
        plan = _plan(snapshot, options, coflows, partings)
        slowed = _slowed(snapshot, coflows, partings, plan)
        if not slowed:
            return plan, partings
        partings = [parting.next if owner in slowed else parting for owner, parting in enumerate(partings)]


def _slowed(snapshot: Snapshot, coflows: Sequence[JobCoflow], partings: Sequence[Parting], plan: Plan) -> set[int]:
    """Return the numbers of jobs that would be slower alone with the Plan's levels than with a single one."""
    parted = [
        (owner, coflow.job)
        for owner, (coflow, parting) in enumerate(zip(coflows, partings, strict=True))
        if parting is not Parting.NOTHING
    ]
    return {owner for owner, job in parted if lone_job(job, snapshot.links).is_slowed(job, plan.flows)}


def _plan(
    snapshot: Snapshot, options: EchelonFlowOptions, coflows: Sequence[JobCoflow], partings: Sequence[Parting]
) -> Plan:
    """Return the Plan that tells apart so much of every job."""
    weights = weights_of(coflows, options.weight)
    ranked = units([coflow.job for coflow in coflows], partings)
    occupied = occupied_seconds(snapshot, [group.flows for unit in ranked for group in unit.groups])
    first_group = np.cumsum([0, *(len(unit.groups) for unit in ranked)])
    ends = occupied.indptr[first_group]
    sending = np.flatnonzero(np.diff(ends))
    # Groups that are ranked together seldom come together: each delays others by its own time.
    key_s = np.maximum.reduceat(bottleneck_times(occupied), first_group[sending]) if len(sending) else np.empty(0)
    if options.rank is not Rank.GAMMA:
        key_s = _keys_s(options.rank, snapshot, [ranked[number] for number in sending])
    owners = np.array([ranked[number].owner for number in sending], dtype=np.int64)
    order = group_order(options.rank, key_s, weights[owners])
    in_order = formations(ranked, partings, sending[order], key_s[order])
    stages_of = [formation.stages for formation in in_order]
    links_of = [
        np.unique(np.concatenate([occupied.indices[ends[number] : ends[number + 1]] for number in formation.numbers]))
        for formation in in_order
    ]
    levels_of = levels(layers(links_of, snapshot.links.has_levels), stages_of, snapshot.num_levels)
    first_order = list(accumulate((max(found) + 1 for found in stages_of), initial=0))
    flows = {flow.key: FlowPlan(None, 0, first_order[-1]) for coflow in coflows for flow in coflow.job.flows}
    first: dict[int, int] = {}
    levels_by_owner: defaultdict[int, list[int]] = defaultdict(list)
    for rank, formation in enumerate(in_order):
        first.setdefault(formation.owner, rank)
        levels_by_owner[formation.owner] += levels_of[rank]
        for flow, stage, level in zip(formation.flows, stages_of[rank], levels_of[rank], strict=True):
            flows[flow.key] = FlowPlan(None, level, first_order[rank] + stage)
    decisions = []
    for owner, rank in first.items():
        groups = ranked[in_order[rank].numbers[0]].groups
        reason = _reason(options.rank, in_order[rank].key_s, groups, coflows[owner].job, levels_by_owner[owner])
        decisions.append(JobDecision(coflows[owner], max(levels_by_owner[owner]), first_order[rank], reason))
    idle = [coflow for owner, coflow in enumerate(coflows) if owner not in first]
    decisions += [JobDecision(coflow, 0, first_order[-1], SENDS_NOTHING) for coflow in idle]
    return Plan("echelonflow", job_plans(decisions), flows)


def group_order(rank: Rank, key_s: FloatArray, weights: FloatArray) -> IntArray:
    """Return the numbers of the groups, most urgent first; ties in the order given, groups without weight last.

    A larger weight never puts a group further back.

    Args:
        rank: What to rank by.
        key_s: By group, what the rank says, without weights: the time that it needs if served alone (the bottleneck
            time of Varys), ``pressing_s``, or its tardiness if served alone, at least that of its flows which have
            ended.
        weights: By group.

    Raises:
        ValueError: A weight or time is negative or NaN, or a tardiness is NaN; the message names the group.
    """
    if rank in (Rank.GAMMA, Rank.PRESSING):
        return sebf(key_s, weights)
    sebf(np.zeros(len(weights)), weights)
    if np.isnan(key_s).any():
        raise ValueError(f"group {int(np.isnan(key_s).argmax())}: its tardiness must be a number, not nan")
    is_weighed = weights > 0
    is_ascending = rank is Rank.TARDINESS_ASCENDING
    divided = np.divide(key_s, weights, out=np.zeros(len(weights)), where=is_weighed)
    weighed = np.where((key_s > 0) == is_ascending, divided, key_s * weights)
    return np.where(is_weighed, weighed if is_ascending else -weighed, np.inf).argsort(kind="stable")


def open_group_order(network: "Network", order: "Order", remaining_bytes: FloatArray, due_s: FloatArray) -> IntArray:
    """Return the numbers of open groups (tiers), most urgent first: by ``Rank.PRESSING``, all of one weight.

    A group is complete: its tier includes flows still to come. ``due_s`` is what the function ``due_s`` returns.

    Raises:
        ValueError: As for ``pressing_s``.
    """
    from policies.rates.echelon import in_order_of_due, pressing_s

    pressing = pressing_s(network, in_order_of_due(order, due_s), remaining_bytes, due_s)
    return sebf(pressing, np.ones(len(pressing)))


def due_s(ideal_finish_s: FloatArray, tardiness_s: FloatArray, now_s: float) -> FloatArray:
    """Return by flow how long from now it may take without making its group later than it is.

    Args:
        ideal_finish_s: By flow.
        tardiness_s: By flow, the largest tardiness of the flows of its group that have ended; below 0 it counts as 0.
        now_s: The time.
    """
    return ideal_finish_s + np.maximum(tardiness_s, 0.0) - now_s


def _keys_s(rank: Rank, snapshot: Snapshot, units: Sequence[Unit]) -> FloatArray:
    """Return the keys of a rank other than gamma, for units that begin at once and are each served alone."""
    # The allocators import numba, which takes longer than a decision by gamma.
    from policies.rates.echelon import further_tardiness_s, in_order_of_due, pressing_s
    from policies.rates.network import Network, Order

    flows = [flow for unit in units for flow in unit.flows]
    network = Network.of(snapshot.links.rates_bps, [(*flow.hashed_path, *flow.host_links) for flow in flows])
    numbers = np.arange(len(flows))
    finishes_s = np.array([finish_s for unit in units for finish_s in unit.finishes_s], dtype=np.float64)
    order = in_order_of_due(
        Order.by_rank(numbers, np.repeat(np.arange(len(units)), [len(unit.flows) for unit in units])), finishes_s
    )
    sizes_bytes = np.array([flow.size_bytes if flow.sends else 0.0 for flow in flows], dtype=np.float64)
    if rank is Rank.PRESSING:
        return pressing_s(network, order, sizes_bytes, finishes_s)
    return np.maximum(further_tardiness_s(network, order, sizes_bytes, finishes_s), 0.0)


def _reason(rank: Rank, key_s: float, first: Sequence[FlowGroup], job: Job, levels: Sequence[int]) -> str:
    key = f"alone would be {key_s:.4g} s late"
    if rank is Rank.GAMMA:
        key = f"needs its bottleneck link {key_s:.4g} s an iteration"
    elif rank is Rank.PRESSING:
        key = f"holds others up for {key_s:.4g} s at a time"
    parted = f"; its flows have levels {max(levels)} to {min(levels)}" if min(levels) < max(levels) else ""
    num_groups = len(job.flow_groups)
    if len(first) > 1:
        why = "would slow it down" if Parting.first(job) is not Parting.NOTHING else "need to know what waits for them"
        what = "largest group" if rank is Rank.GAMMA else "traffic"
        return f"Its {what} {key}{parted}. Ranks for each of its {num_groups} groups {why}."
    of = f", first of its {num_groups}" if num_groups > 1 else ""
    return f"Its group {first[0].name!r} {key}{of}{parted}."


def _order_groups(groups: OpenGroups) -> IntArray:
    if groups.flows is None:
        raise ValueError("echelonflow orders flow groups by their paths, and a trace of coflows has none")
    flows = groups.flows
    return open_group_order(flows.network, flows.order, flows.remaining_bytes, flows.due_s)


ECHELONFLOW = Policy(
    "echelonflow",
    "EchelonFlow: what has least to send first, a job's flows when their consumers need them",
    echelonflow,
    ideal_rates=RateControl(Allocator.ECHELON_MADD, Tiers.GROUPS, Cadence.FLOW_EVENT),
    order_groups=_order_groups,
)
