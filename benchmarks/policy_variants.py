"""``trainyard`` without one part at a time, on a drawn mix: for ``ablations.py``."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

from benchmarks.drawn_mixes import BASELINES, Measured, better_baseline, loaded
from experiments.scenarios.results import RunResult
from experiments.scenarios.simulated import run_on_simulator
from policies.flows import Flow
from policies.job import Job
from policies.plan import Plan
from policies.policy import Policy
from policies.registry import find_policy
from policies.snapshot import Snapshot
from policies.trainyard.options import TrainyardOptions
from policies.trainyard.plan_search import PlanSearch
from policies.trainyard.policy import trainyard
from topologies.paths import Paths
from workloads.scenario import Scenario

RUN_SEED = 1


def _changed(change: Callable[[Job], Job], snapshot: Snapshot) -> Plan:
    return trainyard(replace(snapshot, jobs=tuple(map(change, snapshot.jobs))))


def _with_options(options: TrainyardOptions, snapshot: Snapshot) -> Plan:
    return trainyard(snapshot, options)


def _on_one_level(snapshot: Snapshot) -> Plan:
    return trainyard(replace(snapshot, num_levels=1))


def _without_walk(snapshot: Snapshot) -> Plan:
    with patch.object(PlanSearch, "_climb", lambda _, best: best):
        return trainyard(snapshot)


def _guessed(job: Job) -> Job:
    return replace(job, task_graph=None)


def _undivided(job: Job) -> Job:
    """Return a job whose flow groups stay on one level, as where its task graph is a guess."""
    return job if job.task_graph is None else replace(job, task_graph=replace(job.task_graph, is_guessed=True))


def _hashed(job: Job) -> Job:
    def only(flow: Flow) -> Flow:
        return replace(flow, candidates=Paths([flow.hashed_path]))

    groups = (replace(group, flows=tuple(map(only, group.flows))) for group in job.flow_groups)
    return replace(job, flow_groups=tuple(groups))


VARIANTS: dict[str, Callable[[Snapshot], Plan]] = {
    "whole": trainyard,
    "task graphs guessed": partial(_changed, _guessed),
    "one level a job": partial(_changed, _undivided),
    "no shared levels": partial(_with_options, TrainyardOptions(may_share=False)),
    "paths alone": _on_one_level,
    "levels alone": partial(_changed, _hashed),
    "starts alone": _without_walk,
    "capacity alone": partial(_with_options, TrainyardOptions(max_modelled_jobs=0)),
}


class Comparison(NamedTuple):
    """A variant on a mix, against the baselines."""

    gain: float
    starved_jobs: int
    worst_job: float


def measure(drawing: Path, seed: int) -> dict[str, Comparison]:
    """Measure a mix under all variants."""
    scenario = Scenario.model_validate(loaded(drawing).mix(seed, RUN_SEED))
    baselines = {name: Measured.of([_run(scenario, find_policy(name))]) for name in BASELINES}
    utilisation = better_baseline(baselines).utilisation
    compared = {}
    for name, variant in VARIANTS.items():
        result = _run(scenario, replace(find_policy("trainyard"), decide=variant))
        worst_job = (result.worst_speed or 0.0) - baselines["crux"].worst_speeds[0]
        compared[name] = Comparison(result.gpu_utilisation - utilisation, result.starved_jobs, worst_job)
    return compared


def _run(scenario: Scenario, policy: Policy) -> RunResult:
    return run_on_simulator(scenario, policy, on_progress=lambda *_: None)
