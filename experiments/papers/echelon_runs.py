"""Runs of a mix under EchelonFlow, fair sharing, Varys and Sincronia, and the tardiness of its flow groups.

Coflow schedulers treat either a whole flow group as a coflow, or each of its stages (``workloads.arrangement``).
In both, tardiness is that of the flow groups.
"""

import statistics
from collections import defaultdict
from dataclasses import dataclass
from enum import StrEnum

from experiments.scenarios.results import JobResult
from experiments.scenarios.simulated import run_on_simulator
from policies.enforcement import Enforcement
from topologies.ecmp import hash_multipliers
from topologies.routing import Routing
from workloads.arrangement import split_by_stage
from workloads.isolated_run import run_isolated
from workloads.jobs import TrainingJob, training_jobs
from workloads.scenario import MeasureWindow, Scenario
from workloads.task_graph import TaskGraph


class Reading(StrEnum):
    """The part of a flow group that is a coflow."""

    GROUP = "group"
    STAGE = "stage"


@dataclass(frozen=True, slots=True)
class Contender:
    """A policy, and for a coflow scheduler the part of a flow group that is a coflow."""

    name: str
    policy: str
    reading: Reading = Reading.GROUP


FAIR = Contender("fair", "ecmp")
ECHELONFLOW = Contender("echelonflow", "echelonflow")
BY_GROUP = (Contender("varys, groups", "varys"), Contender("sincronia, groups", "sincronia"))
BY_STAGE = (
    Contender("varys, stages", "varys", Reading.STAGE),
    Contender("sincronia, stages", "sincronia", Reading.STAGE),
)
CONTENDERS = (FAIR, *BY_GROUP, *BY_STAGE, ECHELONFLOW)
"""The policies compared, fair sharing first."""


@dataclass(frozen=True, slots=True)
class RunMeasured:
    """One mix of one seed under one contender.

    Iteration time and slowdown (over the ideal iteration time) are means over the jobs. Tardiness is the sum over all
    flow groups; excess tardiness is the same minus the tardiness of each group in its isolated job. A group without an
    instance that ended in the window, and a job without an iteration in it, count with the whole window; ``starved`` is
    their number.
    """

    iteration_time_s: float
    slowdown: float
    tardiness_s: float
    excess_tardiness_s: float
    gpu_utilisation: float
    starved: int


def measure(scenario: Scenario, contender: Contender, enforcement: Enforcement) -> RunMeasured:
    """Run a mix that has a window of measurement. Raises as ``run_on_simulator`` does."""
    window = scenario.measure
    assert window is not None
    fabric = scenario.topology.build()
    routing = Routing(fabric, hash_multipliers(fabric.switches, scenario.seed))
    jobs = training_jobs(scenario, fabric)
    by_stage = contender.reading is Reading.STAGE
    result = run_on_simulator(
        scenario,
        contender.policy,
        enforcement,
        on_progress=lambda *_: None,
        transform_graph=_by_stages if by_stage else None,
    )
    whole_s = window.to_s - window.from_s
    found: dict[tuple[str, str], float | None] = {}
    if by_stage:
        for job, of in zip(jobs, result.jobs, strict=True):
            found |= {(job.name, group): late_s for group, late_s in _tardiness_s(job, of, window).items()}
    else:
        found = {(group.job, group.group): group.tardiness_s for group in result.flow_groups}
    late = {key: whole_s if late_s is None else late_s for key, late_s in found.items()}
    isolated = {
        (job.name, group): late_s for job in jobs for group, late_s in run_isolated(job, routing).tardiness_s.items()
    }
    times_s = [whole_s if job.iteration_time_s is None else job.iteration_time_s for job in result.jobs]
    slowdowns = (time_s / job.ideal_iteration_time_s for time_s, job in zip(times_s, result.jobs, strict=True))
    return RunMeasured(
        iteration_time_s=statistics.mean(times_s),
        slowdown=statistics.mean(slowdowns),
        tardiness_s=sum(late.values()),
        excess_tardiness_s=sum(late_s - isolated[key] for key, late_s in late.items()),
        gpu_utilisation=result.gpu_utilisation,
        starved=sum(late_s is None for late_s in found.values())
        + sum(job.iteration_time_s is None for job in result.jobs),
    )


def _by_stages(graph: TaskGraph) -> TaskGraph:
    return split_by_stage(graph)[0]


def _tardiness_s(job: TrainingJob, result: JobResult, window: MeasureWindow) -> dict[str, float | None]:
    """Return, by group of a job registered by stages, the mean over the instances that ended in the window."""
    _, stages = split_by_stage(job.graph)
    started: dict[tuple[str, int], float] = {}
    ended: defaultdict[tuple[str, int], list[tuple[float, float]]] = defaultdict(list)
    for interval in result.communicating:
        stage = stages[interval.group]
        instance = stage.group, interval.iteration
        started[instance] = min(started.get(instance, interval.start_s), interval.start_s)
        ended[instance].append((interval.end_s, interval.end_s - stage.offset_s))
    late: defaultdict[str, list[float]] = defaultdict(list)
    for instance, ends in ended.items():
        if window.from_s <= max(end_s for end_s, _ in ends) <= window.to_s:
            late[instance[0]].append(max(late_s for _, late_s in ends) - started[instance])
    return {
        group.name: statistics.mean(late[group.name]) if late[group.name] else None for group in job.graph.flow_groups
    }
