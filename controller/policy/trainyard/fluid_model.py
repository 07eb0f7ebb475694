"""What an order makes of jobs that contend, by a fluid model: who waits for whom, iteration after iteration.

A job computes as long as nothing is overdue: a transfer is released when the computation reaches its release time, and
where it has not ended at its due time the computation stands still until it has. A link serves the most urgent
transfers that have bytes for it and shares evenly among equals; links are independent of each other, and a transfer
ends with the last of them. Of a network, that leaves out that a flow which one link holds up does not fill the next.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Self

import numpy as np

from controller.policy.compiled import Loop
from controller.policy.flow_arrays import FloatArray, IntArray
from controller.policy.trainyard.contention import Contention

_LEAST = 1e-9
"""Share of the longest iteration that counts as no time at all."""


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """How long the model runs: in iterations of the longest job, a part of them as warm-up, from so many phases.

    Jobs much shorter than the longest end the run early, after ``most_iterations`` of all together.
    """

    num_phases: int = 2
    iterations: int = 16
    warm_up_iterations: int = 3
    most_iterations: int = 400


@dataclass(frozen=True, slots=True, eq=False)
class FluidModel:
    """Jobs that contend, ready to be run in one order after the other."""

    contention: Contention
    starts: FloatArray
    warm_up_s: float
    horizon_s: float

    @classmethod
    def of(cls, contention: Contention, seed: int, options: ModelOptions) -> Self:
        """The model of these jobs; phases are drawn in the order of the jobs."""
        random = Random(seed)
        fractions = [[random.random() for _ in contention.ideal_s] for _ in range(options.num_phases)]
        longest_s = float(contention.ideal_s.max())
        together = float((longest_s / contention.ideal_s).sum())
        iterations = min(float(options.iterations), max(options.most_iterations / together, 2.0))
        warm_up = iterations * options.warm_up_iterations / options.iterations
        return cls(contention, np.array(fractions) * contention.ideal_s, warm_up * longest_s, iterations * longest_s)

    @property
    def steps(self) -> float:
        """About how many elements of arrays a run reads."""
        contention = self.contention
        events = self.horizon_s * float(((2 + 2 * np.diff(contention.first_transfer)) / contention.ideal_s).sum())
        return len(self.starts) * events * (2 * len(contention.links) + len(contention.release_s))

    def served(self, urgency: Sequence[int] | IntArray) -> FloatArray:
        """Iteration rate of every job over what it has alone, where groups have this urgency, the highest first."""
        contention = self.contention
        run = _run.of(int(self.steps * 50))
        return run(
            np.array(urgency, dtype=np.int64)[contention.group_of],
            (contention.compute_s, contention.ideal_s, self.starts),
            (contention.first_transfer, contention.release_s, contention.due_s),
            (contention.first_entry, contention.links, contention.seconds, contention.num_links),
            self.warm_up_s,
            self.horizon_s,
            _LEAST * float(contention.ideal_s.max()),
        )


@Loop
def _run(
    urgency: IntArray,
    of_jobs: tuple[FloatArray, FloatArray, FloatArray],
    of_transfers: tuple[IntArray, FloatArray, FloatArray],
    on_links: tuple[IntArray, IntArray, FloatArray, int],
    warm_up_s: float,
    horizon_s: float,
    least_s: float,
) -> FloatArray:
    compute, ideal, starts = of_jobs
    first_transfer, release, due = of_transfers
    first_entry, links, seconds, num_links = on_links
    num_jobs, num_transfers = len(compute), len(release)
    waits, sends, ended = 0, 1, 2
    computed = np.zeros(num_jobs)
    for phase in range(len(starts)):
        # Seconds into the iteration, stalls not counted; negative before the first one.
        progress = -starts[phase]
        stalled = np.zeros(num_jobs, dtype=np.int64)
        state = np.full(num_transfers, waits)
        entries_left = np.zeros(num_transfers, dtype=np.int64)
        sending, num_sending = np.zeros(num_transfers, dtype=np.int64), 0
        left = np.zeros(len(links))
        top = np.full(num_links, -1, dtype=np.int64)
        sharing = np.zeros(num_links)
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
                                sending[num_sending] = transfer
                                num_sending += 1
                                for entry in range(first_entry[transfer], first_entry[transfer + 1]):
                                    left[entry] = seconds[entry]
                                entries_left[transfer] = first_entry[transfer + 1] - first_entry[transfer]
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
            for transfer in sending[:num_sending]:
                for entry in range(first_entry[transfer], first_entry[transfer + 1]):
                    if left[entry] > 0.0:
                        link = links[entry]
                        if urgency[transfer] > top[link]:
                            top[link], sharing[link] = urgency[transfer], 1.0
                        elif urgency[transfer] == top[link]:
                            sharing[link] += 1.0
            for transfer in sending[:num_sending]:
                for entry in range(first_entry[transfer], first_entry[transfer + 1]):
                    if left[entry] > 0.0 and urgency[transfer] == top[links[entry]]:
                        step = min(step, left[entry] * sharing[links[entry]])
            still = 0
            for transfer in sending[:num_sending]:
                for entry in range(first_entry[transfer], first_entry[transfer + 1]):
                    if left[entry] > 0.0 and urgency[transfer] == top[links[entry]]:
                        left[entry] -= step / sharing[links[entry]]
                        if left[entry] <= least_s:
                            left[entry] = 0.0
                            entries_left[transfer] -= 1
                if entries_left[transfer] == 0:
                    state[transfer] = ended
                else:
                    sending[still] = transfer
                    still += 1
            num_sending = still
            top[:] = -1
            for job in range(num_jobs):
                if not stalled[job]:
                    before = max(progress[job], 0.0)
                    progress[job] += step
                    if now >= warm_up_s:
                        computed[job] += max(progress[job] - before, 0.0) / compute[job]
            now += step
    return computed * ideal / (len(starts) * (horizon_s - warm_up_s))
