"""EchelonFlow: flows finish in the formation that computation needs, and groups with least left to send go first.

Minimises the weighted sum of the tardiness of flow groups. Source: Pan, Lei, Li, Xie, Yuan and Xia, *Efficient Flow
Scheduling in Distributed Deep Learning Training with Echelon Formation*, HotNets 2022, section 3, and its technical
report; neither has an algorithm beyond "MADD, by tardiness". Inputs: bytes by link, link rates, ideal finish times
(offsets), in seconds and bytes. Allocator echelon-MADD, at flow events, where ``group_order`` ranks the open flow
groups; with levels, at job events, all groups as they come in every iteration. O(h + f log f) for f flows and h pairs
of flow and link.

Choices, derived in ``docs/echelonflow.md``: what ranks groups (the paper's sentence allows any ``Rank``); what the flow
that is latest means for the rates of the others; weights. With offsets of 0 order and rates are those of Varys. Levels
(``controller.policy.formation_levels``): groups that meet on a link have different ones, by rank, as far as they go;
those to spare part a group's flows by ideal finish. The order at the host has both in full.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from controller.policy.coflows import JobWeight, job_coflows, occupied_seconds, weights_of
from controller.policy.formation_levels import layers, levels, stages
from controller.policy.intensity import FloatArray
from controller.policy.job_order import SENDS_NOTHING, JobDecision, job_plans
from controller.policy.plan import FlowPlan, Plan
from controller.policy.policy_name import PolicyName
from controller.policy.snapshot import Flow, FlowGroup, Job, Snapshot
from controller.policy.varys import bottleneck_times, sebf

IntArray = npt.NDArray[np.int64]


class Rank(StrEnum):
    """What a flow group is ranked by against others."""

    GAMMA = "gamma"
    """The time it still needs if served alone, over its weight; least first."""

    TARDINESS_ASCENDING = "tardiness_ascending"
    """How late it will be if served alone, over its weight; least first."""

    TARDINESS_DESCENDING = "tardiness_descending"
    """How late it will be if served alone, times its weight; most first."""


@dataclass(frozen=True, slots=True)
class EchelonFlowOptions:
    """What the paper leaves open."""

    rank: Rank = Rank.GAMMA
    weight: JobWeight = JobWeight.ONE


DEFAULT_OPTIONS = EchelonFlowOptions()


def echelonflow(snapshot: Snapshot, options: EchelonFlowOptions = DEFAULT_OPTIONS) -> Plan:
    """Serve the flow groups by their rank, and each one's flows by ideal finish; a job has its first group's rank."""
    coflows = job_coflows(snapshot)
    weights = weights_of(coflows, options.weight)
    groups = [(owner, group) for owner, coflow in enumerate(coflows) for group in coflow.job.flow_groups]
    occupied = occupied_seconds(snapshot, [group.flows for _, group in groups])
    sending = np.flatnonzero(np.diff(occupied.indptr))
    needed_s = bottleneck_times(occupied)[sending]
    key_s = needed_s
    if options.rank is not Rank.GAMMA:
        key_s = np.array([_tardiness_s(groups[number][1], snapshot) for number in sending])
    owners = np.array([groups[number][0] for number in sending], dtype=np.int64)
    order = group_order(options.rank, needed_s, key_s, weights[owners])
    formations = _formations(groups, sending[order], key_s[order])
    stages_of = [stages([flow.offset_s for flow in formation.flows]) for formation in formations]
    ends = occupied.indptr
    links_of = [
        np.unique(np.concatenate([occupied.indices[ends[number] : ends[number + 1]] for number in formation.numbers]))
        for formation in formations
    ]
    levels_of = levels(layers(links_of, snapshot.links.has_levels), stages_of, snapshot.num_levels)
    first_order = list(accumulate((max(found) + 1 for found in stages_of), initial=0))
    flows = {flow.key: FlowPlan(None, 0, first_order[-1]) for _, group in groups for flow in group.flows}
    first: dict[int, int] = {}
    levels_by_owner: defaultdict[int, list[int]] = defaultdict(list)
    for rank, formation in enumerate(formations):
        first.setdefault(formation.owner, rank)
        levels_by_owner[formation.owner] += levels_of[rank]
        for flow, stage, level in zip(formation.flows, stages_of[rank], levels_of[rank], strict=True):
            flows[flow.key] = FlowPlan(None, level, first_order[rank] + stage)
    decisions = []
    for owner, rank in first.items():
        group = formations[rank].groups[0]
        reason = _reason(options.rank, group, formations[rank].key_s, coflows[owner].job, levels_by_owner[owner])
        decisions.append(JobDecision(coflows[owner], max(levels_by_owner[owner]), first_order[rank], reason))
    idle = [coflow for owner, coflow in enumerate(coflows) if owner not in first]
    decisions += [JobDecision(coflow, 0, first_order[-1], SENDS_NOTHING) for coflow in idle]
    return Plan(PolicyName.ECHELONFLOW, job_plans(decisions), flows)


@dataclass(frozen=True, slots=True)
class _Formation:
    """Groups of one job (``owner``, their ``numbers`` among all groups) that are ranked alike, by ``key_s``."""

    owner: int
    numbers: tuple[int, ...]
    groups: tuple[FlowGroup, ...]
    key_s: float

    @property
    def flows(self) -> list[Flow]:
        return [flow for group in self.groups for flow in group.flows]


def _formations(groups: Sequence[tuple[int, FlowGroup]], ranked: IntArray, key_s: FloatArray) -> list[_Formation]:
    """The groups in order of rank, those of a job together whose keys, what they are ranked by, differ by rounding."""
    found: list[_Formation] = []
    for number, one_s in zip(ranked.tolist(), key_s.tolist(), strict=True):
        owner, group = groups[number]
        last = found[-1] if found else None
        if last is not None and last.owner == owner and math.isclose(last.key_s, one_s):
            found[-1] = _Formation(owner, (*last.numbers, number), (*last.groups, group), last.key_s)
        else:
            found.append(_Formation(owner, (number,), (group,), one_s))
    return found


def group_order(rank: Rank, needed_s: FloatArray, tardiness_s: FloatArray, weights: FloatArray) -> IntArray:
    """Numbers of the groups, most urgent first, ties in the order given; those of no weight last.

    ``needed_s``: the time that each still needs if served alone (Varys's bottleneck time); ``tardiness_s``: its
    tardiness then, or that of its flows which have ended where they were later. A larger weight never puts a group
    further back. Raises ValueError, naming the group, for a needed time or weight that is negative or NaN, or a
    tardiness that is NaN.
    """
    if rank is Rank.GAMMA:
        return sebf(needed_s, weights)
    sebf(needed_s, weights)
    if np.isnan(tardiness_s).any():
        raise ValueError(f"group {int(np.isnan(tardiness_s).argmax())}: its tardiness must be a number, not nan")
    is_weighed = weights > 0
    is_ascending = rank is Rank.TARDINESS_ASCENDING
    divided = np.divide(tardiness_s, weights, out=np.zeros(len(weights)), where=is_weighed)
    weighed = np.where((tardiness_s > 0) == is_ascending, divided, tardiness_s * weights)
    return np.where(is_weighed, weighed if is_ascending else -weighed, np.inf).argsort(kind="stable")


def due_s(ideal_finish_s: FloatArray, tardiness_s: FloatArray, now_s: float) -> FloatArray:
    """How long from now each flow may take without making its group later than it is: what echelon-MADD asks for.

    ``tardiness_s`` is the largest of those of the flow's group that have ended; it counts as 0 where it is less.
    """
    return ideal_finish_s + np.maximum(tardiness_s, 0.0) - now_s


def _tardiness_s(group: FlowGroup, snapshot: Snapshot) -> float:
    """How late a group's flows end that all begin at once, served alone in order of ideal finish; at least 0.

    By link, the time for the bytes of all flows up to one, less its offset; the largest of these.
    """
    rates_bps = snapshot.links.rates_bps
    sent_s: dict[int, float] = {}
    late_s = 0.0
    for flow in sorted((flow for flow in group.flows if flow.size_bytes > 0), key=lambda flow: flow.offset_s):
        for link in (*flow.hashed_path, *flow.host_links):
            sent_s[link] = sent_s.get(link, 0.0) + flow.size_bytes * 8 / float(rates_bps[link])
            late_s = max(late_s, sent_s[link] - flow.offset_s)
    return late_s


def _reason(rank: Rank, group: FlowGroup, key_s: float, job: Job, levels: Sequence[int]) -> str:
    needs = f"needs its bottleneck link {key_s:.4g} s an iteration"
    late = f"alone would be {key_s:.4g} s late"
    first = f"Its group {group.name!r} {needs if rank is Rank.GAMMA else late}"
    of = f", first of its {len(job.flow_groups)}" if len(job.flow_groups) > 1 else ""
    parted = f"; its flows have levels {max(levels)} to {min(levels)}" if min(levels) < max(levels) else ""
    return f"{first}{of}{parted}."
