"""Takes Snapshots of the registry, on which policies decide."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import chain
from operator import is_
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from controller.planning.compressed_jobs import compressed_job
from controller.planning.ordinary_switches import choosable_paths, hashed_path
from controller.planning.scaled_graph import scaled_graph
from controller.profiling.measured import Measured, ProfilingResults
from controller.profiling.shares import PathShare
from controller.registry.jobs import RegisteredFlow, RegisteredJob
from controller.registry.registry import Registry
from policies.flows import Flow, FlowGroup, FlowKey
from policies.job import Job, Profile
from policies.plan import Plan
from policies.snapshot import Links, LinkState, OpenGroup, OrderKeeper, Snapshot
from topologies.addressing import FLOW_DESTINATION_PORT, UDP_PROTOCOL, FiveTuple
from topologies.fabric import Fabric, Path
from topologies.paths import Paths
from topologies.routing import Routing
from topologies.steering import Steering

if TYPE_CHECKING:
    # gRPC is slow to import, and decisions do not need it.
    from controller.telemetry.probed_paths import ProbedPaths


MEASURED_GROUP = "measured"
"""The flow group of the measured flows of a job."""
NOTHING_KNOWN = Profile(0.0, 0.0, 0.0)


class Snapshots:
    """Takes Snapshots of a registry on one fabric.

    Paths over dead links are no candidates of a flow; a flow without any other path is cut off. Where hosts probe,
    paths on which probes are lost are no candidates either, and the hashed path of a flow is the one that probes show.
    Where ordinary switches hash, a flow's candidates are the paths that it can be led along.
    A flow or a job that has not changed is the same object in the next Snapshot.

    Args:
        registry: The registered jobs.
        routing: The routing of the whole fabric.
        num_levels: The number of priority levels.
        seed: The seed of the policies' randomness.
        probed: The findings of probes; None: hosts do not probe.
        profiling: The measurements of jobs that report no profile; None: there are none.
        steering: The means by which flows leave the path of the hash.
    """

    def __init__(
        self,
        registry: Registry,
        routing: Routing,
        num_levels: int,
        seed: int,
        probed: "ProbedPaths | None" = None,
        profiling: ProfilingResults | None = None,
        steering: Steering = Steering.RULE,
    ) -> None:
        self._registry = registry
        self._whole = self._routing = routing
        self.num_levels = num_levels
        self._seed = seed
        self._probed = probed
        self._profiling = profiling or ProfilingResults()
        self._steering = steering
        self._probed_version: tuple[int, int] | None = None
        self._links = link_states(routing.fabric)
        # Weak: an entry lives as long as a job uses it.
        self._paths: WeakValueDictionary[tuple[int, int], Paths] = WeakValueDictionary()
        """All paths that routing allows between two NICs, by their addresses."""
        self._candidates: WeakValueDictionary[tuple[int, int, frozenset[Path]], Paths] = WeakValueDictionary()
        """The paths of these that are neither lost nor over ``_silent`` links; all, where there is no other."""
        self._silent: frozenset[int] = frozenset()
        self._jobs: dict[str, tuple[RegisteredJob, Measured | None, Job]] = {}
        """Jobs as they would send uncompressed."""
        self._compressed: dict[str, tuple[Job, Mapping[str, int], Job]] = {}
        """Of jobs that compress: that job, what its flow groups send now, and the job that sends it."""

    def use(self, num_levels: int, seed: int) -> None:
        """Take Snapshots with this number of levels and this seed from now on."""
        self.num_levels, self._seed = num_levels, seed

    def take(self, time_s: float, previous: Plan | None, routing: Routing | None = None) -> Snapshot:
        """Take a Snapshot at ``time_s`` with the Plan in force; ``routing`` is set where links are dead."""
        probed, routing = self._probed, routing or self._whole
        version = None if probed is None else probed.version
        if not routing.is_same_as(self._routing):
            self._routing = routing
            for cache in (self._paths, self._candidates, self._jobs, self._compressed):
                cache.clear()
        probes_changed = version != self._probed_version
        self._probed_version = version
        silent = frozenset() if probed is None else probed.silent_links
        if silent != self._silent:
            self._silent = silent
            self._candidates.clear()
        # Jobs are immutable: one that has not changed is reused.
        known, self._jobs = self._jobs, {}
        for job in self._registry.jobs:
            name = job.request.name
            seen, measured = known.get(name), self._profiling.measured(name)
            if seen is None or seen[0] is not job or seen[1] is not measured:
                seen = job, measured, self._job(job, measured, time_s)
            elif probes_changed:
                seen = job, measured, self._job(job, measured, time_s, seen[2])
            self._jobs[name] = seen
        compressed, self._compressed = self._compressed, {}
        jobs = tuple(self._as_sent(job, compressed.get(job.name)) for _, _, job in self._jobs.values())
        profiled = self._profiling.profiled
        return Snapshot(
            time_s=time_s,
            links=self._links,
            jobs=jobs,
            num_levels=self.num_levels if profiled is None else max(1, self.num_levels - 1),
            open_groups=tuple(chain.from_iterable(map(self._open_groups, jobs))),
            foreign_loads_bps={} if probed is None else probed.foreign_loads_bps(time_s),
            previous=previous,
            seed=self._seed,
            profiled=profiled,
        )

    def _as_sent(self, job: Job, known: tuple[Job, Mapping[str, int], Job] | None) -> Job:
        sent = self._registry.sent_bytes(job.name)
        if not sent:
            return job
        if known is None or known[0] is not job or known[1] != sent:
            known = job, sent, compressed_job(job, sent, self._links.rates_bps)
        self._compressed[job.name] = known
        return known[2]

    def _open_groups(self, job: Job) -> Iterator[OpenGroup]:
        instances = self._registry.instances(job.name)
        for group in job.flow_groups if instances else ():
            newest = instances.get(group.name)
            if newest is not None and not newest.has_ended:
                size_bytes = sum(flow.size_bytes for flow in group.flows)
                yield OpenGroup(job.name, group.name, newest.iteration, newest.reference_s, size_bytes)

    def _job(self, job: RegisteredJob, measured: Measured | None, time_s: float, before: Job | None = None) -> Job:
        """Make a job of the Snapshot, reusing the unchanged flows of the one ``before``."""
        request = job.request
        if request.profile is None:
            return before or measured_job(job, measured, self._routing)
        flows_before = iter(() if before is None else before.flows)
        groups = tuple(
            FlowGroup(
                group.name,
                tuple(
                    self._flow(FlowKey(request.name, group.name, number), flow, time_s, next(flows_before, None))
                    for number, flow in enumerate(group.flows)
                ),
            )
            for group in job.flow_groups
        )
        seen = chain.from_iterable(group.flows for group in groups)
        if before is not None and all(map(is_, seen, before.flows)):
            return before
        graph = scaled_graph(job.task_graph, request.profile.compute_s) if before is None else before.task_graph
        return Job(request.name, job.arrival_s, request.gpus, request.profile, groups, task_graph=graph)

    def _flow(self, key: FlowKey, flow: RegisteredFlow, time_s: float, before: Flow | None) -> Flow:
        five_tuple = flow.five_tuple
        candidates = self._live_paths(flow)
        is_cut_off = not candidates
        shown = None if self._probed is None or is_cut_off else self._probed.hashed_path(five_tuple, time_s)
        if shown is not None and not self._routing.dead.isdisjoint(shown):
            shown = None
        seen: Path | None = None
        if self._routing.fabric.ordinary_switches and not is_cut_off:
            seen = None if self._probed is None else self._probed.seen_path(five_tuple, time_s)
            candidates = choosable_paths(
                candidates, five_tuple, self._routing, seen, partial(self._has_port, flow, time_s)
            )
            if before is not None and before.candidates == candidates:
                candidates = before.candidates
        hashed = shown
        if hashed is None and seen is not None:
            hashed = hashed_path(five_tuple, self._routing, seen)
        if before is not None and _is_unchanged(before, candidates, shown) and hashed in (shown, before.hashed_path):
            return before
        routing = self._whole if is_cut_off else self._routing
        return Flow(
            key,
            five_tuple,
            flow.size_bytes,
            flow.offset_s,
            Paths(routing.candidate_paths(flow.source, flow.destination)) if is_cut_off else candidates,
            hashed or routing.hashed_path(five_tuple),
            routing.fabric.host_links_between(flow.source, flow.destination),
            flow.is_assigned,
            is_hash_probed=shown is not None,
            is_cut_off=is_cut_off,
        )

    def _has_port(self, flow: RegisteredFlow, time_s: float, path: Path) -> bool:
        """Whether probes know a source port along a path, for a flow whose port may change."""
        return (
            flow.is_assigned
            and self._steering is Steering.SOURCE_PORT
            and self._probed is not None
            and self._probed.has_port(flow.five_tuple, path, time_s)
        )

    def _live_paths(self, flow: RegisteredFlow) -> Paths:
        """The paths that routing allows, without those on which probes are lost, unless all are."""
        pair = flow.source.address, flow.destination.address
        lost = frozenset[Path]() if self._probed is None else self._probed.black_holes(flow.five_tuple)
        candidates = self._candidates.get((*pair, lost))
        if candidates is None:
            paths = self._paths.get(pair)
            if paths is None:
                paths = self._paths[pair] = Paths(self._routing.candidate_paths(flow.source, flow.destination))
            live: tuple[Path, ...] = ()
            if self._silent or lost:
                live = tuple(path for path in paths if self._silent.isdisjoint(path) and path not in lost)
            candidates = self._candidates[*pair, lost] = Paths(live) if 0 < len(live) < len(paths) else paths
        return candidates


def _is_unchanged(flow: Flow, candidates: Paths, shown: Path | None) -> bool:
    """Whether a flow has these candidates and this probed path already, on the same fabric."""
    return flow.is_cut_off or (
        flow.candidates == candidates and shown == (flow.hashed_path if flow.is_hash_probed else None)
    )


def measured_job(job: RegisteredJob, measured: Measured | None, routing: Routing) -> Job:
    """Make a job that reports no profile: its flows and paths are the measured ones.

    Traffic measured on a link that is dead now is spread over the paths that are left.
    """
    request = job.request
    shares = () if measured is None else measured.shares
    flows = tuple(
        Flow(
            FlowKey(request.name, MEASURED_GROUP, number),
            FiveTuple(share.source.address, share.destination.address, UDP_PROTOCOL, 0, FLOW_DESTINATION_PORT),
            share.size_bytes,
            0.0,
            Paths((share.path,)),
            share.path,
            routing.fabric.host_links_between(share.source, share.destination),
        )
        for number, share in enumerate(chain.from_iterable(_live(share, routing) for share in shares))
    )
    profile = NOTHING_KNOWN if measured is None else measured.profile(request.gpus)
    groups = (FlowGroup(MEASURED_GROUP, flows),) if flows else ()
    return Job(request.name, job.arrival_s, request.gpus, profile, groups, request.hosts)


def _live(share: PathShare, routing: Routing) -> tuple[PathShare, ...]:
    if routing.dead.isdisjoint(share.path):
        return (share,)
    paths = routing.candidate_paths(share.source, share.destination)
    return tuple(replace(share, path=path, size_bytes=share.size_bytes / len(paths)) for path in paths)


def link_states(fabric: Fabric) -> Links:
    """The links with what orders their flows: the host for links inside it and out of it, else switch queues."""
    between = (
        LinkState(link.rate_bps, OrderKeeper.HOST if link.source in fabric.host_index else OrderKeeper.SWITCH_QUEUE)
        for link in fabric.links
    )
    return Links((*between, *(LinkState(link.rate_bps, OrderKeeper.HOST) for link in fabric.host_links)))
