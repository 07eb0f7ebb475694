"""Random mixes of jobs on few links, and the value of every order of them, for ``benchmarks/policies.py``.

A job computes, and sends a flow over each link that it uses; the most urgent job with bytes for a link gets all of it.
The model simulates jobs event by event over many iterations from several phases; it shares no code with the policies.
"""

from dataclasses import dataclass
from itertools import permutations

import numpy as np
import numpy.typing as npt

from policies.flows import Flow, FlowGroup, FlowKey
from policies.intensity import Iteration
from policies.jit import compiled
from policies.job import Job, Profile
from policies.snapshot import Links, LinkState, OrderKeeper, Snapshot
from topologies.addressing import FLOW_DESTINATION_PORT, UDP_PROTOCOL, FiveTuple
from topologies.paths import Paths

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

LINK_RATE_BPS = 100e9
PHASES, ITERATIONS, WARM_UP = 2, 40, 5
_FIVE_TUPLE = FiveTuple(1, 2, UDP_PROTOCOL, 50_000, FLOW_DESTINATION_PORT)


@dataclass(frozen=True, slots=True, eq=False)
class Mix:
    """Jobs: the seconds that each computes, when it begins to send, its work, and its seconds on every link."""

    compute_s: FloatArray
    ready_s: FloatArray
    work: FloatArray
    seconds: FloatArray
    phases: FloatArray

    @classmethod
    def draw(cls, chance: np.random.Generator, num_jobs: int, num_links: int, load: float) -> "Mix":
        """Draw jobs that would use the hottest link for ``load`` of the time, if each iterated as in isolation.

        Computation is log-uniform between 0.3 and 3 s. Three of ten jobs send after their computation, the others from
        a uniform fraction of it on. Jobs have 2 to 64 GPUs and one to three links each; sizes are uniform within a
        factor of ten, then scaled.
        """
        compute_s = 10 ** chance.uniform(-0.5, 0.5, num_jobs)
        ready_s = compute_s * np.where(chance.random(num_jobs) < 0.3, 1.0, chance.random(num_jobs))
        work = compute_s * 2.0 ** chance.integers(1, 7, num_jobs)
        seconds = np.zeros((num_jobs, num_links))
        for job in range(num_jobs):
            links = chance.choice(num_links, int(chance.integers(1, min(num_links, 3) + 1)), replace=False)
            seconds[job, links] = compute_s[job] * chance.uniform(0.2, 2) * chance.uniform(0.3, 1, len(links))

        def durations_s(scale: float) -> FloatArray:
            return np.maximum(compute_s, ready_s + scale * seconds.max(axis=1))

        lowest, highest = 1e-4, 1e4
        for _ in range(60):
            scale = (lowest * highest) ** 0.5
            hottest = (scale * seconds / durations_s(scale)[:, None]).sum(axis=0).max()
            lowest, highest = (lowest, scale) if hottest > load else (scale, highest)
        phases = chance.random((PHASES, num_jobs)) * durations_s(lowest)
        return cls(compute_s, ready_s, work, lowest * seconds, phases)

    @property
    def isolated(self) -> list[Iteration]:
        """Every job's iteration in isolation."""
        columns = (self.compute_s, self.ready_s / self.compute_s, self.seconds.max(axis=1))
        return [Iteration(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]

    def snapshot(self, num_levels: int = 8) -> Snapshot:
        """Return a Snapshot of the jobs, named by their numbers, with each flow on its one link."""
        links = Links(LinkState(LINK_RATE_BPS, OrderKeeper.SWITCH_QUEUE) for _ in range(self.seconds.shape[1]))
        jobs = []
        for number, iteration in enumerate(self.isolated):
            flows = tuple(
                Flow(
                    FlowKey(str(number), "all", place),
                    _FIVE_TUPLE,
                    second * LINK_RATE_BPS / 8,
                    0.0,
                    Paths([(link,)]),
                    (link,),
                )
                for place, (link, second) in enumerate(
                    (link, float(second)) for link, second in enumerate(self.seconds[number]) if second > 0
                )
            )
            profile = Profile(iteration.compute_s, iteration.comm_start, float(self.work[number]))
            jobs.append(Job(str(number), 0.0, 1, profile, (FlowGroup("all", flows),)))
        return Snapshot(0.0, links, tuple(jobs), num_levels)

    def all_orders(self) -> dict[tuple[int, ...], float]:
        """Return the computation per second under every strict order."""
        return {order: self.value(np.arange(len(order))[::-1][np.argsort(order)]) for order in _orders(len(self.work))}

    def value(self, urgency: IntArray) -> float:
        """Return the computation per second with these urgencies; the highest goes first, equal ones share a link."""
        longest_s = max(iteration.duration_s for iteration in self.isolated)
        runs = [
            _run(
                urgency,
                self.compute_s,
                self.ready_s,
                self.seconds,
                phase,
                self.work,
                longest_s * WARM_UP,
                longest_s * ITERATIONS,
            )
            for phase in self.phases
        ]
        return float(np.mean(runs))


def _orders(num_jobs: int) -> list[tuple[int, ...]]:
    return list(permutations(range(num_jobs)))


@compiled
def _run(
    urgency: IntArray,
    compute_s: FloatArray,
    ready_s: FloatArray,
    seconds: FloatArray,
    phase_s: FloatArray,
    work: FloatArray,
    warm_up_s: float,
    horizon_s: float,
) -> float:
    """Return the computation per second between two times; jobs start ``phase_s`` into an iteration."""
    num_jobs, num_links = seconds.shape
    begun, sends = -phase_s, phase_s >= ready_s
    left = np.zeros_like(seconds)
    for job in range(num_jobs):
        if sends[job]:
            left[job] = np.maximum(seconds[job] - (phase_s[job] - ready_s[job]), 0.0)
    served = np.zeros_like(seconds)
    computed_s, now_s, least_s = np.zeros(num_jobs), 0.0, 1e-12
    while now_s < horizon_s:
        for job in range(num_jobs):
            while True:
                if not sends[job] and now_s >= begun[job] + ready_s[job] - least_s:
                    sends[job], left[job] = True, seconds[job]
                if not sends[job] or now_s < begun[job] + compute_s[job] - least_s or left[job].max() > least_s:
                    break
                to_s = min(begun[job] + compute_s[job], horizon_s)
                computed_s[job] += max(to_s - max(begun[job], warm_up_s), 0.0)
                begun[job], sends[job] = now_s, False
        next_s = horizon_s
        for job in range(num_jobs):
            due_s = begun[job] + (compute_s[job] if sends[job] else ready_s[job])
            if due_s > now_s + least_s:
                next_s = min(next_s, due_s)
        served[:] = 0.0
        for link in range(num_links):
            top, equals = -1, 0
            for job in range(num_jobs):
                if sends[job] and left[job, link] > least_s:
                    if urgency[job] > top:
                        top, equals = urgency[job], 1
                    elif urgency[job] == top:
                        equals += 1
            for job in range(num_jobs):
                if sends[job] and left[job, link] > least_s and urgency[job] == top:
                    served[job, link] = 1.0 / equals
                    next_s = min(next_s, now_s + left[job, link] * equals)
        left -= served * (next_s - now_s)
        now_s = next_s
    total = 0.0
    for job in range(num_jobs):
        to_s = min(begun[job] + compute_s[job], horizon_s)
        computed_s[job] += max(to_s - max(begun[job], warm_up_s), 0.0)
        total += work[job] * computed_s[job] / compute_s[job]
    return total / (horizon_s - warm_up_s)
