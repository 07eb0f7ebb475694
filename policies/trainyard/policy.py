"""Trainyard's own policy: paths, order and levels of flow groups, for the most computation per second.

Objective: GPU-seconds of computation per second over all jobs. Inputs: release and due times and bytes of flow groups,
candidate paths, link rates, profiles. It is enforced by levels, and decided at job events. A component of the
contention graph that an event does not touch keeps its decisions. docs/trainyard-policy.md derives the policy and
measures each step.

One decision goes through these modules, component by component:

- ``contention``: which jobs may share links.
- ``modelled``: jobs that are few play their task graphs under one plan after another: ``job_model`` plays and scores
  (``score``, ``due_share``), ``plan_search`` walks from plan to plan (``assignment``).
- ``damping`` and ``priorities``: jobs that are too many for that are ordered by the fluid bound (``fluid_bound``,
  ``order``), compared by ``capacity`` alone, and get levels by a maximum K-cut (``levels``).
- ``path_choice``: paths for all flows.
- ``outcome`` and ``memory``: what is in force, and stays unless a change gains enough.

Cost, for n contending jobs that use e links together: O(e) for what is in force, linear in the links of all candidates
for flows that choose paths, O(e) for each step of the fluid bound, O(n^2) for each order of the compression, and a
bounded number of runs of the model where jobs are few.
"""

from dataclasses import replace
from itertools import repeat

import numpy as np

from policies.enforcement import SWITCH_LEVELS
from policies.flows import FlowKey
from policies.job import Job
from policies.plan import FlowPlan, JobPlan, ModelledWorth, Plan, flow_plans
from policies.plan_builder import SENDS_NOTHING
from policies.policy import Policy
from policies.snapshot import Snapshot
from policies.trainyard.component import Settings
from policies.trainyard.contention import candidate_components
from policies.trainyard.damping import decide_by_capacity
from policies.trainyard.memory import FlowPlans, Memory, TrainyardMemoryCodec
from policies.trainyard.options import TrainyardOptions
from policies.trainyard.outcome import JobOutcome

_DEFAULT = TrainyardOptions()
_FULL = 0.999
"""From this share of a job's iterations on, reasons call it all."""


def trainyard(snapshot: Snapshot, options: TrainyardOptions = _DEFAULT) -> Plan:
    """Choose paths, order and levels.

    Jobs that have not changed keep what ``snapshot.previous`` gives them, unless another decision gains enough. That
    needs a previous Plan of this policy, for the same fabric and with the same options.
    """
    # The model imports numba, which takes longer than listing policies may.
    from policies.trainyard.modelled import decide_by_model

    settings = Settings(snapshot.links, snapshot.num_levels, snapshot.seed, options)
    jobs = sorted(snapshot.jobs, key=lambda job: job.name)
    memory = _memory_of(snapshot.previous, settings)
    foreign = snapshot.foreign_utilisation
    in_force = {job.name: memory.outcomes[job.name] for job in jobs if _is_known(job, memory)}
    touched = np.zeros(len(snapshot.links), dtype=np.bool_)
    for name, outcome in memory.outcomes.items():
        if name not in in_force:
            touched[outcome.job.reachable_links] = True

    outcomes: dict[str, JobOutcome] = {}
    prices = np.zeros(len(snapshot.links))
    for component in candidate_components(jobs):
        known = {job.name: in_force[job.name] for job in component if job.name in in_force}
        if len(known) < len(component) or any(touched[job.reachable_links].any() for job in component):
            decided = decide_by_model(component, known, settings, foreign, len(jobs))
            if decided is None:
                decided, bounds = decide_by_capacity(component, known, memory.prices, settings, foreign)
                for bound in bounds:
                    prices[bound.scarce] = bound.price
            outcomes |= {outcome.job.name: outcome for outcome in decided}
        else:
            outcomes |= {
                name: replace(outcome, worth_before=outcome.served * outcome.worth) for name, outcome in known.items()
            }
            for job in component:
                prices[job.reachable_links] = memory.prices[job.reachable_links]

    by_job = {name: _flow_plans(outcome, memory) for name, outcome in outcomes.items()}
    flows: dict[FlowKey, FlowPlan] = {}
    for of_job in by_job.values():
        flows.update(of_job)
    idle = [job for job in jobs if job.name not in outcomes]
    for job in idle:
        flows.update(flow_plans(job.flows, repeat(None), 0, 0))
    ranked = sorted(outcomes.values(), key=_rank_key)
    plans = [_job_plan(rank, outcome, options) for rank, outcome in enumerate(ranked)]
    plans += [_idle_plan(rank, job) for rank, job in enumerate(idle, len(ranked))]
    expected_s = {outcome.job.name: time_s for outcome in ranked if (time_s := outcome.iteration_s) is not None}
    worth = ModelledWorth(
        sum(outcome.worth_before for outcome in ranked),
        sum(outcome.served * outcome.worth for outcome in ranked),
        expected_s | {job.name: job.profile.compute_s for job in idle},
    )
    return Plan("trainyard", tuple(plans), flows, worth, Memory(settings, outcomes, by_job, prices))


