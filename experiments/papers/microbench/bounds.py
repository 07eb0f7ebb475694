"""What the jobs of a lot can compute at most in a span of time, whatever they are at when it begins.

No job computes more than alone. And of the iterations that reach into a span all but the first and the last send there
all that they send: so links limit how many there are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from experiments.papers.microbench.lots import Lot
from policies.flow_arrays import FloatArray
from policies.job import Job

ROUNDING = 1e-9
"""Relative; what is as close as this to a bound has reached it."""


@dataclass(frozen=True, slots=True, eq=False)
class Limits:
    """By job of a lot: GPUs, computation, and iteration alone; ``occupied_s`` is how long an iteration (column)
    occupies each shared link (row)."""

    gpus: FloatArray
    compute_s: FloatArray
    alone_s: FloatArray
    occupied_s: FloatArray

    @classmethod
    def of(cls, lot: Lot, jobs: Sequence[Job]) -> Self:
        """``jobs`` are those of the case."""
        place = {job: number for number, job in enumerate(lot.jobs)}
        of_lot = [jobs[job] for job in lot.jobs]
        compute_s = np.array([job.profile.compute_s for job in of_lot])
        ready_s = np.array([job.profile.comm_start for job in of_lot]) * compute_s
        occupied_s, sending_s = np.zeros((len(lot.links), len(of_lot))), np.zeros(len(of_lot))
        for number, flow in enumerate(lot.flows):
            shared = [link for link, each in enumerate(lot.links) if number in each.users]
            for link in shared:
                occupied_s[link, place[flow.job]] += flow.size_bytes * 8 / lot.links[link].rate_bps
            rate_bps = min([flow.own_bps, *(lot.links[link].rate_bps for link in shared)])
            sending_s[place[flow.job]] = max(sending_s[place[flow.job]], flow.size_bytes * 8 / rate_bps)
        gpus = np.array([job.gpus for job in of_lot], dtype=np.float64)
        return cls(gpus, compute_s, np.maximum(compute_s, ready_s + sending_s), occupied_s)

    def most(self, span_s: float, known: Mapping[int, float]) -> float:
        """GPU-seconds of all jobs, where the GPU-seconds of some are ``known`` by their places in the lot."""
        whole, rest_s = np.divmod(span_s, self.alone_s)
        most = self.gpus * (whole * self.compute_s + np.minimum(self.compute_s, rest_s))
        for place, gpu_seconds in known.items():
            most[place] = gpu_seconds
        open_jobs = [place for place in range(len(most)) if place not in known]
        total = least = float(most.sum())
        # A second of a shared link feeds so much computation of each job.
        per_gpu_second = self.occupied_s / (self.gpus * self.compute_s)
        for link, limit_s in enumerate(span_s + 2 * self.occupied_s.sum(axis=1)):
            asked_s = per_gpu_second[link] * most
            excess_s = float(asked_s.sum()) - limit_s
            lost = 0.0
            for place in sorted(open_jobs, key=lambda place: -per_gpu_second[link, place]):
                if excess_s <= 0 or per_gpu_second[link, place] == 0:
                    break
                cut_s = min(excess_s, asked_s[place])
                lost += cut_s / per_gpu_second[link, place]
                excess_s -= cut_s
            least = min(least, total - lost)
        return least * (1 + ROUNDING)
