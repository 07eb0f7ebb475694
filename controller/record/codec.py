"""Encodes Snapshots and Plans as facts, and decodes them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple
from itertools import groupby
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict

from controller.config import ControllerConfig
from controller.planning.snapshots import link_states
from controller.record.facts import Body, FactKey, FactKind, Facts
from controller.record.graph_codec import graph_from_text, graph_text
from policies.flows import Flow, FlowGroup, FlowKey, Uncompressed
from policies.job import Job, Profile
from policies.memory_codec import EncodedMemory
from policies.pins import LevelPin, PathPin, Pin
from policies.plan import FlowPlan, JobPlan, Plan
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
PINS = FactKey(FactKind.PINS, "")
CONTROLLER = FactKey(FactKind.CONTROLLER, "")
SHARED_MEMORY = FactKey(FactKind.SHARED_MEMORY, "")


class Setting(BaseModel):
    """The part of the configuration that decisions depend on."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    topology: Topology
    hash_seed: int
    policy: str  # a name or an import string; it need not be known here
    num_levels: int
    seed: int

    @classmethod
    def of(cls, config: ControllerConfig) -> "Setting":
        """The settings of a controller."""
        return cls(
            topology=config.topology,
            hash_seed=config.hash_seed,
            policy=config.policy,
            num_levels=config.num_levels,
            seed=config.seed,
        )

    def differing(self, recorded: Body) -> list[str]:
        """The keys whose recorded values differ."""
        return [name for name, value in self.model_dump(mode="json").items() if recorded.get(name) != value]

    def routing(self) -> Routing:
        """The fabric and its routing, as decisions see them."""
        fabric = self.topology.build()
        return Routing(fabric, hash_multipliers(fabric.switches, self.hash_seed))