def _memory_of(previous: Plan | None, settings: Settings) -> Memory:
    if previous is not None and isinstance(previous.memory, Memory) and previous.memory.settings == settings:
        return previous.memory
    return Memory(settings, {}, {}, np.zeros(len(settings.links)))


def _is_known(job: Job, memory: Memory) -> bool:
    """Return whether a job that sends has not changed."""
    outcome = memory.outcomes.get(job.name)
    return outcome is not None and (outcome.job is job or outcome.job == job)


def _rank_key(outcome: JobOutcome) -> tuple[int, float, str]:
    """Sort by place, which counts within a component; ties by urgency and name."""
    return min(outcome.places), -outcome.urgency, outcome.job.name


def _flow_plans(outcome: JobOutcome, memory: Memory) -> FlowPlans:
    """Return the flow plans of an outcome: the same object as before where nothing has changed."""
    before = memory.outcomes.get(outcome.job.name)
    if before is not None and outcome.has_same_flow_plans(before):
        return memory.flows[outcome.job.name]
    paths = iter(outcome.paths.paths)
    flows: dict[FlowKey, FlowPlan] = {}
    for group, level, place in zip(outcome.job.flow_groups, outcome.levels, outcome.places, strict=True):
        flows.update(flow_plans(group.flows, paths, level, place))
    return flows


def _job_plan(rank: int, outcome: JobOutcome, options: TrainyardOptions) -> JobPlan:
    return JobPlan(
        name=outcome.job.name,
        rank=rank,
        level=max(outcome.levels),
        intensity=outcome.intensity,
        correction_factor=None,
        priority=outcome.urgency,
        time_shift_s=None,
        reason=_reason(outcome, options),
    )


def _idle_plan(rank: int, job: Job) -> JobPlan:
    return JobPlan(job.name, rank, 0, None, None, None, None, SENDS_NOTHING)


def _reason(outcome: JobOutcome, options: TrainyardOptions) -> str:
    room = "all its iterations" if outcome.bound_share >= _FULL else f"{outcome.bound_share:.1%} of its iterations"
    reason = (
        f"Its delay costs {outcome.urgency:.4g} for each second of its window. The network has room for {room} and,"
        f" by the model, gives it {min(outcome.served, 1.0):.1%}."
    )
    if outcome.excess > 0:
        reason += f" No plan was found that slows it down at most {options.max_slowdown:g} times."
    if outcome.lacks > 0:
        reason += " No plan was found that gives it the least that is due to it."
    return reason


TRAINYARD = Policy(
    "trainyard",
    "trainyard: paths and levels of flow groups, by playing the jobs' task graphs",
    trainyard,
    ideal_rates=SWITCH_LEVELS,
    memory_codec=TrainyardMemoryCodec(),
)
