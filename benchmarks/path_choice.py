"""Compares the paths that policies choose with the best choice, on small fabrics, for ``benchmarks/policies.py``.

The value of a choice is the fluid bound of its paths, by linear programming: the most computation per second that any
rates of the jobs allow.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.optimize import linprog

from benchmarks.orders import LINK_RATE_BPS, FloatArray
from policies.crux.path_selection import select_paths
from policies.flows import Flow, FlowGroup, FlowKey
from policies.job import Job, Profile
from policies.snapshot import Links, LinkState, OrderKeeper, Snapshot
from policies.trainyard.path_choice import choose_paths
from policies.trainyard.policy import trainyard
from topologies.addressing import FLOW_DESTINATION_PORT, UDP_PROTOCOL, FiveTuple
from topologies.fabric import Path
from topologies.paths import Paths

LEAVES, SPINES, JOBS, MOST_FLOWS = 4, 2, 5, 9
SCALES = (0.3, 0.6, 1.0)
CASES = 20
_FIVE_TUPLE = FiveTuple(1, 2, UDP_PROTOCOL, 50_000, FLOW_DESTINATION_PORT)


def path_ratios(seed: int) -> dict[str, list[float]]:
    """Return the value of each rule's paths over that of the best paths, by rule, for every case."""
    chance = np.random.default_rng(seed)
    ratios: dict[str, list[float]] = {}
    for scale in SCALES:
        for _ in range(CASES):
            case = Case.draw(chance, scale)
            best = max(case.value(choice) for choice in case.all_choices())
            for rule, choice in case.rules().items():
                ratios.setdefault(rule, []).append(case.value(choice) / best)
    return ratios


