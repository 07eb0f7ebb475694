"""The TCP connections of a run's flows: each takes the path that the fabric's hash gives it on other back ends."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from experiments.scenarios.connections import Connections, GroupKey, open_connections
from topologies.addressing import FIRST_SOURCE_PORT, FLOW_DESTINATION_PORT, LAST_SOURCE_PORT, TCP_PROTOCOL, FiveTuple
from topologies.fabric import Path
from topologies.routing import Routing
from workloads.jobs import TrainingJob


@dataclass(frozen=True, slots=True)
class RealFlow:
    """A flow of a run: its number, its place in its job, its ends, its connection, and its bytes before scaling."""

    number: int
    key: GroupKey
    index: int
    source: str
    destination: str
    five_tuple: FiveTuple
    size_bytes: float


def real_flows(jobs: Sequence[TrainingJob], routing: Routing) -> tuple[RealFlow, ...]:
    """Return the flows of all jobs, in order.

    A connection is over TCP, to a port of its job's own. Its source port is the first free one that leads over the path
    that the flow has on the emulator and the simulator, so that unsteered flows collide there and here alike.

    Raises:
        ValueError: Two NICs have more flows than there are source ports.
    """
    elsewhere = open_connections(jobs, routing.fabric)
    candidates: dict[tuple[int, int, int, Path], Iterator[FiveTuple]] = {}
    flows: list[RealFlow] = []
    for number, job in enumerate(jobs):
        for group in job.graph.flow_groups:
            for index, flow in enumerate(group.flows):
                model = elsewhere[job.name][group.name][index]
                wanted = replace(model, protocol=TCP_PROTOCOL, destination_port=FLOW_DESTINATION_PORT + number)
                path = routing.hashed_path(model)
                way = number, model.source_address, model.destination_address, path
                five_tuple = next(candidates.setdefault(way, _on_path(wanted, path, routing)), None)
                if five_tuple is None:
                    raise ValueError(f"no source port is left for {wanted}")
                key = job.name, group.name
                ends = flow.source_host, flow.destination_host
                flows.append(RealFlow(len(flows), key, index, *ends, five_tuple, flow.size_bytes))
    return tuple(flows)


def connections_of(flows: Sequence[RealFlow]) -> Connections:
    """Return the 5-tuples of flows by job and flow group."""
    found: dict[str, dict[str, tuple[FiveTuple, ...]]] = {}
    for flow in flows:
        job, group = flow.key
        groups = found.setdefault(job, {})
        groups[group] = (*groups.get(group, ()), flow.five_tuple)
    return found


def _on_path(wanted: FiveTuple, path: Path, routing: Routing) -> Iterator[FiveTuple]:
    """Return the 5-tuples of a connection that the fabric's hash leads over a path, by source port."""
    ports = range(FIRST_SOURCE_PORT, LAST_SOURCE_PORT + 1)
    return (
        candidate
        for candidate in (replace(wanted, source_port=port) for port in ports)
        if routing.hashed_path(candidate) == path
    )
