"""A job of a trace that sends: where it runs, by which ways its flows go, and how far it is."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Self

import numpy as np

from experiments.scenarios.routes import undecided_tier
from policies.enforcement import Tiers
from policies.flows import FlowKey
from policies.plan import FlowPlan
from policies.rates.network import FloatArray, IntArray
from simulator.fluid import PS_PER_S
from simulator.iterating_jobs import Iterations
from simulator.iteration_stages import BEAT, BEGUN, IN_RHYTHM, ITERATIONS, PERIOD, SHARED, UNTIL, computed_ps
from topologies.fabric import Path
from workloads.jobs import TrainingJob
from workloads.traces.simulated_jobs import SimulatedJob


@dataclass(frozen=True, slots=True, eq=False)
class Flows:
    """The ways of flows: each crosses ``num_hops`` of ``links``, in its tier."""

    links: IntArray
    num_hops: IntArray
    tiers: IntArray
    latency_ps: IntArray

    @classmethod
    def of(cls, paths: Sequence[Path], tiers: IntArray, delays_s: FloatArray) -> Self:
        """Flows with these paths; ``delays_s`` is by link."""
        num_hops = np.array([len(path) for path in paths], dtype=np.int64)
        links = np.array(list(chain.from_iterable(paths)), dtype=np.int64)
        latency_s = np.add.reduceat(delays_s[links], np.cumsum(num_hops) - num_hops)
        return cls(links, num_hops, tiers, np.rint(latency_s * PS_PER_S).astype(np.int64))

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """The flows of several jobs, with the smallest numbers for their tiers that keep the order."""
        tiers = np.concatenate([part.tiers for part in parts])
        return cls(
            np.concatenate([part.links for part in parts]),
            np.concatenate([part.num_hops for part in parts]),
            np.unique(tiers, return_inverse=True)[1],
            np.concatenate([part.latency_ps for part in parts]),
        )

    def go_alike(self, other: Self) -> bool:
        """Whether flows share links with the same flows, in the same order."""
        return np.array_equal(self.links, other.links) and np.array_equal(self.tiers, other.tiers)


class NetworkJob:
    """A job under way: ``row`` and ``left_bytes`` are its part of ``simulator.iterating_jobs.IterationState``.

    It has completed ``row[ITERATIONS] + skipped`` iterations, the latter without being computed event by event. Its
    flows begin on the paths that the hash gives them, ``hashed``, and on level 0; ``inside`` are their links
    inside hosts, ``ways_out`` the links by which they leave their GPUs. ``rhythm_ps`` are the period and a beat that it
    is to keep, zeros for none. Jobs of the same number ``shared`` (0: of none) compute in turns on the same GPUs.
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
        self.rhythm_ps = self._kept_ps = (0, 0)
        self.skipped = 0.0
        self._hashed, self._paths, self._inside, self._delays_s = hashed, list(hashed), inside, delays_s
        ways = zip(inside, hashed, strict=True)
        self.ways_out = np.array([within[0] if within else path[0] for within, path in ways], dtype=np.int64)
        self.flows = self._led(hashed, np.full(len(hashed), undecided_tier(Tiers.LEVELS)))
        workload = simulated.workload
        compute_s, comm_start = np.array([workload.compute_s]), np.array([workload.comm_start])
        jobs = Iterations.of(compute_s, comm_start, np.zeros(1), np.array([len(self.size_bytes)]), self.size_bytes)
        self.row: IntArray = jobs.rows()[0]
        self.row[UNTIL] = self.row[BEGUN] = start_ps
        self.shared = self.row[SHARED] = shared

    @property
    def name(self) -> str:
        return self.simulated.request.name

    @property
    def gpus(self) -> int:
        return self.simulated.request.gpus

    @property
    def left(self) -> float:
        """Iterations that it has not completed yet."""
        return max(0.0, self.simulated.iterations - self.skipped - int(self.row[ITERATIONS]))

    def computed_s(self, now_ps: int) -> float:
        """For how long it has computed until now, to which its component has been brought."""
        return (
            float(computed_ps(self.row[None], now_ps)[0]) / PS_PER_S + self.skipped * self.simulated.workload.compute_s
        )

    def follow(self, plans: Sequence[FlowPlan], tiers: IntArray) -> None:
        """Let the flows go by these plans, in these tiers."""
        paths = [plan.path or hashed for plan, hashed in zip(plans, self._hashed, strict=True)]
        if paths != self._paths:
            self._paths, self.flows = paths, self._led(paths, tiers)
        elif not np.array_equal(tiers, self.flows.tiers):
            self.flows = replace(self.flows, tiers=tiers)

    def _led(self, paths: Sequence[Path], tiers: IntArray) -> Flows:
        whole = [(*path, *inside) for path, inside in zip(paths, self._inside, strict=True)]
        return Flows.of(whole, tiers, self._delays_s)

    def keep_rhythm(self, time_shift_s: float | None) -> None:
        """From now on hold iterations for these beats, as ``hostlib.start_shift`` counts them; None: for none."""
        if time_shift_s is None:
            self.rhythm_ps = (0, 0)
        else:
            period_ps = round(self.simulated.ideal_iteration_s * PS_PER_S)
            self.rhythm_ps = (period_ps, self.start_ps + round(time_shift_s * PS_PER_S))

    def begin_in_rhythm(self) -> None:
        """Take over into the row a rhythm that is new."""
        if self._kept_ps != self.rhythm_ps:
            self._kept_ps = self.rhythm_ps
            (self.row[PERIOD], self.row[BEAT]), self.row[IN_RHYTHM] = self.rhythm_ps, 0
