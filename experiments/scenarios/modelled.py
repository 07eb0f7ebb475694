"""A scenario whose jobs play their task graphs under one Plan after another: a run without its controller.

The fluid model (``policies.model``) gives what ``trainyard run --on simulator`` gives once all jobs have arrived, much
faster. It knows one Plan, no events, no jitter, and no job that departs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from experiments.scenarios.connections import open_connections
from experiments.scenarios.in_process import InProcessController
from policies.arrays import FloatArray
from policies.baselines.ecmp import ecmp
from policies.flows import FlowGroup
from policies.job import Job
from policies.model.bundles import Bundles
from policies.model.playing_jobs import PlayingJobs
from policies.model.routed_flows import RoutedFlows
from policies.plan import Plan
from policies.snapshot import Snapshot
from topologies.ecmp import hash_multipliers
from topologies.fabric import Path
from topologies.routing import Routing
from topologies.steering import Steering
from workloads.jobs import TrainingJob, training_jobs
from workloads.measures import Window
from workloads.scenario import Scenario


@dataclass(frozen=True, slots=True, eq=False)
class ModelledScenario:
    """The jobs of a scenario, and the Snapshot of a controller once all have arrived.

    Attributes:
        jobs: The jobs, in order of their names.
        routing: The routing of their fabric.
        snapshot: What a controller knows.
        played: The jobs of the Snapshot as they are, whatever they have told: their bytes and their task graphs.
    """

    jobs: tuple[TrainingJob, ...]
    routing: Routing
    snapshot: Snapshot
    played: tuple[Job, ...]

    @classmethod
    def of(cls, scenario: Scenario) -> Self:
        """Register the jobs of a scenario. Raises ValueError where they do not fit."""
        fabric = scenario.topology.build()
        routing = Routing(fabric, hash_multipliers(fabric.switches, scenario.seed))
        jobs = training_jobs(scenario, fabric)
        return cls.of_jobs(jobs, routing, scenario.seed, scenario.steering, scenario.num_levels)

    @classmethod
    def of_jobs(
        cls,
        jobs: Sequence[TrainingJob],
        routing: Routing,
        seed: int,
        steering: Steering = Steering.RULE,
        num_levels: int = 8,
    ) -> Self:
        """Register jobs. Raises RegistrationError where the controller would refuse one."""
        connections = open_connections(jobs, routing.fabric)
        controller = InProcessController(routing, connections, ecmp, steering, seed, num_levels)
        for job in jobs:
            controller.register(job)
        snapshot, _ = controller.plan(0.0)
        by_name = {job.name: job for job in jobs}
        in_order = tuple(by_name[job.name] for job in snapshot.jobs)
        return cls(in_order, routing, snapshot, tuple(map(_played, in_order, snapshot.jobs)))

    def playing(self, plan: Plan) -> PlayingJobs:
        """Return the jobs on the paths and levels of a Plan, at time 0."""
        flows = [[(flow, plan.flows[flow.key]) for flow in job.flows] for job in self.played]
        classes = {(of.level, of.order): 0 for of_job in flows for _, of in of_job}
        for number, key in enumerate(classes):
            classes[key] = number
        routed = self.routed(
            range(len(self.played)),
            [[of.path or flow.hashed_path for flow, of in of_job] for of_job in flows],
            [[classes[of.level, of.order] for _, of in of_job] for of_job in flows],
        )
        levels, orders = np.array(list(classes), dtype=np.int64).reshape(-1, 2).T
        return self.starting(range(len(self.played)), routed, routed.bundles(levels, orders))

    def routed(
        self, jobs: Sequence[int], paths: Sequence[Sequence[Path]], classes: Sequence[Sequence[int]] | None = None
    ) -> RoutedFlows:
        """Return the flows of some jobs, by number, on these paths, in these classes."""
        fabric = self.routing.fabric
        delays_s = np.array([link.delay_s for link in fabric.links] + [0.0] * len(fabric.host_links))
        played = [self.played[job] for job in jobs]
        return RoutedFlows.of(played, paths, np.array(fabric.rates_bps), classes, delays_s)

    def starting(self, jobs: Sequence[int], routed: RoutedFlows, bundles: Bundles) -> PlayingJobs:
        """Return some jobs, by number, at time 0, with the bundles of their flows."""
        return PlayingJobs(
            [self.played[job].played_graph for job in jobs],
            np.array([self.jobs[job].specification.arrival_s for job in jobs]),
            routed.num_bundles,
            routed.size_bytes,
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


def _played(job: TrainingJob, registered: Job) -> Job:
    """Return a registered job with its true bytes and task graph."""
    groups = (
        FlowGroup(
            group.name,
            tuple(replace(flow, size_bytes=of.size_bytes) for flow, of in zip(group.flows, spec.flows, strict=True)),
        )
        for group, spec in zip(registered.flow_groups, job.graph.flow_groups, strict=True)
    )
    return replace(registered, flow_groups=tuple(groups), task_graph=job.played_graph)