@dataclass(frozen=True, slots=True)
class Case:
    """Jobs on a leaf-spine fabric with a link up and a link down between every leaf and every spine."""

    snapshot: Snapshot

    @classmethod
    def draw(cls, chance: np.random.Generator, scale: float) -> "Case":
        """Draw rings over two or three leaves that send ``scale`` times 0.2 to 2 times as long as they compute."""
        jobs: list[Job] = []
        while len(jobs) < JOBS:
            leaves = chance.permutation(LEAVES)[: chance.integers(2, 4)].tolist()
            num_flows = sum(len(job.flows) for job in jobs) + len(leaves)
            if num_flows > MOST_FLOWS:
                break
            name, compute_s = str(len(jobs)), float(10 ** chance.uniform(-0.5, 0.5))
            size_bytes = compute_s * scale * chance.uniform(0.2, 2) * LINK_RATE_BPS / 8
            flows = tuple(
                Flow(FlowKey(name, "ring", number), _FIVE_TUPLE, size_bytes, 0.0, paths, paths[0])
                for number, paths in enumerate(map(_candidates, leaves, (*leaves[1:], leaves[0])))
            )
            profile = Profile(compute_s, float(chance.random()), compute_s * 2.0 ** chance.integers(1, 7))
            jobs.append(Job(name, 0.0, 1, profile, (FlowGroup("ring", flows),)))
        links = Links(LinkState(LINK_RATE_BPS, OrderKeeper.SWITCH_QUEUE) for _ in range(2 * LEAVES * SPINES))
        return cls(Snapshot(0.0, links, tuple(jobs)))

    @property
    def flows(self) -> list[Flow]:
        """All flows, job by job."""
        return [flow for job in self.snapshot.jobs for flow in job.flows]

    def all_choices(self) -> Iterator[tuple[Path, ...]]:
        """Return every choice of paths; the spines are alike, so that the first flow takes the first spine."""
        first, *others = (tuple(flow.candidates) for flow in self.flows)
        return product(first[:1], *others)

    def rules(self) -> dict[str, Sequence[Path]]:
        """Return the paths that each rule chooses."""
        jobs, rates_bps = self.snapshot.jobs, self.snapshot.links.rates_bps
        paths = choose_paths(jobs, {}, rates_bps)
        prices = self._prices()
        return {
            "hash": [flow.hashed_path for flow in self.flows],
            "crux": select_paths(self.snapshot).first_paths,
            "least_used": [path for job in jobs for path in paths[job.name].paths],
            "least_priced": self._least_priced(prices),
            "trainyard": self._planned(),
        }

    def _planned(self) -> list[Path]:
        flows = trainyard(self.snapshot).flows
        return [flows[flow.key].path or flow.hashed_path for flow in self.flows]

    def value(self, choice: Sequence[Path]) -> float:
        """Return the fluid bound: the most computation per second that any rates of iterations allow."""
        taken = [{path: 1.0} for path in choice]
        used = self._seconds(taken)
        upper = [
            1 / max(job.profile.compute_s, job.profile.comm_start * job.profile.compute_s + seconds.max())
            for job, seconds in zip(self.snapshot.jobs, used, strict=True)
        ]
        work = np.array([job.profile.work for job in self.snapshot.jobs])
        bounds = [(0.0, rate) for rate in upper]
        return -float(linprog(-work, A_ub=used.T, b_ub=np.ones(used.shape[1]), bounds=bounds).fun)

    def _seconds(self, taken: Sequence[Mapping[Path, float]]) -> FloatArray:
        """Return the seconds of every job on every link, with each flow split over its paths."""
        seconds = np.zeros((len(self.snapshot.jobs), len(self.snapshot.links)))
        for flow, parts in zip(self.flows, taken, strict=True):
            for path, part in parts.items():
                seconds[int(flow.key.job), list(path)] += part * flow.size_bytes * 8 / LINK_RATE_BPS
        return seconds

    def _prices(self) -> FloatArray:
        """Return the value of a second of every link, where flows are split over their candidates in the best way."""
        jobs, flows = self.snapshot.jobs, self.flows
        columns = [(number, path) for number, flow in enumerate(flows) for path in flow.candidates]
        used = np.zeros((len(self.snapshot.links), len(jobs) + len(columns)))
        equal = np.zeros((len(flows), used.shape[1]))
        for column, (number, path) in enumerate(columns, len(jobs)):
            used[list(path), column] = flows[number].size_bytes * 8 / LINK_RATE_BPS
            equal[number, column] = 1
        for number, flow in enumerate(flows):
            equal[number, int(flow.key.job)] = -1
        work = np.concatenate(([-job.profile.work for job in jobs], np.zeros(len(columns))))
        spread = self._seconds([dict.fromkeys(flow.candidates, 1 / len(flow.candidates)) for flow in flows])
        longest = [
            max(job.profile.compute_s, job.profile.comm_start * job.profile.compute_s + seconds.max())
            for job, seconds in zip(jobs, spread, strict=True)
        ]
        bounds = [*((0.0, 1 / duration_s) for duration_s in longest), *[(0.0, None)] * len(columns)]
        solved = linprog(work, A_ub=used, b_ub=np.ones(len(used)), A_eq=equal, b_eq=np.zeros(len(flows)), bounds=bounds)
        return -np.asarray(solved.ineqlin.marginals)

    def _least_priced(self, prices: FloatArray) -> list[Path]:
        """Choose the cheapest paths, then the least used, for jobs in order of their computation per charge."""
        durations_s = {job.name: job.profile.compute_s for job in self.snapshot.jobs}
        seconds = {flow.key: flow.size_bytes * 8 / LINK_RATE_BPS for flow in self.flows}

        def charge(job: Job) -> float:
            return sum(
                seconds[flow.key] * min(prices[list(path)].sum() for path in flow.candidates) for flow in job.flows
            )

        chosen: dict[FlowKey, Path] = {}
        load = np.zeros(len(prices))
        for job in sorted(self.snapshot.jobs, key=lambda job: (charge(job) / job.profile.work, job.name)):
            for flow in job.flows:
                path = min(
                    flow.candidates,
                    key=lambda path: (
                        round(prices[list(path)].sum(), 9),
                        load[list(path)].max(),
                        load[list(path)].sum(),
                    ),
                )
                chosen[flow.key] = path
                load[list(path)] += seconds[flow.key] / durations_s[job.name]
        return [chosen[flow.key] for flow in self.flows]


def _candidates(source: int, destination: int) -> Paths:
    """Return a path over every spine, with its link up and its link down."""
    down = LEAVES * SPINES
    return Paths([(source * SPINES + spine, down + destination * SPINES + spine) for spine in range(SPINES)])
