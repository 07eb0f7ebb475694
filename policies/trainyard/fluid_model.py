"""A fluid model of contending jobs: runs their iterations under given priorities, and measures how fast each job is.

A job computes until a transfer is overdue. A transfer starts when the computation reaches its release time. Where it
has not ended at its due time, the computation stalls until it has.

A transfer sends in bundles of flows. Each bundle is as fast as the links it crosses allow, on what more urgent bundles
leave of them. Equally urgent bundles share a link fairly by flow. A transfer ends with the last of its bundles.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Self

import numpy as np

from policies.arrays import FloatArray, IntArray
from policies.jit import Kernel
from policies.trainyard.contention import Contention
from policies.trainyard.flow_bundles import FlowBundles
from policies.trainyard.options import ModelOptions

_MIN_TIME = 1e-9
"""Times of less than this share of the longest iteration count as zero."""

_MAX_EQUIVALENT = 8
"""Optimistic guess of how many bundles merge into one; for a cheap lower bound on the steps of a run."""


@dataclass(frozen=True, slots=True, eq=False)
class FluidModel:
    """Contending jobs, ready to run under one set of priorities after another.

    Attributes:
        contention: The jobs.
        bundles: Their flows.
        starts: By phase and job, how long after the start of a run its first iteration begins.
        warm_up_s: A run measures from here on.
        horizon_s: A run ends here.
    """

    contention: Contention
    bundles: FlowBundles
    starts: FloatArray
    warm_up_s: float
    horizon_s: float

    @classmethod
    def of(cls, contention: Contention, bundles: FlowBundles, seed: int, options: ModelOptions) -> Self:
        """Return the model of these jobs. Phases are drawn in the order of the jobs."""
        random = Random(seed)
        fractions = [[random.random() for _ in contention.ideal_s] for _ in range(options.num_phases)]
        horizon_s = _horizon_s(contention, options)
        starts = np.array(fractions) * contention.ideal_s
        return cls(contention, bundles, starts, horizon_s * options.warm_up_iterations / options.iterations, horizon_s)

    @property
    def steps(self) -> float:
        """About how many array elements a run reads."""
        return len(self.starts) * _steps(self.contention, self.horizon_s, len(self.bundles.links))

    def served(self, urgency: Sequence[int] | IntArray) -> FloatArray:
        """Return by job its iteration rate over the rate it has alone, where groups of higher urgency go first."""
        contention, bundles = self.contention, self.bundles
        of_transfers = np.array(urgency, dtype=np.int64)[contention.group_of]
        run = _run.for_steps(int(self.steps * 50))
        return run(
            (np.argsort(-of_transfers, kind="stable"), of_transfers),
            (contention.compute_s, contention.ideal_s, self.starts),
            (contention.first_transfer, contention.release_s, contention.due_s),
            (bundles.first_bundle, bundles.own_s),
            (bundles.first_entry, bundles.links, bundles.flows, bundles.seconds, bundles.num_links),
            self.warm_up_s,
            self.horizon_s,
            _MIN_TIME * float(contention.ideal_s.max()),
        )


def min_model_steps(contention: Contention, options: ModelOptions) -> float:
    """Return a lower bound on ``FluidModel.steps``, roughly, that needs no bundles."""
    entries = len(contention.links) // _MAX_EQUIVALENT
    return options.num_phases * _steps(contention, _horizon_s(contention, options), entries)


def _horizon_s(contention: Contention, options: ModelOptions) -> float:
    longest_s = float(contention.ideal_s.max())
    together = float((longest_s / contention.ideal_s).sum())
    return longest_s * min(float(options.iterations), max(options.max_iterations / together, 2.0))


def _steps(contention: Contention, horizon_s: float, num_entries: int) -> float:
    """Return the steps of one phase, for bundles that cross so many links together."""
    events = horizon_s * float(((2 + 2 * np.diff(contention.first_transfer)) / contention.ideal_s).sum())
    return events * (2 * num_entries + len(contention.release_s))


@Kernel
def _run(
    order: tuple[IntArray, IntArray],
    of_jobs: tuple[FloatArray, FloatArray, FloatArray],
    of_transfers: tuple[IntArray, FloatArray, FloatArray],
    of_bundles: tuple[IntArray, FloatArray],
    on_links: tuple[IntArray, IntArray, FloatArray, FloatArray, int],
    warm_up_s: float,
    horizon_s: float,
    least_s: float,
) -> FloatArray:
    turns, urgency = order
    compute, ideal, starts = of_jobs
    first_transfer, release, due = of_transfers
    first_bundle, own = of_bundles
    first_entry, links, flows, seconds, num_links = on_links
    num_jobs, num_transfers, num_bundles = len(compute), len(release), len(own)
    waits, sends, ended = 0, 1, 2
    computed = np.zeros(num_jobs)
    for phase in range(len(starts)):
        # Seconds into the iteration without stalls; negative before the first iteration.
        progress = -starts[phase]
        stalled = np.zeros(num_jobs, dtype=np.int64)
        state = np.full(num_transfers, waits)
        # By bundle: the fraction left to send, and the fraction sent per second.
        left, rate, gain = np.zeros(num_bundles), np.zeros(num_bundles), np.zeros(num_bundles)
        room, sharing = np.zeros(num_links), np.zeros(num_links)
        has_changed = False
        now = 0.0
        while now < horizon_s:
            step = horizon_s - now
            if now < warm_up_s:
                step = warm_up_s - now
            for job in range(num_jobs):
                while True:
                    next_at, is_overdue, all_ended = compute[job], False, True
                    for transfer in range(first_transfer[job], first_transfer[job + 1]):
                        if state[transfer] == waits:
                            if progress[job] >= release[transfer] - least_s:
                                state[transfer] = sends
                                left[first_bundle[transfer] : first_bundle[transfer + 1]] = 1.0
                                has_changed = True
                            else:
                                next_at = min(next_at, release[transfer])
                        if state[transfer] == sends:
                            if progress[job] >= due[transfer] - least_s:
                                is_overdue = True
                            else:
                                next_at = min(next_at, due[transfer])
                        all_ended &= state[transfer] == ended
                    if not (all_ended and progress[job] >= compute[job] - least_s):
                        break
                    progress[job] = 0.0
                    state[first_transfer[job] : first_transfer[job + 1]] = waits
                stalled[job] = is_overdue
                if not is_overdue:
                    step = min(step, max(next_at - progress[job], least_s))
            if has_changed:
                has_changed = False
                room[:] = 1.0
                turn = 0
                while turn < num_transfers:
                    end = turn + 1
                    while end < num_transfers and urgency[turns[end]] == urgency[turns[turn]]:
                        end += 1
                    for again in range(2):
                        for transfer in turns[turn:end]:
                            if state[transfer] == sends:
                                for bundle in range(first_bundle[transfer], first_bundle[transfer + 1]):
                                    if left[bundle] > 0.0:
                                        for entry in range(first_entry[bundle], first_entry[bundle + 1]):
                                            sharing[links[entry]] += flows[entry]
                        for transfer in turns[turn:end]:
                            if state[transfer] == sends:
                                for bundle in range(first_bundle[transfer], first_bundle[transfer + 1]):
                                    if left[bundle] > 0.0:
                                        if again == 0:
                                            rate[bundle] = 0.0
                                        most = 1 / max(own[bundle], least_s) - rate[bundle]
                                        for entry in range(first_entry[bundle], first_entry[bundle + 1]):
                                            link = links[entry]
                                            share = flows[entry] / sharing[link]
                                            most = min(most, room[link] * share / seconds[entry])
                                        gain[bundle] = most
                        for transfer in turns[turn:end]:
                            if state[transfer] == sends:
                                for bundle in range(first_bundle[transfer], first_bundle[transfer + 1]):
                                    if left[bundle] > 0.0:
                                        rate[bundle] += gain[bundle]
                                        for entry in range(first_entry[bundle], first_entry[bundle + 1]):
                                            link = links[entry]
                                            room[link] = max(room[link] - gain[bundle] * seconds[entry], 0.0)
                                            sharing[link] = 0.0
                    turn = end
            for transfer in range(num_transfers):
                if state[transfer] == sends:
                    for bundle in range(first_bundle[transfer], first_bundle[transfer + 1]):
                        if left[bundle] > 0.0 and rate[bundle] > 0.0:
                            step = min(step, left[bundle] / rate[bundle])
            for transfer in range(num_transfers):
                if state[transfer] == sends:
                    has_ended = True
                    for bundle in range(first_bundle[transfer], first_bundle[transfer + 1]):
                        if left[bundle] > 0.0:
                            left[bundle] -= rate[bundle] * step
                            if left[bundle] <= least_s * rate[bundle]:
                                left[bundle] = 0.0
                                has_changed = True
                            else:
                                has_ended = False
                    if has_ended:
                        state[transfer] = ended
                        has_changed = True
            for job in range(num_jobs):
                if not stalled[job]:
                    before = max(progress[job], 0.0)
                    progress[job] += step
                    if now >= warm_up_s:
                        computed[job] += max(progress[job] - before, 0.0) / compute[job]
            now += step
    return computed * ideal / (len(starts) * (horizon_s - warm_up_s))
