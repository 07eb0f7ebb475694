"""Real ranks beside virtual time: the same job, its rates and its computation slowed by one factor.

Eight processes send real payloads through real ports of the emulator, over gloo. Their layers sleep, so that two cores
can play eight devices. All is slowed by one factor, which is doubled until cores have time to spare, so that codecs do
not wait for cores. Virtual time is charged what codecs and hops take on these hosts, as the ranks have measured it.
"""

from collections.abc import Iterator
from dataclasses import replace

from experiments.compression.conditions import fixed
from experiments.compression.methods import METHODS
from experiments.compression.numbers import DENSE, OURS
from experiments.compression.outcomes import ConfirmationCase, Confirmed, ConfirmedMethod, mean
from experiments.compression.real.plan import Task, TaskResult
from experiments.compression.real.ranks_on_hosts import ran
from experiments.compression.real_models import MODELS
from experiments.compression.sending import CodecTable, faster
from experiments.compression.timeline import Job, ratio_of, run
from experiments.scenarios.backend import RunError
from hostlib.compression.codecs.payload import Form
from hostlib.compression.control.cost import MeasuredCosts

LEAST_FACTOR, MOST_FACTOR = 16.0, 128.0
LEAST_IDLE_SHARE = 0.3
_REBUILT_STEPS = 3
"""After so many, DDP has rebuilt its buckets, and what sends them knows them; the first ones are dense."""
_SETTLED_STEPS = 16
"""After so many, the choices of ``budget`` have settled."""
_BASELINES = (DENSE, "TopK-0.1")
_BASELINE_STEPS = 2
"""Measured of a baseline, whose steps are alike."""


def confirmed(case: ConfirmationCase) -> Confirmed:
    """Run a job on real hosts and in virtual time.

    Raises:
        RunError: Hosts cannot be made, a rank has failed, or the cores are busy however slow all is.
    """
    factor = _factor(case)
    methods = [each for rate_mbps in case.rates_mbps for each in _at_rate(case, rate_mbps, factor)]
    return Confirmed(case, factor, tuple(methods))


def _factor(case: ConfirmationCase) -> float:
    """Return the least factor, doubled from the least one on, at which cores have time to spare under ``budget``."""
    factor = LEAST_FACTOR
    while True:
        (result,) = ran(case, max(case.rates_mbps), factor, [Task(OURS, _REBUILT_STEPS, case.steps)])
        if result.idle_share >= LEAST_IDLE_SHARE:
            return factor
        if factor >= MOST_FACTOR:
            raise RunError(f"{1 - result.idle_share:.0%} of the cores are busy even {factor:g} times slower")
        factor *= 2


def _at_rate(case: ConfirmationCase, rate_mbps: float, factor: float) -> Iterator[ConfirmedMethod]:
    tasks = [Task(method, _REBUILT_STEPS, _BASELINE_STEPS) for method in _BASELINES]
    tasks.append(Task(OURS, _SETTLED_STEPS, case.steps))
    results = ran(case, rate_mbps, factor, tasks)
    costs = next(result.costs for result in results if result.costs is not None)
    for task, result in zip(tasks, results, strict=True):
        yield beside_virtual_time(case, rate_mbps, factor, task, result, result.costs or costs)


def beside_virtual_time(
    case: ConfirmationCase, rate_mbps: float, factor: float, task: Task, real: TaskResult, costs: MeasuredCosts
) -> ConfirmedMethod:
    """Return what virtual time says of a task, beside what real hosts have said.

    Args:
        case: The case.
        rate_mbps: Of the slow links.
        factor: By which the task was slowed.
        task: What was done.
        real: What became of it.
        costs: What codecs and hops took.
    """
    model = replace(MODELS[case.model], bucket_mib=case.bucket_mib)
    table = CodecTable("these hosts", faster(costs, factor), Form.ELIAS_FANO)
    method = replace(METHODS[task.method], form=None)
    steps = run(Job(model, case.compute_s, table), method, fixed(rate_mbps), task.unsettled_steps + task.steps)
    settled = steps[task.unsettled_steps :]
    return ConfirmedMethod(
        task.method,
        rate_mbps,
        mean(real.step_s) / factor,
        mean([step.end_s - step.start_s for step in settled]),
        real.ratio,
        ratio_of(steps[-1], model),
        real.idle_share,
    )
