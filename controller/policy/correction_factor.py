"""The correction factor k of Crux, section 4.2: what strict priority over a reference job is worth on a shared link.

Two jobs share one link under preemptive strict priority. ``S_x^y`` is the time the link carries job x while job y has
priority; job x gains ``dS_x = S_x^x - S_x^other`` from it. Both orders are worth the same when ``I_r dS_r = I_j dS_j``,
so ``P = k I`` ranks them rightly with ``k_r = 1`` and ``k_j = dS_j / dS_r``.

The paper fixes neither horizon nor phase, and its second example is a start-up transient. Here the gains are long-run
shares of time: averaged over 16 phases of the other job, each over 50 iterations of the longer job after 10 of warm-up.

The urgent job never waits, so its use of the link is periodic, and the other job's transfers end at times in closed
form. Times are whole nanoseconds: jobs that fit beside each other exactly must not be told apart by rounding.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from controller.policy.intensity import Iteration

NUM_PHASES = 16
WARM_UP_ITERATIONS = 10
MEASURED_ITERATIONS = 50
NEGLIGIBLE_GAIN = 1e-3
LARGEST_FACTOR = 8.0

_LONGEST_ITERATION_S = 1e7
_NEVER_NS = 1 << 61

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]


def correction_factors(jobs: Sequence[Iteration], reference: Iteration) -> list[float]:
    """k of every job against the reference job, from long-run gains; 1 for a job that sends nothing.

    Raises ValueError for an iteration longer than 10^7 s.
    """
    sending = [index for index, job in enumerate(jobs) if job.comm_s > 0]
    factors = [1.0] * len(jobs)
    if sending and reference.comm_s > 0:
        others, one = _Cycles.of([jobs[index] for index in sending]), _Cycles.of([reference])
        phases = np.arange(NUM_PHASES) * others.period // NUM_PHASES
        no_phase = np.zeros_like(phases)
        gains = others.share - _share_when_second(others, phases, one, no_phase)
        reference_gains = one.share - _share_when_second(one, no_phase, others, phases)
        for index, gain, reference_gain in zip(sending, gains.mean(axis=1), reference_gains.mean(axis=1), strict=True):
            factors[index] = factor_of_gains(float(gain), float(reference_gain))
    return factors


def factor_of_gains(gain: float, reference_gain: float) -> float:
    """k from the two gains as shares of time: their ratio, at most 8 and at least 1/8.

    1 where both lie under a thousandth of the time: then neither order costs anything.
    """
    if max(gain, reference_gain) < NEGLIGIBLE_GAIN:
        return 1.0
    if gain >= LARGEST_FACTOR * reference_gain:
        return LARGEST_FACTOR
    return max(gain / reference_gain, 1 / LARGEST_FACTOR)


def link_seconds(
    first: Iteration, second: Iteration, horizon_s: float, first_phase_s: float = 0.0, second_phase_s: float = 0.0
) -> tuple[float, float]:
    """Seconds for which the link carries each of two jobs, the first with priority, from 0 to ``horizon_s``.

    A phase is the time that a job, alone so far, has already spent in its iteration at time 0. Both jobs must send.
    Raises ValueError for an iteration longer than 10^7 s.
    """
    urgent, other = _Cycles.of([first]), _Cycles.of([second])
    urgent_phase, other_phase = np.int64(_nanoseconds(first_phase_s)), np.int64(_nanoseconds(second_phase_s))
    horizon = np.full((1, 1), _nanoseconds(horizon_s))
    link = _FreeTime(urgent, urgent_phase)
    idle = link.until(horizon) - link.until(np.zeros_like(horizon))
    carried = _run_second(other, other_phase, link, horizon).carried
    return (horizon - idle).item() / 1e9, carried.item() / 1e9


@dataclass(frozen=True, slots=True)
class _Cycles:
    """Iterations of jobs, one a row, in nanoseconds; a transfer takes at least one."""

    compute: IntArray
    ready: IntArray
    comm: IntArray
    period: IntArray

    @classmethod
    def of(cls, jobs: Sequence[Iteration]) -> "_Cycles":
        for job in jobs:
            if not job.duration_s <= _LONGEST_ITERATION_S:
                raise ValueError(f"{job} is longer than {_LONGEST_ITERATION_S:g} s")
        compute = _column([job.compute_s for job in jobs])
        ready = _column([job.ready_s for job in jobs])
        comm = np.maximum(_column([job.comm_s for job in jobs]), 1)
        return cls(compute, ready, comm, np.maximum(compute, ready + comm))

    @property
    def share(self) -> FloatArray:
        """Share of time for which each job uses a link that it need not wait for."""
        return self.comm / self.period


class _FreeTime:
    """The time that jobs with priority leave free on their link."""

    def __init__(self, urgent: _Cycles, phase: IntArray | np.int64) -> None:
        self.comm, self.period = urgent.comm, urgent.period
        self.gap = urgent.period - urgent.comm
        self._shift = phase - urgent.ready

    def position(self, time: IntArray) -> IntArray:
        """Time since the urgent job's latest transfer began."""
        position: IntArray = (time + self._shift) % self.period
        return position

    def until(self, time: IntArray) -> IntArray:
        """Free time before ``time``, up to a constant."""
        in_this_gap: IntArray = np.maximum(self.position(time) - self.comm, 0)
        return (time + self._shift) // self.period * self.gap + in_this_gap

    def reaches(self, free: IntArray) -> IntArray:
        """The earliest time at which ``until`` is ``free``; as good as never where there is no gap."""
        never = _NEVER_NS // self.period
        gaps: IntArray = np.where(self.gap > 0, np.minimum((free - 1) // np.maximum(self.gap, 1), never), never)
        return gaps * self.period + self.comm + free - gaps * self.gap - self._shift


@dataclass(frozen=True, slots=True)
class _Progress:
    """Where the second job stands: time the link carried it up to some moment, and the first iteration begun since."""

    carried: IntArray
    next_start: IntArray
    carried_by_start: IntArray


def _share_when_second(job: _Cycles, phase: IntArray, urgent: _Cycles, urgent_phase: IntArray) -> FloatArray:
    """Long-run share of time for which a link carries a job behind an urgent one, over whole iterations."""
    longer, link = np.maximum(job.period, urgent.period), _FreeTime(urgent, urgent_phase)
    warm = _run_second(job, phase, link, WARM_UP_ITERATIONS * longer)
    end = _run_second(job, phase, link, (WARM_UP_ITERATIONS + MEASURED_ITERATIONS) * longer)
    elapsed = np.maximum(end.next_start - warm.next_start, 1)
    share: FloatArray = (end.carried_by_start - warm.carried_by_start) / elapsed
    return share


def _run_second(job: _Cycles, phase: IntArray | np.int64, link: _FreeTime, horizon: IntArray) -> _Progress:
    """Run a job from time 0 in the free time of its link until every iteration begun before the horizon has ended."""
    free_by_horizon = link.until(horizon)
    start = np.zeros_like(free_by_horizon) - phase
    ready = np.maximum(start + job.ready, 0)
    owed = job.comm - np.clip(phase - job.ready, 0, job.comm)
    carried = carried_by_start = np.zeros_like(start)
    while (running := start < horizon).any():
        free = link.until(ready)
        carried = carried + np.clip(free_by_horizon - free, 0, owed)
        next_start = np.maximum(start + job.compute, link.reaches(free + owed))
        # Iterations whose transfers all fit before the urgent job's next one are skipped in one step.
        position = link.position(next_start + job.ready)
        fitting = np.where(position >= link.comm, (link.period - position - job.comm) // job.period + 1, 0)
        skipped = np.maximum(np.minimum(fitting, (horizon - next_start) // job.period), 0) * running
        carried = carried + skipped * job.comm
        carried_by_start = carried_by_start + running * (owed + skipped * job.comm)
        start = np.where(running, next_start + skipped * job.period, start)
        ready, owed = start + job.ready, job.comm
    return _Progress(carried, start, carried_by_start)


def _column(values_s: Sequence[float]) -> IntArray:
    return np.array([[_nanoseconds(value)] for value in values_s], dtype=np.int64)


def _nanoseconds(value_s: float) -> int:
    return round(value_s * 1e9)
