"""EchelonFlow: flows finish in the formation that computation needs, and groups with least left to send go first.

Minimises the weighted sum of the tardiness of flow groups. Source: Pan, Lei, Li, Xie, Yuan and Xia, *Efficient Flow
Scheduling in Distributed Deep Learning Training with Echelon Formation*, HotNets 2022, section 3, and its technical
report; neither has an algorithm beyond "MADD, by tardiness". Inputs: bytes by link, link rates, ideal finish times
(offsets), in seconds and bytes. Allocator echelon-MADD, at flow events, where ``group_order`` ranks the open flow
groups; with levels, at job events, a job is one group of its bytes per iteration. O(h + n log n) for h pairs of job and
link, and O(f log f) for the f flows of a job.

Choices, derived in ``docs/echelonflow.md``: what ranks groups (the paper's sentence allows any ``Rank``); what the
flow that is latest means for the rates of the others; weights. With offsets of 0 it is Varys. Levels: the jobs share
them as in Varys; those to spare part a job's flows by ideal finish, the earliest on the highest. Within a job, offsets
of different groups are compared as if all groups began together: a Snapshot does not say when they do.
"""

from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from controller.policy.coflows import JobCoflow, JobWeight, job_coflows, seconds_by_link, weights_of
from controller.policy.intensity import FloatArray
from controller.policy.job_order import SENDS_NOTHING, JobDecision, job_plans
from controller.policy.level_mapping import bands, equal_classes
from controller.policy.plan import FlowPlan, Plan
from controller.policy.policy_name import PolicyName
from controller.policy.snapshot import Job, Snapshot
from controller.policy.varys import bottleneck_times, sebf

IntArray = npt.NDArray[np.int64]

_SAME_OFFSET = 1e-9
"""Ideal finishes that differ by less than this share of a job's largest offset are one: the rest is rounding."""


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
    """Serve the jobs by their rank, and each job's flows by ideal finish."""
    coflows = job_coflows(snapshot)
    sending = [coflow for coflow in coflows if coflow.sends]
    idle = [coflow for coflow in coflows if not coflow.sends]
    needed_s = bottleneck_times(seconds_by_link(sending))
    tardiness_s = np.array([_tardiness_s(coflow, snapshot) for coflow in sending])
    order = group_order(options.rank, needed_s, tardiness_s, weights_of(sending, options.weight))
    ranked = [sending[position] for position in order]
    stages = [_stages(coflow.job) for coflow in ranked]
    num_stages = [max(found) + 1 for found in stages]
    if len(ranked) < snapshot.num_levels:
        sizes = bands(num_stages, snapshot.num_levels)
        tops = [snapshot.num_levels - 1 - above for above in accumulate(sizes, initial=0)]
    else:
        sizes, tops = [1] * len(ranked), equal_classes(len(ranked), snapshot.num_levels)
    first_order = list(accumulate(num_stages, initial=0))
    flows, decisions = {}, []
    for rank, coflow in enumerate(ranked):
        for flow, stage in zip(coflow.job.flows, stages[rank], strict=True):
            level = tops[rank] - stage * sizes[rank] // num_stages[rank]
            flows[flow.key] = FlowPlan(None, level, first_order[rank] + stage)
        reason = _reason(coflow, tardiness_s[order[rank]], num_stages[rank], sizes[rank])
        decisions.append(JobDecision(coflow, tops[rank], first_order[rank], reason))
    for number, coflow in enumerate(idle, first_order[-1]):
        flows |= {flow.key: FlowPlan(None, 0, number) for flow in coflow.job.flows}
        decisions.append(JobDecision(coflow, 0, number, SENDS_NOTHING))
    return Plan(PolicyName.ECHELONFLOW, job_plans(decisions), flows)


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


def _tardiness_s(coflow: JobCoflow, snapshot: Snapshot) -> float:
    """How late a job's flows end that all begin at once, served alone in order of ideal finish; 0 without any.

    By link, the time for the bytes of all flows up to one, less its offset; the largest of these.
    """
    rates_bps = snapshot.links.rates_bps
    sent_s: dict[int, float] = {}
    late_s = 0.0
    for flow in sorted((flow for flow in coflow.job.flows if flow.size_bytes > 0), key=lambda flow: flow.offset_s):
        for link in (*flow.hashed_path, *flow.host_links):
            sent_s[link] = sent_s.get(link, 0.0) + flow.size_bytes * 8 / float(rates_bps[link])
            late_s = max(late_s, sent_s[link] - flow.offset_s)
    return late_s


def _stages(job: Job) -> list[int]:
    """By flow, how many different ideal finishes of the job come before its own."""
    offsets_s = np.array([flow.offset_s for flow in job.flows])
    order = offsets_s.argsort(kind="stable")
    steps = np.diff(offsets_s[order]) > _SAME_OFFSET * np.abs(offsets_s).max(initial=0.0)
    stages = np.zeros(len(offsets_s), dtype=np.int64)
    stages[order[1:]] = np.cumsum(steps)
    found: list[int] = stages.tolist()
    return found


def _reason(coflow: JobCoflow, tardiness_s: float, num_stages: int, num_levels: int) -> str:
    needs = f"An iteration's bytes take its bottleneck link {coflow.iteration.comm_s:.4g} s"
    if num_stages == 1:
        return f"{needs}."
    parted = f" on {num_levels} levels" if num_levels > 1 else ""
    return f"{needs}, the latest {tardiness_s:.4g} s after its ideal finish; {num_stages} stages{parted}."


def due_s(ideal_finish_s: FloatArray, tardiness_s: FloatArray, now_s: float) -> FloatArray:
    """How long from now each flow may take without making its group later than it is: what echelon-MADD asks for.

    ``tardiness_s`` is the largest of those of the flow's group that have ended; it counts as 0 where it is less.
    """
    return ideal_finish_s + np.maximum(tardiness_s, 0.0) - now_s
