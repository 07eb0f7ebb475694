"""Snapshots as facts, and back."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict

from controller.config import ControllerConfig
from controller.planning.snapshots import link_states
from controller.record.facts import Body, FactKey, FactKind
from policies.flows import Flow, FlowGroup, FlowKey
from policies.job import Job
from policies.profile import Profile
from policies.snapshot import Links, OpenGroup, Snapshot
from topologies.addressing import FiveTuple
from topologies.ecmp import hash_multipliers
from topologies.fabric import Nic, Path
from topologies.paths import Paths
from topologies.routing import Routing
from topologies.specification import Topology

OPEN_GROUPS = FactKey(FactKind.OPEN_GROUPS, "")
FOREIGN_LOADS = FactKey(FactKind.FOREIGN_LOADS, "")
PROFILED = FactKey(FactKind.PROFILED, "")
CONTROLLER = FactKey(FactKind.CONTROLLER, "")


class Setting(BaseModel):
    """The configuration that decisions depend on."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    topology: Topology
    hash_seed: int
    policy: str  # a name or an import string, whether or not it is known here
    num_levels: int
    seed: int

    @classmethod
    def of(cls, config: ControllerConfig) -> "Setting":
        """That of a controller."""
        return cls(
            topology=config.topology,
            hash_seed=config.hash_seed,
            policy=config.policy,
            num_levels=config.num_levels,
            seed=config.seed,
        )

    def differing(self, recorded: Body) -> list[str]:
        """The keys that are recorded otherwise."""
        return [name for name, value in self.model_dump(mode="json").items() if recorded.get(name) != value]

    def routing(self) -> Routing:
        """The fabric, routed as decisions see it."""
        fabric = self.topology.build()
        return Routing(fabric, hash_multipliers(fabric.switches, self.hash_seed))


class SnapshotFacts:
    """Between Snapshots on one fabric and facts."""

    def __init__(self, setting: Setting, routing: Routing) -> None:
        self.setting = setting
        self.fabric = routing.fabric
        self._routing = routing
        self._known_shortest: dict[tuple[str, str], tuple[int, int]] = {}
        self._links: Links = link_states(routing.fabric)

    def job_body(self, job: Job) -> Body:
        """A job; paths between two NICs are told where they are not all that the topology allows."""
        profile = job.profile
        groups = []
        told: dict[int, list[Path] | None] = {}
        numbers: dict[int, int] = {}
        for group in job.flow_groups:
            flows = []
            for flow in group.flows:
                number = numbers.setdefault(id(flow.candidates), len(numbers))
                if number not in told:
                    told[number] = None if self._is_all(flow) else list(flow.candidates)
                flows.append(_flow_body(flow, number))
            groups.append([group.name, flows])
        return {
            "arrival_s": job.arrival_s,
            "gpus": job.gpus,
            "profile": [profile.compute_s, profile.comm_start, profile.work],
            "candidates": list(told.values()),
            "groups": groups,
            "measured_hosts": list(job.measured_hosts),
        }

    def job(self, name: str, body: Mapping[str, Any]) -> Job:
        """The job that ``job_body`` has told."""
        candidates: dict[tuple[int, int, int], Paths] = {}
        groups = []
        for group, flows in body["groups"]:
            keys = (FlowKey(name, group, number) for number in range(len(flows)))
            made = [
                self._flow(key, flow, body["candidates"], candidates) for key, flow in zip(keys, flows, strict=True)
            ]
            groups.append(FlowGroup(group, tuple(made)))
        return Job(
            name,
            body["arrival_s"],
            body["gpus"],
            Profile(*body["profile"]),
            tuple(groups),
            tuple(body["measured_hosts"]),
        )

    def snapshot(
        self, time_s: float, jobs: Sequence[Job], open_groups: Body, foreign_loads: Body, profiled: str | None
    ) -> Snapshot:
        """A Snapshot without a Plan before it."""
        return Snapshot(
            time_s=time_s,
            links=self._links,
            jobs=tuple(sorted(jobs, key=lambda job: job.name)),
            num_levels=self.setting.num_levels - (profiled is not None),
            open_groups=tuple(OpenGroup(*group) for group in open_groups or ()),
            foreign_loads_bps={int(link): load_bps for link, load_bps in (foreign_loads or {}).items()},
            seed=self.setting.seed,
            profiled=profiled,
        )

    def _is_all(self, flow: Flow) -> bool:
        """Whether no path is missing: as short as the topology's, these are among them, and their number tells."""
        nics, links = self.fabric.nic_by_address, self.fabric.links
        source, destination = nics[flow.five_tuple.source_address], nics[flow.five_tuple.destination_address]
        number, num_links = self._shortest_paths(links[source.link].destination, destination)
        paths = flow.candidates
        return len(paths) == number and paths.links.shape[1] == 1 + num_links

    def _shortest_paths(self, switch: str, destination: Nic) -> tuple[int, int]:
        """How many paths lead from a switch to a NIC, of how many links; the same for all NICs of a switch."""
        links = self.fabric.links
        attachment = links[destination.link].destination
        if switch == attachment:
            return 1, 1
        known = self._known_shortest.get((switch, attachment))
        if known is None:
            nexts = self._routing.next_links(switch, destination)
            further = [self._shortest_paths(links[link].destination, destination) for link in nexts]
            known = sum(number for number, _ in further), 1 + min(num_links for _, num_links in further)
            self._known_shortest[switch, attachment] = known
        return known

    def _flow(
        self,
        key: FlowKey,
        body: Sequence[Any],
        told: Sequence[Sequence[Sequence[int]] | None],
        known: dict[tuple[int, int, int], Paths],
    ) -> Flow:
        *packet, size_bytes, offset_s, hashed_path, is_assigned, is_hash_probed, is_cut_off, number = body
        five_tuple = FiveTuple(*packet)
        fabric = self._routing.fabric
        source, destination = (
            fabric.nic_by_address[address] for address in (five_tuple.source_address, five_tuple.destination_address)
        )
        ends = (five_tuple.source_address, five_tuple.destination_address, number)
        if ends not in known:
            paths = told[number]
            known[ends] = Paths(
                self._routing.candidate_paths(source, destination) if paths is None else map(tuple, paths)
            )
        return Flow(
            key,
            five_tuple,
            size_bytes,
            offset_s,
            known[ends],
            tuple(hashed_path),
            fabric.host_links_between(source, destination),
            is_assigned,
            is_hash_probed,
            is_cut_off,
        )


def telemetry_bodies(snapshot: Snapshot) -> Iterator[tuple[FactKey, Body]]:
    """What is told of a Snapshot beside its jobs."""
    groups = [
        [group.job, group.group, group.iteration, group.reference_s, group.remaining_bytes]
        for group in snapshot.open_groups
    ]
    yield OPEN_GROUPS, groups or None
    yield FOREIGN_LOADS, {str(link): load_bps for link, load_bps in snapshot.foreign_loads_bps.items()} or None
    yield PROFILED, snapshot.profiled


def _flow_body(flow: Flow, candidates: int) -> list[Any]:
    five_tuple = flow.five_tuple
    return [
        *(five_tuple.source_address, five_tuple.destination_address, five_tuple.protocol),
        *(five_tuple.source_port, five_tuple.destination_port),
        *(flow.size_bytes, flow.offset_s, flow.hashed_path),
        *(flow.is_assigned, flow.is_hash_probed, flow.is_cut_off, candidates),
    ]
