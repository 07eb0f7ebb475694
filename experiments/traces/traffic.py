"""The jobs of a trace that send: their routes under the policy's Plans, and when the next of them is done."""

from collections import Counter
from functools import partial

import numpy as np

from experiments.scenarios.connections import Connections, open_connections
from experiments.scenarios.in_process import InProcessController
from experiments.traces.component import ComponentProgress, ContentionComponent, contention_components
from experiments.traces.network_job import NetworkJob
from experiments.traces.steady_state import SkipOptions
from policies.jit import Kernel
from policies.model.picoseconds import PS_PER_S
from policies.model.tiers import tiers_and_places
from policies.policy import Policy, decide
from topologies.ecmp import hash_multipliers
from topologies.fabric import Fabric
from topologies.routing import Routing
from topologies.steering import Steering
from workloads.expansion import PHASES_GROUP
from workloads.schedulers.cluster import Allocation
from workloads.traces.simulated_jobs import SimulatedJob, placed_job


class TraceTraffic:
    """The jobs under way, simulated by contention component.

    A job begins on the hash's paths and on level 0, until a Plan for it is in force. After jobs began, were removed or
    got a Plan, call ``regroup`` before time goes on.
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
        self._components: list[ContentionComponent] = []
        self._has_changed = False
        self.num_components = 0

    def begin(self, simulated: SimulatedJob, allocation: Allocation, now_ps: int, shared: int = 0) -> NetworkJob:
        """Start a job on its GPUs; jobs with the same number ``shared`` other than 0 take turns on these."""
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

    def pop_done(self, now_ps: int) -> list[NetworkJob]:
        """Remove and return the jobs that are done now."""
        done = [job for component in self._components for job in component.done(now_ps)]
        for job in done:
            self.remove(job.name, now_ps)
        return done

    def remove(self, name: str, now_ps: int) -> None:
        """Remove a job, done or not."""
        self._departed.append((now_ps, self._jobs.pop(name)))
        self._has_changed = True

    def plan(self, now_ps: int, known_until_ps: int) -> None:
        """Decide for the jobs that had arrived, and had not departed, at ``known_until_ps``."""
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
        levels = np.array([of.level for of in plans], dtype=np.int64)
        orders = np.array([of.order for of in plans], dtype=np.int64)
        first_links = np.concatenate([none, *(job.first_links for job in jobs)])
        tiers, places = tiers_and_places(levels, orders, first_links)
        first = 0
        for job in jobs:
            flows = slice(first, first + len(job.keys))
            job.apply_plan(plans[flows], tiers[flows], places[flows])
            first += len(job.keys)
        for decided in plan.jobs:
            if decided.name in self._jobs:
                self._jobs[decided.name].set_time_shift(decided.time_shift_s)

    def regroup(self, now_ps: int) -> list[ComponentProgress]:
        """Form components again where jobs, routes or time shifts have changed; return the progress of the old ones."""
        if not self._has_changed and all(component.is_valid for component in self._components):
            return []
        self._has_changed = False
        before = {component.jobs: component for component in self._components}
        groups = contention_components(list(self._jobs.values()))
        kept = {group: before[group] for group in groups if group in before and before[group].is_valid}
        progress = [component.settle(now_ps) for group, component in before.items() if group not in kept]
        self._components = [kept.get(group) or self._component(group, now_ps) for group in groups]
        return progress

    def settle(self, now_ps: int) -> list[ComponentProgress]:
        """Bring all jobs to a time; nothing can be simulated afterwards."""
        progress = [component.settle(now_ps) for component in self._components]
        self._components = []
        return progress

    def next_done_ps(self, until_ps: int) -> int:
        """Return when the next job is done, or ``until_ps`` where that comes first."""
        for component in self._components:
            component.look_ahead(until_ps)
            until_ps = min(until_ps, component.departure_ps)
        return until_ps

    def _component(self, jobs: tuple[NetworkJob, ...], now_ps: int) -> ContentionComponent:
        self.num_components += 1
        return ContentionComponent(jobs, self._capacities_bps, now_ps, self._skip)
