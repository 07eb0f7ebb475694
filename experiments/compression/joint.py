"""Two jobs on one link, of which one can compress: with the controller, and each deciding alone.

Mixes are drawn: models, computation per step, how much the two would send uncompressed over what the link carries, and
when the second job begins. Where each decides alone, the compressing job estimates its rate by itself, and switches
know no levels. With the controller it tells what it sends and is told what it may count on, and both have levels.
"""

import random
from collections.abc import Sequence
from dataclasses import replace

from experiments.compression.joint_control import JointControl
from experiments.compression.joint_outcomes import JobPair, JointCase, JointMix, JointPlay, PlayedJob
from experiments.compression.methods import METHODS
from experiments.compression.numbers import DENSE, OURS
from experiments.compression.real_models import MODELS
from experiments.compression.sending import GPU, dense_plan, sendings
from experiments.compression.shared_star import Observe, SharedStar
from experiments.compression.timeline import Job, Plans, Step, controlled, planned, ratio_of

COMPRESSING = 0
"""The number of the job that can compress."""
LOADS = (1.1, 3.0)
_COMPUTE_S = (0.1, 0.6)
"""From the shortest to the longest of the evaluation's other jobs."""
_STEPS = 150
"""So many of the slower job's steps, alone and uncompressed, are played."""
_SETTLED_SHARE = 1 / 3
"""So much of the time does not count."""


def drawn(seed: int, number: int) -> JointMix:
    """Return one of the mixes of a seed."""
    chance = random.Random(f"{seed}/{number}")  # nosec B311 # draws of an experiment
    models = chance.choice(sorted(MODELS)), chance.choice(sorted(MODELS))
    compute_s = round(chance.uniform(*_COMPUTE_S), 3), round(chance.uniform(*_COMPUTE_S), 3)
    load = round(chance.uniform(*LOADS), 3)
    return JointMix(seed, number, models, compute_s, load, round(chance.uniform(0.0, max(compute_s)), 3))


def played(case: JointCase) -> JointPlay:
    """Play a mix: each job alone, both without the controller, and both with it."""
    mix = case.mix
    models = [replace(MODELS[model], bucket_mib=case.bucket_mib) for model in mix.models]
    jobs = [Job(model, compute_s, GPU) for model, compute_s in zip(models, mix.compute_s, strict=True)]
    rate_bps = sum(dense_bits(job) / job.compute_s for job in jobs) / mix.load
    end_s = _STEPS * max(job.compute_s + dense_bits(job) / rate_bps for job in jobs)

    def pair(observe: Observe | None) -> JobPair:
        star = SharedStar(jobs, [_plans(*each) for each in enumerate(jobs)], (0.0, mix.offset_s), rate_bps, observe)
        star.run(end_s)
        return _settled(star.steps[0], jobs[0], end_s), _settled(star.steps[1], jobs[1], end_s)

    def alone(job: Job, plans: Plans) -> PlayedJob:
        star = SharedStar([job], [plans], (0.0,), rate_bps)
        star.run(end_s)
        return _settled(star.steps[0], job, end_s)

    control = JointControl(jobs, frozenset((COMPRESSING,)), rate_bps, case.policy)
    return JointPlay(
        case,
        rate_bps / 1e6,
        (alone(jobs[0], _plans(0, jobs[0])), alone(jobs[1], _plans(1, jobs[1]))),
        alone(jobs[0], _uncompressed(jobs[0])).step_s,
        pair(None),
        pair(control.observe),
        control.decisions,
    )


def dense_bits(job: Job) -> float:
    """Return what a rank of a job sends in a step of plain all-reduces."""
    dense = sendings(dense_plan(job.model.buckets), job.model.buckets, job.table)
    return 8 * sum(transfer.flow_bytes for sending in dense for transfer in sending.transfers)


def _plans(number: int, job: Job) -> Plans:
    return controlled(job, OURS) if number == COMPRESSING else _uncompressed(job)


def _uncompressed(job: Job) -> Plans:
    plan_at = METHODS[DENSE].plan_at
    assert plan_at is not None
    return planned(plan_at, 1, len(job.model.buckets))


def _settled(steps: Sequence[Step], job: Job, end_s: float) -> PlayedJob:
    """Return the means over the steps that ended once the job had settled."""
    counted = [step for step in steps if step.start_s >= _SETTLED_SHARE * end_s]
    ratios = [ratio_of(step, job.model) for step in counted]
    return PlayedJob((counted[-1].end_s - counted[0].start_s) / len(counted), sum(ratios) / len(ratios))
