"""Jobs that iterate on shared links: the fast engine for one contention component of a trace.

Each job has one computation and one transfer that begins inside it (the ``phases`` workload), under max-min fairness
inside tiers. The results equal those of ``simulator.fluid``, hundreds of times as fast.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from policies.model.arrays import Layout, Scratch, Sending
from policies.model.bundles import Bundles
from policies.model.contention import NO_HOP, join_links
from policies.model.picoseconds import NEVER_PS, PS_PER_S
from policies.model.rate_cache import RateCache
from policies.rates.network import FloatArray, IntArray
from simulator.iteration_kernel import advance
from simulator.iteration_stages import (
    ARRIVES,
    BEAT,
    BEFORE,
    BEGUN,
    BESIDE,
    DONE,
    IN_RHYTHM,
    ITERATIONS,
    LATEST,
    NUM_COLUMNS,
    OVERLAPPED,
    PERIOD,
    SENDING,
    SHARED,
    SINCE,
    STAGE,
    TRANSFERS,
    UNTIL,
    WAITING,
    JobTable,
    are_taken,
    call_next,
    computed_ps,
)

_LEAST_BYTES = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Iterations:
    """An iteration of every job, in picoseconds, and the bundles that it sends.

    A job computes for ``before_ps``, then for ``beside_ps`` while its bundles send ``size_bytes`` each; the iteration
    ends when both have ended. The first ``num_bundles[0]`` bundles belong to job 0, and so on. The first iteration
    begins at ``begins_ps``. A job with a ``period_ps`` (others: 0) holds iterations like ``hostlib.start_shift``, with
    beats at ``beat_ps`` and whole periods later. Jobs with the same number in ``shared`` (0: none) share GPUs and
    compute in turn.

    Raises ValueError for a job that computes nothing, a negative time, a number of bundles that differs from that of
    the sizes, and a size that is not positive and finite; the message names the job or bundle.
    """

    before_ps: IntArray
    beside_ps: IntArray
    begins_ps: IntArray
    period_ps: IntArray
    beat_ps: IntArray
    num_bundles: IntArray
    size_bytes: FloatArray
    shared: IntArray | None = None

    @classmethod
    def of(
        cls,
        compute_s: FloatArray,
        comm_start: FloatArray,
        begins_s: FloatArray,
        num_bundles: IntArray,
        size_bytes: FloatArray,
    ) -> Self:
        """Build iterations without a rhythm from seconds; jobs with bundles start to send after ``comm_start``."""
        before_s = compute_s * np.where(num_bundles > 0, comm_start, 1.0)
        none = np.zeros(len(compute_s), dtype=np.int64)
        times_ps = _whole_ps(before_s), _whole_ps(compute_s - before_s), _whole_ps(begins_s)
        return cls(*times_ps, none, none, num_bundles, size_bytes)

    def rows(self) -> JobTable:
        """Return the jobs' rows before their first iterations."""
        table = np.zeros((len(self.before_ps), NUM_COLUMNS), dtype=np.int64)
        given = self.before_ps, self.beside_ps, self.period_ps, self.beat_ps
        table[:, (BEFORE, BESIDE, PERIOD, BEAT)] = np.column_stack(given)
        table[:, UNTIL] = table[:, BEGUN] = self.begins_ps
        table[:, ARRIVES] = NEVER_PS
        if self.shared is not None:
            table[:, SHARED] = self.shared
        return table

    def __post_init__(self) -> None:
        by_job = self.before_ps, self.beside_ps, self.begins_ps, self.period_ps, self.num_bundles
        for job, values in enumerate(zip(*(column.tolist() for column in by_job), strict=True)):
            if min(values) < 0 or not values[0] + values[1]:
                raise ValueError(f"job {job}: it must compute for some time, and nothing of it be negative")
        if self.num_bundles.sum() != len(self.size_bytes):
            raise ValueError(f"expected sizes of {self.num_bundles.sum()} bundles, got {len(self.size_bytes)}")
        if not (sound := (self.size_bytes > 0) & (self.size_bytes < np.inf)).all():
            bundle = int((~sound).argmax())
            raise ValueError(f"bundle {bundle}: it must send a positive number of bytes, not {self.size_bytes[bundle]}")


@dataclass(frozen=True, slots=True, eq=False)
class IterationState:
    """The state of jobs inside iterations: their rows of ``iteration_stages``, and the bytes left of every bundle."""

    now_ps: int
    table: JobTable
    left_bytes: FloatArray

    def later(self, duration_ps: int) -> Self:
        """Return the state shifted in time, beats included."""
        table = self.table.copy()
        for column in (BEAT, SINCE, UNTIL, ARRIVES, LATEST, BEGUN):
            table[:, column] += np.where(table[:, column] == NEVER_PS, 0, duration_ps)
        return type(self)(self.now_ps + duration_ps, table, self.left_bytes)


