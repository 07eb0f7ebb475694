"""What an order makes of jobs that contend, by a fluid model: who waits for whom, iteration after iteration.

A job computes as long as nothing is overdue: a transfer is released when the computation reaches its release time, and
where it has not ended at its due time the computation stands still until it has. Its strands, each as fast as the links
that it crosses allow, take what more urgent ones leave of them, equally urgent ones as much for a flow; a transfer ends
with the last of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Self

import numpy as np

from policies.compiled import Loop
from policies.flow_arrays import FloatArray, IntArray
from policies.trainyard.contention import Contention
from policies.trainyard.options import ModelOptions
from policies.trainyard.strands import Strands

_LEAST = 1e-9
"""Share of the longest iteration that counts as no time at all."""

_MOST_ALIKE = 8


@dataclass(frozen=True, slots=True, eq=False)
class FluidModel:
    """Jobs that contend, ready to be run in one order after the other."""

    contention: Contention
    strands: Strands
    starts: FloatArray
    warm_up_s: float
    horizon_s: float

    @classmethod
    def of(cls, contention: Contention, strands: Strands, seed: int, options: ModelOptions) -> Self:
        """The model of these jobs; phases are drawn in the order of the jobs."""
        random = Random(seed)
        fractions = [[random.random() for _ in contention.ideal_s] for _ in range(options.num_phases)]
        horizon_s = _horizon_s(contention, options)
        starts = np.array(fractions) * contention.ideal_s
        return cls(contention, strands, starts, horizon_s * options.warm_up_iterations / options.iterations, horizon_s)

    @property
    def steps(self) -> float:
        """About how many elements of arrays a run reads."""
        return len(self.starts) * _steps(self.contention, self.horizon_s, len(self.strands.links))

    def served(self, urgency: Sequence[int] | IntArray) -> FloatArray:
        """Iteration rate of every job over what it has alone, where groups have this urgency, the highest first."""
        contention, strands = self.contention, self.strands
        of_transfers = np.array(urgency, dtype=np.int64)[contention.group_of]
        run = _run.of(int(self.steps * 50))
        return run(
            (np.argsort(-of_transfers, kind="stable"), of_transfers),
            (contention.compute_s, contention.ideal_s, self.starts),
            (contention.first_transfer, contention.release_s, contention.due_s),
            (strands.first_strand, strands.own_s),
            (strands.first_entry, strands.links, strands.flows, strands.seconds, strands.num_links),
            self.warm_up_s,
            self.horizon_s,
            _LEAST * float(contention.ideal_s.max()),
        )


def fewest_steps(contention: Contention, options: ModelOptions) -> float:
    """What a run reads at least, about, if no more strands go alike than on so many planes: known without looking."""
    entries = len(contention.links) // _MOST_ALIKE
    return options.num_phases * _steps(contention, _horizon_s(contention, options), entries)


def _horizon_s(contention: Contention, options: ModelOptions) -> float:
    longest_s = float(contention.ideal_s.max())
    together = float((longest_s / contention.ideal_s).sum())
    return longest_s * min(float(options.iterations), max(options.most_iterations / together, 2.0))


def _steps(contention: Contention, horizon_s: float, num_entries: int) -> float:
    """From one phase, of strands that need so many links together."""
    events = horizon_s * float(((2 + 2 * np.diff(contention.first_transfer)) / contention.ideal_s).sum())
    return events * (2 * num_entries + len(contention.release_s))


@Loop
def _run(
    order: tuple[IntArray, IntArray],
    of_jobs: tuple[FloatArray, FloatArray, FloatArray],
    of_transfers: tuple[IntArray, FloatArray, FloatArray],
    of_strands: tuple[IntArray, FloatArray],
    on_links: tuple[IntArray, IntArray, FloatArray, FloatArray, int],
    warm_up_s: float,
    horizon_s: float,
    least_s: float,
) -> FloatArray:
    turns, urgency = order
    compute, ideal, starts = of_jobs
    first_transfer, release, due = of_transfers
    first_strand, own = of_strands
    first_entry, links, flows, seconds, num_links = on_links
    num_jobs, num_transfers, num_strands = len(compute), len(release), len(own)
    waits, sends, ended = 0, 1, 2
    computed = np.zeros(num_jobs)
    for phase in range(len(starts)):
        # Seconds into the iteration, stalls not counted; negative before the first one.
        progress = -starts[phase]
        stalled = np.zeros(num_jobs, dtype=np.int64)
        state = np.full(num_transfers, waits)
        # Parts of strands that are left, and how much of them is sent in a second.
        left, rate, gain = np.zeros(num_strands), np.zeros(num_strands), np.zeros(num_strands)
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
                                left[first_strand[transfer] : first_strand[transfer + 1]] = 1.0
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
                                for strand in range(first_strand[transfer], first_strand[transfer + 1]):
                                    if left[strand] > 0.0:
                                        for entry in range(first_entry[strand], first_entry[strand + 1]):
                                            sharing[links[entry]] += flows[entry]
                        for transfer in turns[turn:end]:
                            if state[transfer] == sends:
                                for strand in range(first_strand[transfer], first_strand[transfer + 1]):
                                    if left[strand] > 0.0:
                                        if again == 0:
                                            rate[strand] = 0.0
                                        most = 1 / max(own[strand], least_s) - rate[strand]
                                        for entry in range(first_entry[strand], first_entry[strand + 1]):
                                            link = links[entry]
                                            share = flows[entry] / sharing[link]
                                            most = min(most, room[link] * share / seconds[entry])
                                        gain[strand] = most
                        for transfer in turns[turn:end]:
                            if state[transfer] == sends:
                                for strand in range(first_strand[transfer], first_strand[transfer + 1]):
                                    if left[strand] > 0.0:
                                        rate[strand] += gain[strand]
                                        for entry in range(first_entry[strand], first_entry[strand + 1]):
                                            link = links[entry]
                                            room[link] = max(room[link] - gain[strand] * seconds[entry], 0.0)
                                            sharing[link] = 0.0
                    turn = end
            for transfer in range(num_transfers):
                if state[transfer] == sends:
                    for strand in range(first_strand[transfer], first_strand[transfer + 1]):
                        if left[strand] > 0.0 and rate[strand] > 0.0:
                            step = min(step, left[strand] / rate[strand])
            for transfer in range(num_transfers):
                if state[transfer] == sends:
                    has_ended = True
                    for strand in range(first_strand[transfer], first_strand[transfer + 1]):
                        if left[strand] > 0.0:
                            left[strand] -= rate[strand] * step
                            if left[strand] <= least_s * rate[strand]:
                                left[strand] = 0.0
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
