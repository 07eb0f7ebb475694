"""CASSINI: jobs that share a link shift their iterations in time so that their transfers overlap least.

Objective: the compatibility of jobs, link by link. Source: Rajasekaran, Ghobadi and Akella, *CASSINI: Network-Aware Job
Scheduling in Machine Learning Clusters*, NSDI 2024. Inputs: profiles, bytes by link on the paths of the fabric's hash,
link rates, arrival times. It sets ``time_shift_s``: how long after its arrival a job's first iteration begins. There
are no ranks and one level for all; allocator max-min, at job events. At most one circle less than there are jobs is
optimised, each in O(j a c) for j jobs, a angles to turn to and c angles of the circle.

The affinity graph joins jobs with the links that they contend for: links on which their demands together exceed the
rate when they coincide. Links are taken by the share of time for which they are demanded, the largest first. A link
turns its jobs against each other, and each job takes along all jobs that earlier links have tied it to. So in a graph
without loops every link gets the shifts of its own circle, as by the paper's walk through the graph, t_k = (t_j - t_jl
+ t_kl) mod T_k.

Differences from the paper:

- Loops: the paper drops placements whose graph has one. Here jobs are already placed, so a link that closes a loop
  keeps what earlier links have fixed between its jobs, and turns only the rest.
- Threshold: the paper scores placements and takes the best one, so that jobs which do not fit do not meet. Here jobs
  are already placed. A shift that does not fit costs more than it saves: who is late waits for its next beat. So jobs
  tied together are shifted only if they reach ``CassiniOptions.least_score`` on every link, all of them or none.
- Zero: of the jobs tied together the first to arrive is not shifted, ties by name. A job tied to no other has no shift.
- Demand is even during a transfer.
- More than two jobs on a link are placed by descent (``unified_circle``) instead of by a solver.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from policies.baselines.unified_circle import UnifiedCircle, Use
from policies.coflows import JobCoflow, job_coflows, seconds_by_link
from policies.enforcement import SWITCH_LEVELS
from policies.intensity import MAX_ITERATION_S
from policies.plan import Plan
from policies.plan_builder import JobDecision, plan_of
from policies.policy import Policy
from policies.snapshot import Snapshot

_SAME_TIME = 1e-9
_ROUNDING = 1e-9
"""Of a score."""
_MEETS_NOBODY = "It meets nobody on a link that could be too little for all."

_Uses = Mapping[int, Use]
"""Uses of one link by number of job."""


@dataclass(frozen=True, slots=True)
class CassiniOptions:
    """What the paper leaves open.

    Attributes:
        least_score: Jobs that are tied together are shifted only if each link that they contend for reaches this
            compatibility. 1 asks for transfers that fit perfectly, minus infinity shifts all jobs that contend.
            The default is ours; docs/policies.md has the drawn mixes that it was chosen on.

    Raises:
        ValueError: ``least_score`` is above 1 or NaN, so that no job could reach it.
    """

    least_score: float = 1.0

    def __post_init__(self) -> None:
        if not self.least_score <= 1.0:
            raise ValueError(f"least_score must be at most 1, not {self.least_score}")


DEFAULT_OPTIONS = CassiniOptions()


def cassini(snapshot: Snapshot, options: CassiniOptions = DEFAULT_OPTIONS) -> Plan:
    """Shift the iterations of compatible jobs against each other. Ranks follow arrival, then name, and mean nothing.

    Raises:
        ValueError: An iteration is longer than 10^7 s; the message names the job.
    """
    coflows = sorted(job_coflows(snapshot), key=lambda coflow: coflow.job.arrival_s)
    for coflow in coflows:
        if not (duration_s := coflow.iteration.duration_s) <= MAX_ITERATION_S:
            raise ValueError(
                f"job {coflow.job.name!r}: size_bytes make an iteration of {duration_s:g} s,"
                f" the longest is {MAX_ITERATION_S:g} s"
            )
    contended = _contended_links(coflows)
    phases_s, tied_to = _phases(len(coflows), contended)
    scores = _lowest_scores(contended, phases_s)
    tied_scores = _of_tied_jobs(scores, tied_to)
    decisions = []
    for position, coflow in enumerate(coflows):
        if position not in scores:
            decisions.append(JobDecision(coflow, level=0, order=0, reason=_MEETS_NOBODY))
            continue
        if (tied_score := tied_scores[tied_to[position]]) < options.least_score - _ROUNDING:
            reason = f"It is not shifted: jobs tied to it score {tied_score:.3f}, less than {options.least_score:g}."
            decisions.append(JobDecision(coflow, level=0, order=0, reason=reason))
            continue
        first = tied_to.index(tied_to[position])
        shift_s = _shift_s(coflow, phases_s[position], coflows[first], phases_s[first])
        reason = (
            f"Begins {shift_s:.4g} s later; on the link where it meets others most, they score {scores[position]:.3f}."
        )
        decisions.append(JobDecision(coflow, level=0, order=0, reason=reason, time_shift_s=shift_s))
    return plan_of("cassini", decisions)


def _contended_links(coflows: Sequence[JobCoflow]) -> list[_Uses]:
    """Return the links whose jobs together may exceed the rate, the one demanded most of the time first."""
    by_link = seconds_by_link(coflows).tocsc()
    by_link.sort_indices()
    links = []
    for link in np.flatnonzero(np.diff(by_link.indptr) > 1):
        users = slice(by_link.indptr[link], by_link.indptr[link + 1])
        uses = {}
        for job, seconds in zip(by_link.indices[users].tolist(), by_link.data[users].tolist(), strict=True):
            iteration = coflows[job].iteration
            uses[job] = Use(iteration.duration_s, iteration.ready_s, iteration.comm_s, seconds / iteration.comm_s)
        if sum(use.share for use in uses.values()) > 1.0:
            links.append(uses)
    return sorted(links, key=lambda uses: -sum(use.share * use.busy_s / use.period_s for use in uses.values()))


def _phases(num_jobs: int, links: Sequence[_Uses]) -> tuple[list[float], list[int]]:
    """Return by job how far it is turned, and the number of the tied jobs it belongs to."""
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


def _lowest_scores(links: Sequence[_Uses], phases_s: Sequence[float]) -> dict[int, float]:
    """Return, for every job that shares a contended link, the lowest compatibility of its links."""
    scores: dict[int, float] = {}
    for uses in links:
        score = UnifiedCircle([[_turned(use, phases_s[job]) for job, use in uses.items()]]).score([0])
        scores |= {job: min(score, scores.get(job, score)) for job in uses}
    return scores


def _of_tied_jobs(scores: Mapping[int, float], tied_to: Sequence[int]) -> dict[int, float]:
    """Return the lowest score among the jobs that are tied together, by the number that ``_phases`` gives them."""
    lowest: dict[int, float] = {}
    for job, score in scores.items():
        lowest[tied_to[job]] = min(score, lowest.get(tied_to[job], score))
    return lowest


def _turned(use: Use, phase_s: float) -> Use:
    return replace(use, start_s=use.start_s + phase_s)


def _shift_s(coflow: JobCoflow, phase_s: float, first: JobCoflow, first_phase_s: float) -> float:
    """Return how long after its arrival a job begins to keep its phase to the first of the jobs tied to it."""
    period_s = coflow.iteration.duration_s
    shift_s = (phase_s - first_phase_s - coflow.job.arrival_s + first.job.arrival_s) % period_s
    return 0.0 if period_s - shift_s < _SAME_TIME * period_s else shift_s


CASSINI = Policy(
    "cassini",
    "CASSINI: no levels; iterations are shifted in time so that transfers meet least",
    cassini,
    ideal_rates=SWITCH_LEVELS,
)
