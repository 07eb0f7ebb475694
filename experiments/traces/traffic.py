"""The jobs of a trace that send: by which ways the policy's plans lead them, and when the next of them is done."""

from collections import Counter
from functools import partial

import numpy as np

from experiments.scenarios.connections import Connections, open_connections
from experiments.scenarios.in_process import InProcessController
from experiments.scenarios.routes import tiers_of_levels
from experiments.traces.component import Component, Passed
from experiments.traces.joining import joined
from experiments.traces.network_job import NetworkJob
from experiments.traces.steadiness import SkipOptions
from policies.jit import Kernel
from policies.policy import Policy, decide
from simulator.fluid import PS_PER_S
from topologies.ecmp import hash_multipliers
from topologies.fabric import Fabric
from topologies.routing import Routing
from topologies.steering import Steering
from workloads.expansion import PHASES_GROUP
from workloads.schedulers.cluster import Allocation
from workloads.traces.simulated_jobs import SimulatedJob, placed_job


class TraceTraffic:
    """Jobs under way, in components of those that share links.

    A job begins on the hash's paths and on level 0, until a Plan that knows it is in force.
    """

    def __init__(self, fabric: Fabric, policy: Policy, seed: int, skip: SkipOptions) -> None:
        Kernel.compile_all()
        self._routing = Routing(fabric, hash_multipliers(fabric.switches, seed))
        self._opened: Counter[tuple[int, int]] = Counter()
        self._connections: Connections = {}
        self._controller = InProcessController(
            self._routing, self._connections, partial(decide, policy), Steering.RULE, seed
        )
        self._skip = skip
        self._capacities_bps = np.array(fabric.rates_bps)
        self._delays_s = np.array([link.delay_s for link in fabric.links] + [0.0] * len(fabric.host_links))
        self._jobs: dict[str, NetworkJob] = {}
        self._arrived: list[NetworkJob] = []
        self._departed: list[tuple[int, NetworkJob]] = []
        self._components: list[Component] = []
        self._has_changed = False
        self.num_components = 0

    def begin(self, simulated: SimulatedJob, allocation: Allocation, now_ps: int, shared: int = 0) -> NetworkJob:
        """Let a job begin on its GPUs; ``regroup`` before time goes on.

        With those of the same number ``shared`` it computes in turns; 0: it has its GPUs to itself.
        """
        fabric = self._routing.fabric
        training = placed_job(simulated, allocation, fabric, now_ps / PS_PER_S)
        self._connections |= open_connections([training], fabric, self._opened)
        five_tuples = self._connections[training.name][PHASES_GROUP]
        hashed = [self._routing.hashed_path(five_tuple) for five_tuple in five_tuples]
        nics = fabric.nic_by_address
        inside = [
            fabric.host_links_between(nics[ends.source_address], nics[ends.destination_address]) for ends in five_tuples
        ]
        job = NetworkJob(simulated, training, now_ps, hashed, inside, self._delays_s, shared)
        self._jobs[job.name] = job
        self._arrived.append(job)
        self._has_changed = True
        return job

    def take_done(self, now_ps: int) -> list[NetworkJob]:
        """Take out the jobs whose work is done now; ``regroup`` before time goes on."""
        done = [job for component in self._components for job in component.done(now_ps)]
        for job in done:
            self.take_out(job.name, now_ps)
        return done

    def take_out(self, name: str, now_ps: int) -> None:
        """Take out a job, done or not; ``regroup`` before time goes on."""
        self._departed.append((now_ps, self._jobs.pop(name)))
        self._has_changed = True

    def plan(self, now_ps: int, known_until_ps: int) -> None:
        """Decide for the jobs that had arrived, and had not departed, at a time; ``regroup`` before time goes on."""
        for job in [job for job in self._arrived if job.start_ps <= known_until_ps]:
            self._controller.register(job.training)
            self._arrived.remove(job)
        for gone in [gone for gone in self._departed if gone[0] <= known_until_ps]:
            self._controller.deregister(gone[1].name)
            del self._connections[gone[1].name]
            self._departed.remove(gone)
        snapshot, plan = self._controller.plan(now_ps / PS_PER_S)
        jobs = [self._jobs[job.name] for job in snapshot.jobs if job.name in self._jobs]
        plans = [plan.flows[key] for job in jobs for key in job.keys]
        none = np.zeros(0, dtype=np.int64)
        tiers = tiers_of_levels(plans, np.concatenate([none, *(job.ways_out for job in jobs)]))
        first = 0
        for job in jobs:
            flows = slice(first, first + len(job.keys))
            job.follow(plans[flows], tiers[flows])
            first += len(job.keys)
        for decided in plan.jobs:
            if decided.name in self._jobs:
                self._jobs[decided.name].keep_rhythm(decided.time_shift_s)

    def regroup(self, now_ps: int) -> list[Passed]:
        """Join the jobs by their links and GPUs; those that go as before, with the same others, stay as they are."""
        if not self._has_changed and all(component.goes_on for component in self._components):
            return []
        self._has_changed = False
        before = {component.jobs: component for component in self._components}
        groups = joined(list(self._jobs.values()))
        kept = {group: before[group] for group in groups if group in before and before[group].goes_on}
        passed = [component.settle(now_ps) for group, component in before.items() if group not in kept]
        self._components = [kept.get(group) or self._component(group, now_ps) for group in groups]
        return passed

    def settle(self, now_ps: int) -> list[Passed]:
        """Bring all jobs to a time; they are at an end then."""
        passed = [component.settle(now_ps) for component in self._components]
        self._components = []
        return passed

    def next_done_ps(self, until_ps: int) -> int:
        """When the next job is done, or ``until_ps`` where that is later."""
        for component in self._components:
            component.look_ahead(until_ps)
            until_ps = min(until_ps, component.departure_ps)
        return until_ps

    def _component(self, jobs: tuple[NetworkJob, ...], now_ps: int) -> Component:
        self.num_components += 1
        return Component(jobs, self._capacities_bps, now_ps, self._skip)
