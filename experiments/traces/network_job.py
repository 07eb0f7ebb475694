"""A job of a trace that sends: its routes, its time shift and its progress."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Self

import numpy as np

from experiments.scenarios.routes import undecided_tier
from policies.enforcement import Tiers
from policies.flows import FlowKey
from policies.model.picoseconds import PS_PER_S
from policies.model.tiers import places_on_hops
from policies.plan import FlowPlan
from policies.rates.network import FloatArray, IntArray
from simulator.iterating_jobs import Iterations
from simulator.iteration_stages import BEAT, BEGUN, IN_RHYTHM, ITERATIONS, PERIOD, SHARED, UNTIL, computed_ps
from topologies.fabric import Path
from workloads.jobs import TrainingJob
from workloads.traces.simulated_jobs import SimulatedJob


@dataclass(frozen=True, slots=True, eq=False)
class Flows:
    """Routes of flows: each crosses ``num_hops`` of ``links``, in its tier, and has ``places`` on them or none."""

    links: IntArray
    num_hops: IntArray
    tiers: IntArray
    places: IntArray
    latency_ps: IntArray

    @classmethod
    def of(
        cls, paths: Sequence[Path], inside: Sequence[Path], tiers: IntArray, places: IntArray, delays_s: FloatArray
    ) -> Self:
        """Return flows with these paths and links inside hosts; ``places`` is by flow, ``delays_s`` by link."""
        whole = [(*path, *within) for path, within in zip(paths, inside, strict=True)]
        num_hops = np.array([len(path) for path in whole], dtype=np.int64)
        num_outside = np.array([len(path) for path in paths], dtype=np.int64)
        links = np.array(list(chain.from_iterable(whole)), dtype=np.int64)
        latency_s = np.add.reduceat(delays_s[links], np.cumsum(num_hops) - num_hops)
        latency_ps = np.rint(latency_s * PS_PER_S).astype(np.int64)
        return cls(links, num_hops, tiers, places_on_hops(places, num_hops, num_outside), latency_ps)

    @classmethod
    def concatenate(cls, parts: Sequence[Self]) -> Self:
        """Return the flows of several jobs, with tiers renumbered from 0 in the same order."""
        tiers = np.concatenate([part.tiers for part in parts])
        have_places = any(len(part.places) for part in parts)
        places = [part.places if len(part.places) else np.zeros_like(part.links) for part in parts if have_places]
        return cls(
            np.concatenate([part.links for part in parts]),
            np.concatenate([part.num_hops for part in parts]),
            np.unique(tiers, return_inverse=True)[1],
            np.concatenate(places) if have_places else np.zeros(0, dtype=np.int64),
            np.concatenate([part.latency_ps for part in parts]),
        )

    def has_same_contention(self, other: Self) -> bool:
        """Whether flows share the same links in the same order."""
        mine, others = (self.links, self.tiers, self.places), (other.links, other.tiers, other.places)
        return all(np.array_equal(one, another) for one, another in zip(mine, others, strict=True))


class NetworkJob:
    """A job under way: ``row`` and ``left_bytes`` are its part of ``simulator.iterating_jobs.IterationState``.

    It has completed ``row[ITERATIONS] + skipped`` iterations; those skipped were extrapolated. Its flows begin on the
    hash's paths, ``hashed``, and on level 0; ``inside`` are their links inside hosts, and ``first_links`` those by
    which they leave their GPUs. ``rhythm_ps`` are the period and the beat of its time shift, zeros for none. Jobs with
    the same number ``shared`` take turns on the same GPUs; 0 means that the job has its GPUs to itself.
    """

    def __init__(
        self,
        simulated: SimulatedJob,
        training: TrainingJob,
        start_ps: int,
        hashed: Sequence[Path],
        inside: Sequence[Path],
        delays_s: FloatArray,
        shared: int = 0,
    ) -> None:
        group = training.graph.flow_groups[0]
        self.simulated = simulated
        self.training = training
        self.start_ps = start_ps
        self.keys = tuple(FlowKey(training.name, group.name, number) for number in range(len(group.flows)))
        self.size_bytes = np.array([flow.size_bytes for flow in group.flows])
        self.left_bytes: FloatArray = np.zeros(len(group.flows))
        self.rhythm_ps = self._applied_ps = (0, 0)
        self.skipped = 0.0
        self._hashed, self._inside, self._delays_s = hashed, inside, delays_s
        paths = zip(inside, hashed, strict=True)
        self.first_links = np.array([within[0] if within else path[0] for within, path in paths], dtype=np.int64)
        first = np.zeros(len(hashed), dtype=np.int64)
        self._paths, self._places = list(hashed), first
        self.flows = self._flows_on(hashed, first + undecided_tier(Tiers.LEVELS), first)
        workload = simulated.workload
        compute_s, comm_start = np.array([workload.compute_s]), np.array([workload.comm_start])
        jobs = Iterations.of(compute_s, comm_start, np.zeros(1), np.array([len(self.size_bytes)]), self.size_bytes)
        self.row: IntArray = jobs.rows()[0]
        self.row[UNTIL] = self.row[BEGUN] = start_ps
        self.shared = self.row[SHARED] = shared

    @property
    def name(self) -> str:
        """Its name."""
        return self.simulated.request.name

    @property
    def gpus(self) -> int:
        """The number of its GPUs."""
        return self.simulated.request.gpus

    @property
    def remaining_iterations(self) -> float:
        """The iterations that it has not completed yet, also in parts."""
        return max(0.0, self.simulated.iterations - self.skipped - int(self.row[ITERATIONS]))

    def computed_s(self, now_ps: int) -> float:
        """Return for how long it has computed until now, to which its component was brought."""
        return (
            float(computed_ps(self.row[None], now_ps)[0]) / PS_PER_S + self.skipped * self.simulated.workload.compute_s
        )

    def apply_plan(self, plans: Sequence[FlowPlan], tiers: IntArray, places: IntArray) -> None:
        """Apply the Plan of each flow, with these tiers and places."""
        paths = [plan.path or hashed for plan, hashed in zip(plans, self._hashed, strict=True)]
        if paths != self._paths or not np.array_equal(places, self._places):
            self._paths, self._places = paths, places
            self.flows = self._flows_on(paths, tiers, places)
        elif not np.array_equal(tiers, self.flows.tiers):
            self.flows = replace(self.flows, tiers=tiers)

    def _flows_on(self, paths: Sequence[Path], tiers: IntArray, places: IntArray) -> Flows:
        return Flows.of(paths, self._inside, tiers, places, self._delays_s)

    def set_time_shift(self, time_shift_s: float | None) -> None:
        """Hold iterations for this time shift, as ``hostlib.start_shift`` does; None ends it."""
        if time_shift_s is None:
            self.rhythm_ps = (0, 0)
        else:
            period_ps = round(self.simulated.ideal_iteration_s * PS_PER_S)
            self.rhythm_ps = (period_ps, self.start_ps + round(time_shift_s * PS_PER_S))

    def apply_rhythm(self) -> None:
        """Write a new rhythm into ``row``."""
        if self._applied_ps != self.rhythm_ps:
            self._applied_ps = self.rhythm_ps
            (self.row[PERIOD], self.row[BEAT]), self.row[IN_RHYTHM] = self.rhythm_ps, 0
