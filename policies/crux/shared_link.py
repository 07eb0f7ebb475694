"""Two jobs on one link under preemptive strict priority: what the second job gets behind the first.

The urgent job never waits, so its use of the link is periodic, and the transfers of the other job end at times in
closed form. The simulation follows the other job iteration by iteration. Where an iteration finds the urgent job in the
same phase as an earlier one, everything between them repeats, and the simulation skips whole repetitions. It also skips
iterations that fit into one pause of the urgent job.

Times are whole nanoseconds: rounding must not separate jobs that fit beside each other exactly.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from policies.arrays import FloatArray, IntArray
from policies.intensity import MAX_ITERATION_S, Iteration
from policies.jit import Kernel

_TYPICAL_STEPS = 150
_NEVER_NS = 1 << 61


@dataclass(frozen=True, slots=True, eq=False)
class Cycles:
    """Iterations of jobs, one a row, in nanoseconds.

    Attributes:
        compute: Length of the compute phase.
        ready: When communication begins.
        comm: Length of the communication, at least 1.
        period: Length of an iteration that waits for no other job.
    """

    compute: IntArray
    ready: IntArray
    comm: IntArray
    period: IntArray

    @classmethod
    def of(cls, jobs: Sequence[Iteration]) -> "Cycles":
        """Return the cycles of these iterations.

        Raises:
            ValueError: An iteration is longer than 10^7 s.
        """
        for job in jobs:
            if not job.duration_s <= MAX_ITERATION_S:
                raise ValueError(f"{job} is longer than {MAX_ITERATION_S:g} s")
        compute = _column([job.compute_s for job in jobs])
        ready = _column([job.ready_s for job in jobs])
        comm = np.maximum(_column([job.comm_s for job in jobs]), 1)
        return cls(compute, ready, comm, np.maximum(compute, ready + comm))

    @property
    def share(self) -> FloatArray:
        """The share of time for which each job alone uses the link."""
        return self.comm / self.period


@dataclass(frozen=True, slots=True, eq=False)
class Usage:
    """Seconds for which the link carries a job, and for which the job computes."""

    carried_s: FloatArray
    computed_s: FloatArray


def usage(job: Cycles, phase: IntArray, urgent: Cycles | None, urgent_phase: IntArray, horizon_s: float) -> Usage:
    """Return what jobs (rows) get from 0 to ``horizon_s`` in each phase (column).

    Args:
        job: The jobs.
        phase: How far each job, which ran alone so far, is into its iteration at time 0.
        urgent: The urgent jobs; None: the jobs have the link to themselves.
        urgent_phase: The phases of the urgent jobs.
        horizon_s: End of the simulation.
    """
    horizon = np.array([[round(horizon_s * 1e9)]])
    _, _, carried, computed = _run(job, phase, urgent or _NOBODY, urgent_phase, -horizon - _NEVER_NS, horizon)
    return Usage(carried / 1e9, computed / 1e9)


def long_run_share(
    job: Cycles, phase: IntArray, urgent: Cycles, urgent_phase: IntArray, span: tuple[IntArray, IntArray]
) -> FloatArray:
    """Return the share of time for which the link carries jobs behind urgent ones, over iterations begun in a span."""
    carried, elapsed, _, _ = _run(job, phase, urgent, urgent_phase, *span)
    share: FloatArray = carried / np.maximum(elapsed, 1)
    return share


_NOBODY = Cycles(*(np.array([[value]]) for value in (0, 0, 0, 1)))


def _run(
    job: Cycles, phase: IntArray, urgent: Cycles, urgent_phase: IntArray, begin: IntArray, end: IntArray
) -> tuple[IntArray, ...]:
    lanes = np.broadcast_arrays(
        job.compute,
        job.ready,
        job.comm,
        job.period,
        phase,
        urgent.comm,
        urgent.period,
        urgent_phase - urgent.ready,
        begin,
        end,
    )
    follow = _follow.for_steps(lanes[0].size * _TYPICAL_STEPS)
    results = follow(np.stack([lane.ravel() for lane in lanes], axis=1))
    return tuple(column.reshape(lanes[0].shape) for column in results.T)


@Kernel
def _follow(lanes: IntArray) -> IntArray:
    """Follow one job in each lane from time 0, until every iteration that begins before the end has ended.

    A lane holds the columns that ``_run`` lists. The urgent job's shift, how far it was into its first transfer at time
    0, stands before the last two. Results by lane: time carried and time elapsed, from the first iteration begun after
    the beginning to the first begun after the end; time carried and time computed, from 0 to the end exactly.
    """
    results = np.zeros((len(lanes), 4), dtype=np.int64)
    for lane in range(len(lanes)):
        compute, ready, comm = int(lanes[lane, 0]), int(lanes[lane, 1]), int(lanes[lane, 2])
        period, phase = int(lanes[lane, 3]), int(lanes[lane, 4])
        urgent_comm, urgent_period, shift = int(lanes[lane, 5]), int(lanes[lane, 6]), int(lanes[lane, 7])
        begin, end = int(lanes[lane, 8]), int(lanes[lane, 9])
        gap = urgent_period - urgent_comm
        never = _NEVER_NS // urgent_period
        # Free time before the end; all free times here are up to one constant.
        free_by_end = (end + shift) // urgent_period * gap + max((end + shift) % urgent_period - urgent_comm, 0)
        start, ready_at = -phase, max(ready - phase, 0)
        owed = comm - min(max(phase - ready, 0), comm)
        whole = carried = computed = iterations = 0
        has_begun, start_at_begin, whole_at_begin = start >= begin, start, 0
        # The iteration that later ones are compared with (Brent's cycle detection: renewed after 1, 2, 4, … of them).
        mark, mark_start, mark_whole, mark_iterations, mark_life = -1, 0, 0, 0, 1
        periods = (ready_at + shift) // urgent_period
        position = ready_at + shift - periods * urgent_period
        while start < end:
            free = periods * gap + max(position - urgent_comm, 0)
            gaps = min((free + owed - 1) // gap, never) if gap > 0 else never
            # The first iteration may have sent everything before time 0.
            done_at = gaps * urgent_period + urgent_comm + free + owed - gaps * gap - shift if owed > 0 else ready_at
            carried += min(max(free_by_end - free, 0), owed)
            computed += max(min(end, start + compute) - max(start, 0), 0)
            whole += owed
            iterations += 1
            start = max(start + compute, done_at)
            periods = (start + ready + shift) // urgent_period
            position = start + ready + shift - periods * urgent_period
            before_stop = (end if has_begun else begin) - start
            if position == mark:
                length, sent, repeated = start - mark_start, whole - mark_whole, iterations - mark_iterations
                repeats = before_stop // length if before_stop >= length else 0
                mark_start, mark_whole, mark_iterations = start, whole, iterations
            else:
                if iterations - mark_iterations >= mark_life:
                    mark, mark_start, mark_whole, mark_iterations = position, start, whole, iterations
                    mark_life *= 2
                # Skip the iterations that fit before the urgent job's next transfer.
                length, sent, repeated, repeats = period, comm, 1, 0
                if urgent_comm <= position <= urgent_period - comm and before_stop >= period:
                    repeats = min((urgent_period - position - comm) // period + 1, before_stop // period)
            if repeats > 0:
                start += repeats * length
                whole += repeats * sent
                carried += repeats * sent
                computed += repeats * repeated * compute
                iterations += repeats * repeated
                periods = (start + ready + shift) // urgent_period
                position = start + ready + shift - periods * urgent_period
            if not has_begun and start >= begin:
                has_begun, start_at_begin, whole_at_begin = True, start, whole
            ready_at, owed = start + ready, comm
        results[lane] = whole - whole_at_begin, start - start_at_begin, carried, computed
    return results


def _column(values_s: Sequence[float]) -> IntArray:
    return np.array([[round(value * 1e9)] for value in values_s], dtype=np.int64)
