"""Random cases of Crux's microbenchmark: fabrics, jobs and loads.

Crux (section 4.4) gives the frame: at most 20 hosts of 8 GPUs, a two-layer Clos of 2 to 4 ToRs and 2 aggregation
switches, 5 different jobs, 3 priority levels. What jobs do, where they run and how fast links are is ours (``RANGES``),
and was not chosen with a result in sight. Computation times are about those of the model table (``workloads.models``);
overlap and sizes are drawn as for the mixes in ``benchmarks/orders.py``.

All hosts of a job lie under two ToRs, and each sends to the next. So one flow of the job crosses between the ToRs, and
a path is chosen per job and pair of ToRs, from two candidates. The load of a case is the share of time for which its
hottest link between switches would be busy if all jobs iterated as if alone, on the paths for which that share is
least. Sizes are scaled to give this load; jobs for which no size does are drawn again.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import count, islice, pairwise

import numpy as np

from experiments.scenarios.modelled import ModelledScenario
from policies.arrays import FloatArray, IntArray
from policies.snapshot import Snapshot
from topologies.clos import ClosSpecification
from workloads.scenario import JobSpecification, MeasureWindow, Scenario
from workloads.workload import PhasesWorkload, Transfer

NUM_JOBS, NUM_LEVELS = 5, 3
MOST_HOSTS, GPUS_PER_HOST, NUM_AGGS = 20, 8, 2
WARM_UP_ITERATIONS, MEASURED_ITERATIONS = 10, 100
"""Iterations of the job whose iteration alone is longest."""

LOAD_BANDS = ((0.3, 0.6), (0.6, 0.9), (0.9, 1.2), (1.2, 1.8), (1.8, 2.5))
"""Cases take turns among these bands; a load is drawn uniformly from its band."""

_LINK_GBPS = 100.0
_HALVINGS = 60


class Assumption(StrEnum):
    """The distributions that ``--assume`` chooses from: ours, and three others. ``RANGES`` defines them."""

    OURS = "ours"
    IN_TURN = "in-turn"
    OVERLAPPED = "overlapped"
    LARGE_SEND_LONGER = "large-send-longer"


@dataclass(frozen=True, slots=True)
class Ranges:
    """The distributions of job parameters, uniform unless stated otherwise.

    Attributes:
        tors: Number of ToRs, inclusive.
        hosts: Hosts of a job, inclusive; each of its two ToRs has at least one of them.
        compute_s: Computation time, log-uniform.
        in_turn: Share of jobs that send after all computation. The others begin to send at a uniform fraction of it.
        sending: Time that a flow takes alone over the job's computation time, before sizes are scaled to the load.
        growth: ``sending`` is multiplied by the number of the job's hosts to this power.
    """

    tors: tuple[int, int] = (2, 4)
    hosts: tuple[int, int] = (2, 8)
    compute_s: tuple[float, float] = (0.25, 1.5)
    in_turn: float = 0.3
    sending: tuple[float, float] = (0.2, 2.0)
    growth: float = 0.0


RANGES: Mapping[Assumption, Ranges] = {
    Assumption.OURS: Ranges(),
    Assumption.IN_TURN: Ranges(in_turn=1.0),
    Assumption.OVERLAPPED: Ranges(in_turn=0.0),
    Assumption.LARGE_SEND_LONGER: Ranges(compute_s=(0.5, 0.7), sending=(0.8, 1.25), growth=0.5),
}
"""The distributions by name. Others show how results depend on ours; the last gives the paper's order of methods."""


@dataclass(frozen=True, slots=True)
class Case:
    """A case: its scenario, with the window of measurement, and the snapshot that policies decide on."""

    load: float
    scenario: Scenario
    snapshot: Snapshot

    @property
    def window(self) -> MeasureWindow:
        """The window of measurement."""
        assert self.scenario.measure is not None
        return self.scenario.measure


def bands_to(load: float) -> tuple[tuple[float, float], ...]:
    """Return the bands up to a load. Raises ValueError where there is none."""
    bands = tuple(band for band in LOAD_BANDS if band[1] <= load)
    if not bands:
        raise ValueError(f"expected at least {LOAD_BANDS[0][1]}, got {load:g}")
    return bands


def draw_case(seed: int, load_to: float, assumption: Assumption = Assumption.OURS) -> Case:
    """Draw the case of a seed, counted from 1. It does not depend on other cases."""
    chance = np.random.default_rng(seed)
    bands = bands_to(load_to)
    load = float(chance.uniform(*bands[(seed - 1) % len(bands)]))
    ranges = RANGES[assumption]
    num_tors = int(chance.integers(ranges.tors[0], ranges.tors[1], endpoint=True))
    drawn = next(filter(None, (_Drawn.of(chance, num_tors, load, ranges) for _ in count())))
    scenario = drawn.scenario(f"crux-microbench-{seed}", seed)
    return Case(load, scenario, snapshot_of(scenario))


def snapshot_of(scenario: Scenario) -> Snapshot:
    """Return the snapshot of a controller with ``NUM_LEVELS`` levels after all jobs have arrived."""
    return ModelledScenario.of(scenario.model_copy(update={"num_levels": NUM_LEVELS})).snapshot


