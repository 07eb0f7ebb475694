"""CASSINI: jobs that share a link begin their iterations at times at which their transfers meet least.

Optimises the compatibility of jobs link by link. Source: Rajasekaran, Ghobadi and Akella, *CASSINI: Network-Aware Job
Scheduling in Machine Learning Clusters*, NSDI 2024. Inputs: profiles, bytes by link on the paths of the fabric's hash,
link rates, times of arrival. It fills ``time_shift_s``: how much later than it arrived a job's rhythm begins. No ranks
and one level for all; allocator max-min, at job events. At most one circle less than there are jobs is optimised, each
in O(j a c) for j jobs, a angles to turn to and c angles of the circle.

The affinity graph joins jobs with the links that they contend for: links on which their demands, were they to meet, add
up to more than the rate. Links are taken by the share of time that they are asked for, most first. A link turns the
jobs on it against each other, and each takes along all jobs that earlier links have tied it to. So without a loop every
link gets the shifts of its own circle, as by the paper's walk through the graph, t_k = (t_j - t_jl + t_kl) mod T_k.

Departures. *Loops*: the paper drops placements whose graph has one; here jobs are placed already, so a link that closes
a loop leaves what the links before it have fixed between its jobs, and turns only the rest. *Zero*: of the jobs tied
together the one that came first is not shifted, ties by name. *Demand* is taken as even during a transfer. More than
two on a link are placed by descent (``unified_circle``) instead of by a solver.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from controller.policy.coflows import seconds_by_link
from controller.policy.intensity import Demand, FloatArray, rates_bps
from controller.policy.job_order import JobDecision, demands_of, plan_of
from controller.policy.plan import Plan
from controller.policy.policy_name import PolicyName
from controller.policy.snapshot import Snapshot
from controller.policy.unified_circle import UnifiedCircle, Use

_LONGEST_ITERATION_S = 1e7
_SAME_TIME = 1e-9

_Uses = Mapping[int, Use]
"""Uses of one link by job number."""


def cassini(snapshot: Snapshot) -> Plan:
    """Shift the jobs' iterations against each other.

    Raises ValueError, naming the job, for an iteration longer than 10^7 s.
    """
    link_rates_bps = rates_bps(snapshot.links)
    demands = sorted(demands_of(snapshot, link_rates_bps), key=lambda demand: demand.job.arrival_s)
    for demand in demands:
        if not demand.iteration.duration_s <= _LONGEST_ITERATION_S:
            raise ValueError(
                f"job {demand.job.name!r}: size_bytes make an iteration of {demand.iteration.duration_s:g} s,"
                f" the longest is {_LONGEST_ITERATION_S:g} s"
            )
    contended = _contended_links(demands, link_rates_bps)
    phases_s, component = _phases(len(demands), contended)
    scores = [1.0] * len(demands)
    for uses in contended:
        circle = UnifiedCircle([[_turned(use, phases_s[job]) for job, use in uses.items()]])
        score = circle.score([0])
        for job in uses:
            scores[job] = min(scores[job], score)
    contending = {job for uses in contended for job in uses}
    decisions = []
    for number, demand in enumerate(demands):
        first = component.index(component[number])
        shift_s = _shift_s(demand, phases_s[number], demands[first], phases_s[first])
        reason = (
            f"On the link where it meets others most, their transfers fit by {scores[number]:.3g} of 1."
            if number in contending
            else "It meets nobody on a link that could be too little for all."
        )
        decisions.append(JobDecision(demand, level=0, order=0, reason=reason, time_shift_s=shift_s))
    return plan_of(PolicyName.CASSINI, decisions)


def _contended_links(demands: Sequence[Demand], link_rates_bps: FloatArray) -> list[_Uses]:
    """Links whose jobs could together ask for more than the rate; the one asked for most of the time first."""
    seconds = seconds_by_link(demands, link_rates_bps).tocsc()
    seconds.sort_indices()
    links = []
    for begin, end in zip(seconds.indptr[:-1], seconds.indptr[1:], strict=True):
        if end - begin > 1:
            uses = {}
            for job, seconds_used in zip(
                seconds.indices[begin:end].tolist(), seconds.data[begin:end].tolist(), strict=True
            ):
                iteration = demands[job].iteration
                share = seconds_used / iteration.comm_s
                uses[job] = Use(iteration.duration_s, iteration.ready_s, iteration.comm_s, share)
            if sum(use.share for use in uses.values()) > 1.0:
                links.append(uses)
    return sorted(links, key=lambda uses: -sum(use.share * use.busy_s / use.period_s for use in uses.values()))


def _phases(num_jobs: int, links: Sequence[_Uses]) -> tuple[list[float], list[int]]:
    """How far every job is turned, and the number of the jobs it is tied to."""
    phases_s, component = [0.0] * num_jobs, list(range(num_jobs))
    for uses in links:
        parts = defaultdict(list)
        for job in uses:
            parts[component[job]].append(job)
        if len(parts) > 1:
            circle = UnifiedCircle([[_turned(uses[job], phases_s[job]) for job in part] for part in parts.values()])
            one = next(iter(parts))
            for part, turn in zip(parts, circle.best_turns(), strict=True):
                for job in [job for job in range(num_jobs) if component[job] == part]:
                    phases_s[job] += turn * circle.step_s
                    component[job] = one
    return phases_s, component


def _turned(use: Use, phase_s: float) -> Use:
    return replace(use, start_s=use.start_s + phase_s)


def _shift_s(demand: Demand, phase_s: float, first: Demand, first_phase_s: float) -> float:
    """By how much later than it arrived a job begins, so that it keeps its phase to the first of those tied to it."""
    period_s = demand.iteration.duration_s
    if not period_s:
        return 0.0
    shift_s = (phase_s - first_phase_s - demand.job.arrival_s + first.job.arrival_s) % period_s
    return 0.0 if period_s - shift_s < _SAME_TIME * period_s else shift_s
