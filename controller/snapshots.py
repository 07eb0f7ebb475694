"""From the registry to the Snapshot that a policy decides on."""

from collections.abc import Iterator
from itertools import chain

from controller.policy.plan import Plan
from controller.policy.snapshot import (
    Flow,
    FlowGroup,
    FlowKey,
    Job,
    Links,
    LinkState,
    OpenGroup,
    OrderKeeper,
    Snapshot,
)
from controller.registration import RegisteredFlow, RegisteredJob
from controller.registry import Registry
from topologies.fabric import Fabric
from topologies.paths import Paths
from topologies.routing import Routing


class Snapshots:
    """Takes Snapshots of a registry on one fabric; ``seed`` is all the randomness that policies get."""

    def __init__(self, registry: Registry, routing: Routing, num_levels: int, seed: int) -> None:
        self._registry = registry
        self._routing = routing
        self._num_levels = num_levels
        self._seed = seed
        self._links = link_states(routing.fabric)
        self._candidates: dict[tuple[int, int], Paths] = {}
        self._jobs: dict[str, tuple[RegisteredJob, Job]] = {}

    def take(self, time_s: float, previous: Plan | None) -> Snapshot:
        """The state at ``time_s``, with the Plan in force."""
        # Jobs are immutable: one that has not changed is seen as before.
        known, self._jobs = self._jobs, {}
        for job in self._registry.jobs:
            name = job.request.name
            seen = known.get(name)
            self._jobs[name] = seen if seen is not None and seen[0] is job else (job, self._job(job))
        return Snapshot(
            time_s=time_s,
            links=self._links,
            jobs=tuple(job for _, job in self._jobs.values()),
            num_levels=self._num_levels,
            open_groups=tuple(chain.from_iterable(self._open_groups(job) for _, job in self._jobs.values())),
            previous=previous,
            seed=self._seed,
        )

    def _open_groups(self, job: Job) -> Iterator[OpenGroup]:
        instances = self._registry.instances(job.name)
        for group in job.flow_groups if instances else ():
            newest = instances.get(group.name)
            if newest is not None and not newest.has_ended:
                size_bytes = sum(flow.size_bytes for flow in group.flows)
                yield OpenGroup(job.name, group.name, newest.iteration, newest.reference_s, size_bytes)

    def _job(self, job: RegisteredJob) -> Job:
        request = job.request
        groups = tuple(
            FlowGroup(
                group.name,
                tuple(
                    self._flow(FlowKey(request.name, group.name, number), flow)
                    for number, flow in enumerate(group.flows)
                ),
            )
            for group in job.flow_groups
        )
        return Job(request.name, job.arrival_s, request.gpus, request.profile, groups)

    def _flow(self, key: FlowKey, flow: RegisteredFlow) -> Flow:
        ends = (flow.source.address, flow.destination.address)
        if ends not in self._candidates:
            self._candidates[ends] = Paths(self._routing.candidate_paths(flow.source, flow.destination))
        return Flow(
            key,
            flow.five_tuple,
            flow.size_bytes,
            flow.offset_s,
            self._candidates[ends],
            self._routing.hashed_path(flow.five_tuple),
            self._routing.fabric.host_links_between(flow.source, flow.destination),
            flow.is_assigned,
        )


def link_states(fabric: Fabric) -> Links:
    """Links with what keeps the order of flows there: the host on those inside it or out of it, else switch queues."""
    between = (
        LinkState(link.rate_bps, OrderKeeper.HOST if link.source in fabric.host_index else OrderKeeper.SWITCH_QUEUE)
        for link in fabric.links
    )
    return Links((*between, *(LinkState(link.rate_bps, OrderKeeper.HOST) for link in fabric.host_links)))