class SnapshotCodec:
    """Encodes and decodes the Snapshots of one fabric."""

    def __init__(self, setting: Setting, routing: Routing) -> None:
        self.setting = setting
        self.fabric = routing.fabric
        self.routing = routing
        self._known_shortest: dict[tuple[str, str], tuple[int, int]] = {}
        self._links: Links = link_states(routing.fabric)
        self._ports = np.array([link.source_port for link in routing.fabric.links])

    def encode_job(self, job: Job) -> Body:
        """Encode a job. Candidate paths are written only where they are not all that the topology allows."""
        profile = job.profile
        groups = []
        written: dict[int, list[Path] | None] = {}
        numbers: dict[int, int] = {}
        for group in job.flow_groups:
            flows = []
            for flow in group.flows:
                number = numbers.setdefault(id(flow.candidates), len(numbers))
                if number not in written:
                    written[number] = None if self._is_all(flow) else list(flow.candidates)
                flows.append(_flow_body(flow, number))
            uncompressed = group.uncompressed
            told = [] if uncompressed is None else [list(astuple(uncompressed))]
            groups.append([group.name, flows, *told])
        body = {
            "arrival_s": job.arrival_s,
            "gpus": job.gpus,
            "profile": [profile.compute_s, profile.comm_start, profile.work],
            "candidates": list(written.values()),
            "groups": groups,
            "measured_hosts": list(job.measured_hosts),
        }
        return body if job.task_graph is None else body | {"task_graph": graph_text(job.task_graph)}

    def decode_job(self, name: str, body: Mapping[str, Any]) -> Job:
        """Decode what ``encode_job`` has written; older records have no task graphs, but more windows."""
        candidates: dict[tuple[int, int, int], Paths] = {}
        groups = []
        for group, flows, *told in body["groups"]:
            keys = (FlowKey(name, group, number) for number in range(len(flows)))
            made = [
                self._flow(key, flow, body["candidates"], candidates) for key, flow in zip(keys, flows, strict=True)
            ]
            groups.append(FlowGroup(group, tuple(made), *(Uncompressed(each[0], each[-1]) for each in told)))
        return Job(
            name,
            body["arrival_s"],
            body["gpus"],
            Profile(*body["profile"]),
            tuple(groups),
            tuple(body["measured_hosts"]),
            graph_from_text(body["task_graph"]) if "task_graph" in body else None,
        )

    def decode_snapshot(
        self,
        time_s: float,
        jobs: Sequence[Job],
        open_groups: Body,
        foreign_loads: Body,
        profiled: str | None,
        pins: Body = None,
    ) -> Snapshot:
        """Make a Snapshot, without the Plan before it, from decoded jobs and the bodies of its other facts.

        Older records have no pins.
        """
        return Snapshot(
            time_s=time_s,
            links=self._links,
            jobs=tuple(sorted(jobs, key=lambda job: job.name)),
            num_levels=self.setting.num_levels - (profiled is not None),
            open_groups=tuple(OpenGroup(*group) for group in open_groups or ()),
            foreign_loads_bps={int(link): load_bps for link, load_bps in (foreign_loads or {}).items()},
            seed=self.setting.seed,
            profiled=profiled,
            pins=tuple(map(_pin, pins or ())),
        )

    def _is_all(self, flow: Flow) -> bool:
        """Whether a flow has all candidate paths in order: of the shortest length, as many as the topology has."""
        nics, links = self.fabric.nic_by_address, self.fabric.links
        source, destination = nics[flow.five_tuple.source_address], nics[flow.five_tuple.destination_address]
        number, num_links = self._shortest_paths(links[source.link].destination, destination)
        paths = flow.candidates
        return len(paths) == number and paths.links.shape[1] == 1 + num_links and self._is_in_order(paths)

    def _is_in_order(self, paths: Paths) -> bool:
        """Whether paths are in the lexical order of ports; where somebody else routes, groups have their own."""
        steps = np.diff(self._ports[paths.links], axis=0)
        first = (steps != 0).argmax(axis=1)
        return bool((steps[np.arange(len(steps)), first] > 0).all())

    def _shortest_paths(self, switch: str, destination: Nic) -> tuple[int, int]:
        """The number of shortest paths from a switch to a NIC, and of links in each."""
        links = self.fabric.links
        attachment = links[destination.link].destination
        if switch == attachment:
            return 1, 1
        known = self._known_shortest.get((switch, attachment))
        if known is None:
            nexts = self.routing.next_links(switch, destination)
            further = [self._shortest_paths(links[link].destination, destination) for link in nexts]
            known = sum(number for number, _ in further), 1 + min(num_links for _, num_links in further)
            self._known_shortest[switch, attachment] = known
        return known

    def _flow(
        self,
        key: FlowKey,
        body: Sequence[Any],
        written: Sequence[Sequence[Sequence[int]] | None],
        known: dict[tuple[int, int, int], Paths],
    ) -> Flow:
        *packet, size_bytes, offset_s, hashed_path, is_assigned, is_hash_probed, is_cut_off, number = body
        five_tuple = FiveTuple.of_numbers(packet)
        fabric = self.routing.fabric
        source, destination = (
            fabric.nic_by_address[address] for address in (five_tuple.source_address, five_tuple.destination_address)
        )
        ends = (five_tuple.source_address, five_tuple.destination_address, number)
        if ends not in known:
            paths = written[number]
            known[ends] = Paths(
                self.routing.candidate_paths(source, destination) if paths is None else map(tuple, paths)
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


def encode_telemetry(snapshot: Snapshot) -> Iterator[tuple[FactKey, Body]]:
    """Encode what a Snapshot has beside its jobs."""
    groups = [
        [group.job, group.group, group.iteration, group.reference_s, group.remaining_bytes]
        for group in snapshot.open_groups
    ]
    yield OPEN_GROUPS, groups or None
    yield FOREIGN_LOADS, {str(link): load_bps for link, load_bps in snapshot.foreign_loads_bps.items()} or None
    yield PROFILED, snapshot.profiled
    yield PINS, list(map(_pin_body, snapshot.pins)) or None


def _pin_body(pin: Pin) -> list[Any]:
    if isinstance(pin, LevelPin):
        return ["level", pin.job, pin.level, pin.until_s, pin.by]
    return ["path", *pin.flow, list(pin.path), pin.until_s, pin.by]


def _pin(body: Sequence[Any]) -> Pin:
    kind, *values = body
    if kind == "level":
        return LevelPin(*values)
    if kind != "path":
        raise ValueError(f"pins: a pin is of a level or of a path, not of {kind!r}")
    job, group, flow, path, until_s, by = values
    return PathPin(FlowKey(job, group, flow), tuple(path), until_s, by)


def _flow_body(flow: Flow, candidates: int) -> list[Any]:
    five_tuple = flow.five_tuple
    return [
        *(five_tuple.source_address, five_tuple.destination_address, five_tuple.protocol),
        *(five_tuple.source_port, five_tuple.destination_port),
        *(flow.size_bytes, flow.offset_s, flow.hashed_path),
        *(flow.is_assigned, flow.is_hash_probed, flow.is_cut_off, candidates),
    ]


def encode_order(plan: JobPlan, flows: Sequence[FlowPlan]) -> Body:
    """Encode what a Plan decides for a job, except its paths; a run of flows with equal level and order is one item."""
    alike = groupby((flow.level, flow.order) for flow in flows)
    return {
        "rank": plan.rank,
        "level": plan.level,
        "intensity": plan.intensity,
        "correction_factor": plan.correction_factor,
        "priority": plan.priority,
        "time_shift_s": plan.time_shift_s,
        "reason": plan.reason,
        "flows": [[sum(1 for _ in run), *level_and_order] for level_and_order, run in alike],
    }


def encode_paths(flows: Sequence[FlowPlan]) -> Body:
    """Encode the paths of a job's flows."""
    return [flow.path for flow in flows]


def decode_plan(policy: str, snapshot: Snapshot, facts: Facts) -> Plan:
    """Decode the Plan for a Snapshot, without its memory, from the facts that held then."""
    jobs: list[JobPlan] = []
    flows: dict[FlowKey, FlowPlan] = {}
    for job in snapshot.jobs:
        order = facts[FactKey(FactKind.ORDER, job.name)]
        jobs.append(_job_plan(job.name, order))
        flows |= _flow_plans(job, order["flows"], facts[FactKey(FactKind.PATHS, job.name)])
    return Plan(policy, tuple(sorted(jobs, key=lambda job: job.rank)), flows)


def decode_memory(facts: Facts) -> EncodedMemory:
    """Decode the memory of the Plan of these facts."""
    by_job = {key.key: body for key, body in facts.items() if key.kind is FactKind.MEMORY}
    return EncodedMemory(facts.get(SHARED_MEMORY), by_job)


def _job_plan(name: str, body: Mapping[str, Any]) -> JobPlan:
    return JobPlan(
        name=name,
        rank=body["rank"],
        level=body["level"],
        intensity=body["intensity"],
        correction_factor=body["correction_factor"],
        priority=body["priority"],
        time_shift_s=body["time_shift_s"],
        reason=body["reason"],
    )


def _flow_plans(
    job: Job, runs: Sequence[Sequence[int]], paths: Sequence[Sequence[int] | None]
) -> dict[FlowKey, FlowPlan]:
    counts = [count for count, *_ in runs]
    if sum(counts) != len(job.flows) or min(counts, default=1) < 1:
        raise ValueError(f"job {job.name!r}: expected a level for each of its {len(job.flows)} flows")
    levels_and_orders = [(level, order) for count, level, order in runs for _ in range(count)]
    return {
        flow.key: FlowPlan(None if path is None else tuple(path), level, order)
        for flow, path, (level, order) in zip(job.flows, paths, levels_and_orders, strict=True)
    }
