"""Measures the cases of ``outcomes``: here the names in them become jobs, methods and tasks."""

from collections.abc import Sequence
from dataclasses import replace

from experiments.compression.conditions import Condition, Conditions, contended, falling, fixed
from experiments.compression.methods import ADAPTIVE, BASELINES, FIXED, METHODS, Method
from experiments.compression.numbers import OURS
from experiments.compression.outcomes import (
    BATCH,
    AtRate,
    FoldCurve,
    JobName,
    MethodAtRate,
    Part,
    RateCase,
    Scenario,
    ScenarioCase,
    TrainingCase,
    UnderScenario,
)
from experiments.compression.real_models import MODELS
from experiments.compression.sending import TABLES
from experiments.compression.tasks import task_named
from experiments.compression.timeline import Job, Step, ratio_of, run
from experiments.compression.training import train
from experiments.scenarios.backend import Backend

SETTLED_STEPS = 20
"""From this step on, throughput at one rate counts."""
ADAPTING_STEPS = 5
"""Steps that a mode has after each change of conditions."""
HOLD_S = 30.0
"""How long each condition of a scenario lasts."""
_STEADY_STEPS = 3


def at_rate(case: RateCase) -> AtRate:
    """Run all methods at one rate."""
    job = _job(case.job)
    methods = [
        _at_rate(job, method, run(job, method, fixed(case.rate_mbps), case.steps, backend=case.backend))
        for method in METHODS.values()
    ]
    return AtRate(case, tuple(methods))


def under_scenario(case: ScenarioCase) -> UnderScenario:
    """Run all modes through a scenario, and all fixed configurations under each of its conditions alone."""
    job = _job(case.job)
    conditions = {Scenario.FALLING: falling, Scenario.CONTENDED: contended}[case.scenario](HOLD_S)
    end_s = conditions.parts[-1].from_s + HOLD_S
    most_steps = int(end_s / job.compute_s) + 1
    done = {method.name: run(job, method, conditions, most_steps, end_s, case.backend) for method in ADAPTIVE}
    parts = [
        Part(
            part.rate_bps,
            part.streams,
            {mode: _share(job, _of_part(steps, part)) for mode, steps in done.items()},
            {method.name: _steady_share(job, method, part, case.backend) for method in (*BASELINES, *FIXED)},
            _used_where_compressed(_of_part(done[OURS], part)),
        )
        for part in conditions.parts
    ]
    ratios = tuple((step.start_s, ratio_of(step, job.model)) for step in done[OURS])
    return UnderScenario(case, tuple(parts), ratios)


def trained(case: TrainingCase) -> FoldCurve:
    """Train one fold with what the method sends at the case's rate."""
    method, real_job = METHODS[case.method], _job(case.job)
    steps = run(real_job, method, fixed(case.rate_mbps or _ANY_RATE_MBPS), case.steps, backend=case.backend)
    sent = [(step.plan, step.remainder) for step in steps]
    task = task_named(case.task, case.data)
    return train(task, case.fold, sent, real_job.model, corrects_momentum=method.corrects_momentum)


_ANY_RATE_MBPS = 1000.0
"""For methods that send the same at each."""


def _job(name: JobName) -> Job:
    model = replace(MODELS[name.model], bucket_mib=name.bucket_mib)
    return Job(model, name.compute_s, TABLES[name.device])


def _at_rate(job: Job, method: Method, steps: Sequence[Step]) -> MethodAtRate:
    # Baselines that begin dense and later change have settled in the last third.
    settled = steps[max(SETTLED_STEPS, 2 * len(steps) // 3) :]
    share = _share(job, settled)
    return MethodAtRate(
        method.name,
        share,
        share * BATCH / job.compute_s,
        sum(step.busy_s for step in settled) / sum(step.free_s for step in settled),
        tuple(step.end_s for step in steps),
        tuple(ratio_of(step, job.model) for step in steps),
    )


def _share(job: Job, steps: Sequence[Step]) -> float:
    """Return the throughput of consecutive steps over that of the job without communication."""
    return len(steps) * job.compute_s / (steps[-1].end_s - steps[0].start_s)


def _of_part(steps: Sequence[Step], part: Condition) -> list[Step]:
    """Return the steps that lie in a condition, less those in which a mode adapts; all of them where they are few."""
    inside = [step for step in steps if part.from_s <= step.start_s < part.from_s + HOLD_S]
    return inside[ADAPTING_STEPS:] or inside


def _steady_share(job: Job, method: Method, part: Condition, backend: Backend) -> float:
    conditions = Conditions("steady", (Condition(0.0, part.rate_bps, part.streams),))
    return _share(job, run(job, method, conditions, _STEADY_STEPS, backend=backend)[-1:])


def _used_where_compressed(steps: Sequence[Step]) -> float | None:
    compressed = [step for step in steps if any(choice.ratio < 1 for choice in step.plan)]
    if not compressed:
        return None
    return sum(min(step.busy_s, step.free_s) for step in compressed) / sum(step.free_s for step in compressed)
