"""A scenario whose jobs play their task graphs under one Plan after another: a run without its controller.

The fluid model (``policies.model``) gives what ``trainyard run --on simulator`` gives once all jobs have arrived, much
faster. It knows one Plan, no events, no jitter, and no job that departs.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from experiments.scenarios.connections import open_connections
from experiments.scenarios.in_process import InProcessController
from experiments.scenarios.routes import Route, network_of, routes_of
from policies.baselines.ecmp import ecmp
from policies.enforcement import Tiers
from policies.flows import FlowKey
from policies.model.bundles import Bundles
from policies.model.picoseconds import PS_PER_S
from policies.model.playing_jobs import PlayingJobs
from policies.plan import Plan
from policies.rates.network import FloatArray
from policies.snapshot import Snapshot
from topologies.ecmp import hash_multipliers
from topologies.routing import Routing
from workloads import task_graph
from workloads.jobs import TrainingJob, training_jobs
from workloads.measures import Window
from workloads.scenario import Scenario


@dataclass(frozen=True, slots=True, eq=False)
class ModelledScenario:
    """The jobs of a scenario, and the Snapshot of a controller once all have arrived."""

    jobs: tuple[TrainingJob, ...]
    routing: Routing
    snapshot: Snapshot

    @classmethod
    def of(cls, scenario: Scenario) -> Self:
        """Register the jobs of a scenario. Raises ValueError where they do not fit."""
        fabric = scenario.topology.build()
        routing = Routing(fabric, hash_multipliers(fabric.switches, scenario.seed))
        jobs = training_jobs(scenario, fabric)
        connections = open_connections(jobs, fabric)
        controller = InProcessController(
            routing, connections, ecmp, scenario.steering, scenario.seed, scenario.num_levels
        )
        for job in jobs:
            controller.register(job)
        snapshot, _ = controller.plan(0.0)
        return cls(jobs, routing, snapshot)

    def playing(self, plan: Plan) -> PlayingJobs:
        """Return the jobs on the paths and levels of a Plan, at time 0."""
        routes = routes_of(self.snapshot, plan, Tiers.LEVELS)
        fabric = self.routing.fabric
        delays_s = np.array([link.delay_s for link in fabric.links] + [0.0] * len(fabric.host_links))
        num_bundles: list[int] = []
        weights: list[int] = []
        sizes: list[float] = []
        taken: list[Route] = []
        for job in self.jobs:
            for task in job.graph.tasks:
                if isinstance(task, task_graph.GroupTransfer):
                    alike = _alike(job, task, routes)
                    num_bundles.append(len(alike))
                    for (route, size_bytes), number in alike.items():
                        taken.append(route)
                        weights.append(number)
                        sizes.append(size_bytes * number)
        latencies_ps = [round(delays_s[list(route.path)].sum() * PS_PER_S) for route in taken]
        bundles = Bundles(
            network_of(fabric, taken),
            weights=np.array(weights, dtype=np.float64),
            tiers=np.array([route.tier for route in taken], dtype=np.int64),
            levels=np.array([route.level for route in taken], dtype=np.int64),
            latency_ps=np.array(latencies_ps, dtype=np.int64),
        )
        return PlayingJobs(
            [job.reported_graph for job in self.jobs],
            np.array([job.specification.arrival_s for job in self.jobs]),
            np.array(num_bundles, dtype=np.int64),
            np.array(sizes, dtype=np.float64),
            bundles,
        )

    def iterations(self, plan: Plan, window: Window) -> FloatArray:
        """Return by job how many iterations it does in a window under a Plan."""
        playing = self.playing(plan)
        playing.run(window.to_s)
        return playing.iterations_between(window.from_s, window.to_s)

    def gpu_utilisation(self, plan: Plan, window: Window) -> float:
        """Return the GPU utilisation in a window under a Plan."""
        return self.utilisation_of(self.iterations(plan, window), window)

    def utilisation_of(self, iterations: FloatArray, window: Window) -> float:
        """Return the GPU utilisation of so many iterations by job; all jobs hold their GPUs for the whole window."""
        work = np.array([job.computing_gpu_seconds for job in self.jobs])
        allocated = sum(job.gpus for job in self.jobs) * window.length_s
        return float(iterations @ work) / allocated


def _alike(
    job: TrainingJob, transfer: task_graph.GroupTransfer, routes: dict[FlowKey, Route]
) -> dict[tuple[Route, float], int]:
    """Return how many flows of a transfer go the same way with the same bytes; those without bytes are left out."""
    sizes: Sequence[float] = next(
        [flow.size_bytes for flow in group.flows] for group in job.graph.flow_groups if group.name == transfer.group
    )
    alike: defaultdict[tuple[Route, float], int] = defaultdict(int)
    for flow in job.graph.flows_of(transfer):
        if sizes[flow] > 0:
            alike[routes[FlowKey(job.name, transfer.group, flow)], sizes[flow]] += 1
    return alike