@dataclass(frozen=True, slots=True, eq=False)
class _Drawn:
    """Jobs under ``num_tors`` ToRs: their hosts in the order of the ToRs, their iterations, and their first phases."""

    num_tors: int
    hosts: list[tuple[str, ...]]
    compute_s: FloatArray
    comm_start: FloatArray
    sending_s: FloatArray
    phases: FloatArray

    @classmethod
    def of(cls, chance: np.random.Generator, num_tors: int, load: float, ranges: Ranges) -> "_Drawn | None":
        """Draw once; returns None where there are too few hosts or no sizes give the load."""
        first = chance.integers(num_tors, size=NUM_JOBS)
        pairs = np.sort([first, (first + chance.integers(1, num_tors, size=NUM_JOBS)) % num_tors], axis=0).T
        num_hosts = chance.integers(*ranges.hosts, endpoint=True, size=NUM_JOBS)
        near = chance.integers(1, num_hosts)
        counts = np.stack((near, num_hosts - near), axis=1)
        hosts_per_tor = MOST_HOSTS // num_tors
        # At least half of the jobs that leave a ToR, or enter one, share an aggregation switch.
        most_at_once = max(-(-np.bincount(of_end).max() // NUM_AGGS) for of_end in pairs.T)
        if np.bincount(pairs.ravel(), counts.ravel()).max() > hosts_per_tor or most_at_once < load:
            return None
        users = _users(pairs, num_tors)
        if users.sum(axis=2).max(axis=1).min() < load:
            return None
        free = [iter(range(tor * hosts_per_tor, (tor + 1) * hosts_per_tor)) for tor in range(num_tors)]
        hosts = [
            tuple(f"h{host}" for tor, number in zip(*of_job, strict=True) for host in islice(free[tor], number))
            for of_job in zip(pairs.tolist(), counts.tolist(), strict=True)
        ]
        compute_s = ranges.compute_s[0] * (ranges.compute_s[1] / ranges.compute_s[0]) ** chance.random(NUM_JOBS)
        comm_start = np.where(chance.random(NUM_JOBS) < ranges.in_turn, 1.0, chance.random(NUM_JOBS))
        sending_s = compute_s * chance.uniform(*ranges.sending, NUM_JOBS) * num_hosts**ranges.growth
        phases = chance.random(NUM_JOBS)

        def hottest(scale: float) -> float:
            durations_s = np.maximum(compute_s, comm_start * compute_s + scale * sending_s)
            return float((users @ (scale * sending_s / durations_s)).max(axis=1).min())

        lowest, highest = 1e-4, 1e2
        if hottest(highest) < load:
            return None
        for _ in range(_HALVINGS):
            scale = (lowest * highest) ** 0.5
            lowest, highest = (lowest, scale) if hottest(scale) > load else (scale, highest)
        return cls(num_tors, hosts, compute_s, comm_start, lowest * sending_s, phases)

    @property
    def alone_s(self) -> FloatArray:
        """Iteration times alone."""
        return np.maximum(self.compute_s, self.comm_start * self.compute_s + self.sending_s)

    def scenario(self, name: str, seed: int) -> Scenario:
        """Return the scenario; jobs arrive within an iteration of theirs after time 0."""
        alone_s = self.alone_s
        from_s = WARM_UP_ITERATIONS * float(alone_s.max())
        to_s = from_s + MEASURED_ITERATIONS * float(alone_s.max())
        columns = (self.compute_s, self.comm_start, self.sending_s, self.phases * alone_s)
        jobs = tuple(
            self._job(f"job-{number}", hosts, to_s, *(float(column[number]) for column in columns))
            for number, hosts in enumerate(self.hosts)
        )
        topology = ClosSpecification(
            kind="clos",
            tors=self.num_tors,
            aggs=NUM_AGGS,
            hosts_per_tor=MOST_HOSTS // self.num_tors,
            gpus_per_host=GPUS_PER_HOST,
            nics_per_host=1,
            host_link_gbps=_LINK_GBPS,
            uplink_gbps=_LINK_GBPS,
            delay_us=0.0,
        )
        window = MeasureWindow(from_s=from_s, to_s=to_s)
        return Scenario(name=name, topology=topology, jobs=jobs, seed=seed, reaction_delay_s=0.0, measure=window)

    @staticmethod
    def _job(
        name: str,
        hosts: tuple[str, ...],
        duration_s: float,
        compute_s: float,
        comm_start: float,
        sending_s: float,
        arrival_s: float,
    ) -> JobSpecification:
        size_bytes = sending_s * _LINK_GBPS * 1e9 / 8
        flows = tuple(
            Transfer(source=source, destination=destination, bytes=size_bytes)
            for source, destination in pairwise(hosts)
        )
        return JobSpecification(
            name=name,
            hosts=hosts,
            gpus_per_host=GPUS_PER_HOST,
            arrival_s=arrival_s,
            duration_s=duration_s,
            workload=PhasesWorkload(type="phases", compute_s=compute_s, comm_start=comm_start, flows=flows),
        )


def _users(pairs: IntArray, num_tors: int) -> FloatArray:
    """Return 1 where a job uses a link, else 0, by choice of paths, link between switches and job."""
    choices = np.array(list(_choices(len(pairs))))
    users = np.zeros((len(choices), 2, num_tors, NUM_AGGS, len(pairs)))
    for job, tors in enumerate(pairs):
        for end, tor in enumerate(tors):
            users[np.arange(len(choices)), end, tor, choices[:, job], job] = 1.0
    return users.reshape(len(choices), -1, len(pairs))


def _choices(num_jobs: int) -> Iterator[tuple[int, ...]]:
    yield from np.ndindex(*(NUM_AGGS,) * num_jobs)