class IteratingJobs:
    """Jobs on one network; time continues from call to call.

    ``num_events`` counts the times at which something happened. ``kept_ps`` has the ends of the first ``num_kept``
    iterations of every job, 0 for those not reached. Raises ValueError if ``bundles`` do not fit the jobs.
    """

    def __init__(self, jobs: Iterations, bundles: Bundles, num_kept: int = 0) -> None:
        self._jobs = jobs
        self._num_kept = num_kept
        self._cache = RateCache.of(len(jobs.size_bytes))
        self.restart(bundles)

    def restart(self, bundles: Bundles) -> None:
        """Restart at time 0 with these paths, tiers, weights and latencies. Raises ValueError as the class does."""
        jobs = self._jobs
        if bundles.network.num_flows != len(jobs.size_bytes):
            raise ValueError(f"expected {len(jobs.size_bytes)} bundles, got {bundles.network.num_flows}")
        self.now_ps = 0
        self.num_events = 0
        self.kept_ps = np.zeros((len(jobs.before_ps), self._num_kept), dtype=np.int64)
        self._table = jobs.rows()
        self._layout = Layout.of(jobs.num_bundles, jobs.size_bytes, bundles)
        self._sending = Sending.of(len(jobs.size_bytes))
        self._scratch = Scratch.of(bundles.network)
        self._cache.forget()

    def run(self, until_ps: int = NEVER_PS, num_iterations: int = NEVER_PS) -> None:
        """Run until every job has completed ``num_iterations`` since the start, at most until ``until_ps``.

        Time stops where nothing can happen any more, as on links without capacity, unless ``until_ps`` is given.
        """
        num_jobs = len(self._table)
        self._advance(until_ps, np.full(num_jobs, num_iterations), num_jobs)

    def run_to_first(self, num_iterations: IntArray, until_ps: int = NEVER_PS) -> None:
        """Run until one job has completed its number of iterations, at most until ``until_ps``."""
        self._advance(until_ps, num_iterations, 1)

    def _advance(self, until_ps: int, num_iterations: IntArray, num_to_reach: int) -> None:
        arrays = self._table, self._layout, self._sending, self._scratch, self._cache
        limits = self.now_ps, until_ps, num_iterations, num_to_reach
        self.now_ps, num_events = advance(*arrays, *limits, self.kept_ps)
        self.num_events += num_events

    def recurring_state(self) -> bytes:
        """Return the state relative to the current time; equal states have equal futures."""
        table, sending = self._table, self._sending
        times = table[:, (SINCE, UNTIL, ARRIVES, LATEST)]
        times = np.where(times == NEVER_PS, times, times - self.now_ps)
        periods = np.maximum(table[:, PERIOD], 1)
        beats = (table[:, BEAT] - self.now_ps) % periods
        others = table[:, (STAGE, TRANSFERS, SENDING, IN_RHYTHM)]
        active = np.sort(sending.active[: sending.counts[0]])
        parts = times, beats, others, active, sending.ends_ps[active] - self.now_ps
        return b"".join(part.tobytes() for part in parts)

    def state(self) -> IterationState:
        """Return the state of all jobs."""
        return IterationState(self.now_ps, self._table.copy(), self._left_bytes()[self._layout.bundles_of])

    def resume(self, state: IterationState) -> None:
        """Continue from a state, possibly of a run with other paths and tiers.

        Jobs that wait for the GPUs of a job that has left get them now.
        """
        self.now_ps, self._table[:] = state.now_ps, state.table
        for shared in np.unique(self._table[self._table[:, STAGE] == WAITING, SHARED]).tolist():
            if not are_taken(self._table, shared):
                call_next(self._table, shared, self.now_ps)
        layout, sending, scratch = self._layout, self._sending, self._scratch
        sending.remaining_bytes[layout.bundles_of] = state.left_bytes
        active = np.flatnonzero(sending.remaining_bytes > 0)
        sending.active[: len(active)], sending.counts[:] = active, len(active)
        sending.rates_bps[:], sending.ends_ps[:], sending.settled_ps[:] = 0.0, NEVER_PS, self.now_ps
        scratch.first[:] = NO_HOP
        join_links(layout.first_hop, layout.links, active, scratch.first, scratch.following, scratch.preceding)

    @property
    def iterations(self) -> IntArray:
        """Iterations that every job has completed."""
        return self._table[:, ITERATIONS].copy()

    @property
    def begun_ps(self) -> IntArray:
        """When the current iteration of every job began: the end of the last one, or the job's start."""
        return self._table[:, BEGUN].copy()

    @property
    def computed_ps(self) -> IntArray:
        """How long every job has computed so far."""
        return computed_ps(self._table, self.now_ps)

    def carried_bytes(self) -> FloatArray:
        """Return the bytes that every link has carried so far."""
        layout = self._layout
        has_begun = np.isin(self._table[:, STAGE], (OVERLAPPED, DONE))
        transfers = (self._table[:, ITERATIONS] + has_begun)[layout.job_of]
        sent_bytes = np.repeat(transfers * layout.size_bytes - self._left_bytes(), np.diff(layout.first_hop))
        carried_bytes = np.zeros(len(layout.capacities_bps))
        np.add.at(carried_bytes, layout.links, sent_bytes)
        return carried_bytes

    def _left_bytes(self) -> FloatArray:
        """Return the remaining bytes of every bundle, in the order of the layout."""
        sending = self._sending
        since_s = (self.now_ps - sending.settled_ps) / PS_PER_S
        left_bytes = sending.remaining_bytes - sending.rates_bps / 8 * since_s
        # An active bundle has bytes left, whatever rounding yields.
        return np.where(sending.remaining_bytes > 0, np.maximum(left_bytes, _LEAST_BYTES), 0.0)


def _whole_ps(times_s: FloatArray) -> IntArray:
    return np.rint(times_s * PS_PER_S).astype(np.int64)
