"""The correction factor k (Crux, section 4.2): what strict priority over a reference job is worth on a shared link.

Two jobs share one link under preemptive strict priority. ``S_x^y`` is the time for which the link carries job x while
job y has priority, and job x gains ``dS_x = S_x^x - S_x^other`` from going first. Both orders are worth the same when
``I_r dS_r = I_j dS_j``, so ``P = k I`` ranks jobs correctly with ``k_r = 1`` and ``k_j = dS_j / dS_r``.

The paper fixes neither horizon nor phase, and its second example is a start-up transient. Here gains are long-run
shares of time by default: averages over 16 phases of the other job, each over 50 iterations of the longer job after a
warm-up of 10.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from policies.arrays import FloatArray, IntArray
from policies.crux.shared_link import Cycles, long_run_share, usage
from policies.intensity import Iteration

Phases = Sequence[tuple[float, float]]
"""Pairs: how far the job and the reference, which ran alone so far, are into their iterations at time 0."""


@dataclass(frozen=True, slots=True)
class GainOptions:
    """How gains are measured, and the bounds of k.

    Attributes:
        num_phases: Over how many phases of the other job gains are averaged.
        warm_up_iterations: Iterations of the longer job before the measurement.
        measured_iterations: Iterations of the longer job that are measured.
        negligible_gain: k is 1 where both gains are a smaller share of time than this.
        largest_factor: k lies between one over this and this.
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
    """Return k of a job against the reference job; 1 where either sends nothing.

    Args:
        job: The job.
        reference: The reference job.
        horizon_s: Gains count from 0 up to this time; None: in the long run.
        phases: The phases to average over; None: evenly spread over the job's iteration, with the reference at its
            start.
        options: How gains are measured.

    Raises:
        ValueError: An iteration is longer than 10^7 s, the horizon is not positive, or phases are empty or lie outside
            the iteration.
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
    """Return ``correction_factor`` of every job in the long run."""
    factors = [1.0] * len(jobs)
    sending = [index for index, job in enumerate(jobs) if job.comm_s > 0]
    if sending and reference.comm_s > 0:
        cycles = Cycles.of([jobs[index] for index in sending])
        gains = _gains(cycles, Cycles.of([reference]), *_spread(cycles, options.num_phases), options, None)
        for index, gain, reference_gain in zip(sending, *(side.tolist() for side in gains), strict=True):
            factors[index] = factor_of_gains(gain, reference_gain, options)
    return factors


def factor_of_gains(gain: float, reference_gain: float, options: GainOptions = DEFAULT_GAINS) -> float:
    """Return k for two gains as shares of time: their ratio, within bounds; 1 where neither order costs anything."""
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
    """Return what jobs and reference gain from going first, as shares of time averaged over the phases (columns)."""
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
