"""Small cases, and all their settings run one by one on the whole fabric: nothing is cut, joined or remembered."""

from dataclasses import replace
from itertools import permutations, product
from math import fsum

import numpy as np

from experiments.papers.microbench.cases import MEASURED_ITERATIONS, NUM_LEVELS, Case, draw_case
from experiments.papers.microbench.components import Choice, choices
from policies.model.bundles import Bundles
from policies.model.picoseconds import PS_PER_S
from policies.rates.network import Network
from simulator.iterating_jobs import IteratingJobs, Iterations
from workloads.scenario import MeasureWindow

Levels = tuple[int, ...]


def small_case(seed: int, num_jobs: int, iterations: int = 20) -> Case:
    """The first jobs of a case, with a shorter window."""
    case = draw_case(seed, 2.5)
    longest_s = (case.window.to_s - case.window.from_s) / MEASURED_ITERATIONS
    shorter = MeasureWindow(from_s=2 * longest_s, to_s=(2 + iterations) * longest_s)
    scenario = case.scenario.model_copy(update={"measure": shorter})
    return replace(case, scenario=scenario, snapshot=replace(case.snapshot, jobs=case.snapshot.jobs[:num_jobs]))


def computed(case: Case, choice: Choice, levels: Levels) -> float:
    """GPU-seconds of computation in the window, all flows on all their links."""
    jobs, window = case.snapshot.jobs, case.window
    flows = [flow for job in jobs for flow in job.flows]
    level = np.repeat(levels, [len(job.flows) for job in jobs]).astype(np.int64)
    paths = [tuple(flow.candidates[candidate]) for flow, candidate in zip(flows, choice, strict=True)]
    ones, none = np.ones(len(flows)), np.zeros(len(flows), dtype=np.int64)
    iterations = Iterations.of(
        np.array([job.profile.compute_s for job in jobs]),
        np.array([job.profile.comm_start for job in jobs]),
        np.array([job.arrival_s for job in jobs]),
        np.array([len(job.flows) for job in jobs]),
        np.array([flow.size_bytes for flow in flows]),
    )
    run = IteratingJobs(
        iterations, Bundles(Network.of(case.snapshot.links.rates_bps, paths), ones, -level, level, none)
    )
    run.run(round(window.from_s * PS_PER_S))
    before_ps = run.computed_ps
    run.run(round(window.to_s * PS_PER_S))
    return fsum((np.array([job.gpus for job in jobs]) * (run.computed_ps - before_ps) / PS_PER_S).tolist())


class Enumerated:
    """Every setting of a case with what it gives."""

    def __init__(self, case: Case) -> None:
        self.jobs = range(len(case.snapshot.jobs))
        self.given = {
            (choice, levels): computed(case, choice, levels)
            for choice in choices(case.snapshot)
            for levels in product(range(NUM_LEVELS), repeat=len(self.jobs))
        }
        self.best = max(self.given.values())
        self._meets = {choice: _meeting(case, choice) for choice, _ in self.given}

    def of_paths(self, choice: Choice) -> float:
        return max(value for (other, _), value in self.given.items() if other == choice)

    def worst_paths(self) -> float:
        return min(self.of_paths(choice) for choice in self._meets)

    def compressions(self, choice: Choice, order: tuple[int, ...]) -> list[float]:
        """What all compressions of an order give: of two that meet the earlier never has the lower level."""
        return [
            value
            for (other, levels), value in self.given.items()
            if other == choice
            and all(
                levels[one] >= levels[two]
                for place, one in enumerate(order)
                for two in order[place + 1 :]
                if frozenset((one, two)) in self._meets[choice]
            )
        ]

    def worst_order(self, choice: Choice) -> float:
        return min(max(self.compressions(choice, order)) for order in permutations(self.jobs))


def _meeting(case: Case, choice: Choice) -> set[frozenset[int]]:
    """Pairs of jobs that share a link."""
    chosen = iter(choice)
    links = [{link for flow in job.flows for link in flow.candidates[next(chosen)]} for job in case.snapshot.jobs]
    return {frozenset((one, two)) for one in range(len(links)) for two in range(one) if links[one] & links[two]}
