"""Trainyard's own policy: paths, order and levels by flow group, for the most computation per second.

Objective: GPU-seconds of computation per second over all jobs. Inputs: windows and bytes of flow groups, candidate
paths, link rates, profiles. Serves by levels, decided at job events; a component of the contention graph that an event
does not touch keeps its decisions. docs/trainyard-policy.md derives it and tells what each step is worth.

For n jobs that contend and e entries of who uses which link: O(e) for what is in force, linear in the links of all
candidates for flows that choose, O(e) for each step of the fluid bound, O(n^2) for each order of the compression; and a
bounded number of runs of a fluid model where jobs are few.
"""

from dataclasses import replace
from itertools import repeat

import numpy as np

from policies.flows import FlowKey
from policies.job import Job
from policies.plan import FlowPlan, JobPlan, ModelledWorth, Plan, flow_plans
from policies.policy import Policy
from policies.snapshot import Snapshot
from policies.trainyard.component import Outcome, Setting, decide_component
from policies.trainyard.components import components
from policies.trainyard.memory import FlowPlans, Memory, TrainyardMemoryCodec
from policies.trainyard.options import TrainyardOptions

_DEFAULT = TrainyardOptions()
_ALL = 0.999


def trainyard(snapshot: Snapshot, options: TrainyardOptions = _DEFAULT) -> Plan:
    """Choose paths, order and levels.

    What ``snapshot.previous`` has for jobs that have not changed stays where no other decision is worth the change, if
    it is a Plan of this policy for the same fabric and with the same options.
    """
    setting = Setting(snapshot.links, snapshot.num_levels, snapshot.seed, options)
    jobs = sorted(snapshot.jobs, key=lambda job: job.name)
    memory = _memory_of(snapshot.previous, setting)
    foreign = snapshot.foreign_utilisation
    in_force = {job.name: memory.outcomes[job.name] for job in jobs if _is_known(job, memory)}
    touched = np.zeros(len(snapshot.links), dtype=np.bool_)
    for name, outcome in memory.outcomes.items():
        if name not in in_force:
            touched[outcome.job.reach] = True

    outcomes: dict[str, Outcome] = {}
    prices = np.zeros(len(snapshot.links))
    for component in components(jobs):
        known = {job.name: in_force[job.name] for job in component if job.name in in_force}
        if len(known) < len(component) or any(touched[job.reach].any() for job in component):
            decided, bounds = decide_component(component, known, memory.prices, setting, foreign)
            outcomes |= {outcome.job.name: outcome for outcome in decided}
            for bound in bounds:
                prices[bound.scarce] = bound.price
        else:
            outcomes |= {
                name: replace(outcome, worth_before=outcome.served * outcome.worth) for name, outcome in known.items()
            }
            for job in component:
                prices[job.reach] = memory.prices[job.reach]

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
    worth = ModelledWorth(
        sum(outcome.worth_before for outcome in ranked),
        sum(outcome.served * outcome.worth for outcome in ranked),
    )
    return Plan("trainyard", tuple(plans), flows, worth, Memory(setting, outcomes, by_job, prices))


def _memory_of(previous: Plan | None, setting: Setting) -> Memory:
    if previous is not None and isinstance(previous.memory, Memory) and previous.memory.setting == setting:
        return previous.memory
    return Memory(setting, {}, {}, np.zeros(len(setting.links)))


def _is_known(job: Job, memory: Memory) -> bool:
    """Whether a job that sends is as it was."""
    outcome = memory.outcomes.get(job.name)
    return outcome is not None and (outcome.job is job or outcome.job == job)


def _rank_key(outcome: Outcome) -> tuple[int, float, str]:
    """Places count within a lot of jobs that meet; ties go by urgency and name."""
    return min(outcome.places), -outcome.urgency, outcome.job.name


def _flow_plans(outcome: Outcome, memory: Memory) -> FlowPlans:
    """What an outcome is for the flows of its job; where that is as before, the very same."""
    before = memory.outcomes.get(outcome.job.name)
    if before is not None and outcome.is_for_flows_as(before):
        return memory.flows[outcome.job.name]
    paths = iter(outcome.ways.paths)
    flows: dict[FlowKey, FlowPlan] = {}
    for group, level, place in zip(outcome.job.flow_groups, outcome.levels, outcome.places, strict=True):
        flows.update(flow_plans(group.flows, paths, level, place))
    return flows


def _job_plan(rank: int, outcome: Outcome, options: TrainyardOptions) -> JobPlan:
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
    return JobPlan(job.name, rank, 0, None, None, None, None, "It sends nothing, so no path and no level can help it.")


def _reason(outcome: Outcome, options: TrainyardOptions) -> str:
    room = "all its iterations" if outcome.share >= _ALL else f"{outcome.share:.1%} of its iterations"
    reason = (
        f"Its delay costs {outcome.urgency:.4g} for each second of its window. The network has room for {room} and,"
        f" by the model, gives it {min(outcome.served, 1.0):.1%}."
    )
    if outcome.excess > 0:
        reason += f" No order was found that slows it down at most {options.max_slowdown:g} times."
    return reason


TRAINYARD = Policy(
    "trainyard",
    "trainyard: paths, order and levels of flow groups, by what delay costs and links charge",
    trainyard,
    memory_codec=TrainyardMemoryCodec(),
)
