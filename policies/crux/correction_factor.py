"""The correction factor k of Crux, section 4.2: what strict priority over a reference job is worth on a shared link.

Two jobs share one link under preemptive strict priority. ``S_x^y`` is the time the link carries job x while job y has
priority; job x gains ``dS_x = S_x^x - S_x^other`` from it. Both orders are worth the same when ``I_r dS_r = I_j dS_j``,
so ``P = k I`` ranks them rightly with ``k_r = 1`` and ``k_j = dS_j / dS_r``.

The paper fixes neither horizon nor phase, and its second example is a start-up transient. Here the gains are long-run
shares of time by default: averaged over 16 phases of the other job, each over 50 iterations of the longer job after 10
of warm-up.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from policies.arrays import FloatArray, IntArray
from policies.crux.shared_link import Cycles, long_run_share, usage
from policies.intensity import Iteration

Phases = Sequence[tuple[float, float]]
"""Pairs of times that the job and the reference, alone so far, have already spent in their iterations at time 0."""


@dataclass(frozen=True, slots=True)
class GainOptions:
    """How gains are measured, and what is made of them.

    k is 1 where both gains are under ``negligible_gain`` of the time, and else at most ``largest_factor`` and at least
    one over it.
    """

    num_phases: int = 16
    warm_up_iterations: int = 10
    measured_iterations: int = 50
    negligible_gain: float = 1e-3
    largest_factor: float = 8.0


DEFAULT_GAINS = GainOptions()


def correction_factor(
    job: Iteration,
    reference: Iteration,
    horizon_s: float | None = None,
    phases: Phases | None = None,
    options: GainOptions = DEFAULT_GAINS,
) -> float:
    """k of a job against the reference job; 1 where either sends nothing.

    Gains are taken from 0 to ``horizon_s`` (None: in the long run) and averaged over ``phases`` (None: evenly spread
    over the job's iteration, the reference at the start of its own). Raises ValueError for an iteration longer than
    10^7 s, a horizon that is not positive, and phases that are empty or lie outside the iteration.
    """
    if horizon_s is not None and not 0 < horizon_s < np.inf:
        raise ValueError(f"horizon_s must be positive and finite, not {horizon_s}")
    if phases is not None:
        _check(phases, job, reference)
    if min(job.comm_s, reference.comm_s) <= 0:
        return 1.0
    one, other = Cycles.of([job]), Cycles.of([reference])
    if phases is None:
        own, others = _spread(one, options.num_phases)
    else:
        nanoseconds = np.rint(np.array(phases, dtype=np.float64) * 1e9).astype(np.int64)
        own, others = nanoseconds[None, :, 0], nanoseconds[None, :, 1]
    gain, reference_gain = _gains(one, other, own, others, options, horizon_s)
    return factor_of_gains(float(gain[0]), float(reference_gain[0]), options)


def correction_factors(
    jobs: Sequence[Iteration], reference: Iteration, options: GainOptions = DEFAULT_GAINS
) -> list[float]:
    """``correction_factor`` of every job in the long run."""
    factors = [1.0] * len(jobs)
    sending = [index for index, job in enumerate(jobs) if job.comm_s > 0]
    if sending and reference.comm_s > 0:
        cycles = Cycles.of([jobs[index] for index in sending])
        gains = _gains(cycles, Cycles.of([reference]), *_spread(cycles, options.num_phases), options, None)
        for index, gain, reference_gain in zip(sending, *(side.tolist() for side in gains), strict=True):
            factors[index] = factor_of_gains(gain, reference_gain, options)
    return factors


def factor_of_gains(gain: float, reference_gain: float, options: GainOptions = DEFAULT_GAINS) -> float:
    """k from the two gains as shares of time: their ratio, within bounds; 1 where neither order costs anything."""
    if max(gain, reference_gain) < options.negligible_gain:
        return 1.0
    if gain >= options.largest_factor * reference_gain:
        return options.largest_factor
    return max(gain / reference_gain, 1 / options.largest_factor)


def _gains(
    job: Cycles,
    reference: Cycles,
    job_phase: IntArray,
    reference_phase: IntArray,
    options: GainOptions,
    horizon_s: float | None,
) -> tuple[FloatArray, FloatArray]:
    """What each job and the reference gain from going first, as shares of time, averaged over the phases (columns)."""
    if horizon_s is None:
        longer = np.maximum(job.period, reference.period)
        warm_up = options.warm_up_iterations * longer
        span = warm_up, warm_up + options.measured_iterations * longer
        behind = long_run_share(job, job_phase, reference, reference_phase, span)
        reference_behind = long_run_share(reference, reference_phase, job, job_phase, span)
        gains = job.share - behind, reference.share - reference_behind
    else:
        first = usage(job, job_phase, None, job_phase, horizon_s).carried_s
        behind = usage(job, job_phase, reference, reference_phase, horizon_s).carried_s
        reference_first = usage(reference, reference_phase, None, reference_phase, horizon_s).carried_s
        reference_behind = usage(reference, reference_phase, job, job_phase, horizon_s).carried_s
        gains = (first - behind) / horizon_s, (reference_first - reference_behind) / horizon_s
    return gains[0].mean(axis=1), gains[1].mean(axis=1)


def _spread(jobs: Cycles, num_phases: int) -> tuple[IntArray, IntArray]:
    phases = np.arange(num_phases) * jobs.period // num_phases
    return phases, np.zeros_like(phases)


def _check(phases: Phases, job: Iteration, reference: Iteration) -> None:
    if not phases:
        raise ValueError("phases must not be empty")
    for pair in phases:
        for phase_s, iteration in zip(pair, (job, reference), strict=True):
            if not 0 <= phase_s <= iteration.duration_s:
                raise ValueError(f"phases must lie within the iteration of {iteration.duration_s:g} s, not {phase_s}")
