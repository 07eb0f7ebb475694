"""The flow groups of a lowered program, what one run of it does, and which pieces belong to which flow.

All that goes from one island to another is one flow group, an EchelonFlow. Flows are in the order in which they are
sent. Those of one edge are due together, as a coflow: when the first call that takes it starts if communication takes
no time. The bytes of a ragged array are those of its bound.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from hostlib.task_graph import MAX_TASKS, Computation, Task, TaskGraph, Transfer
from hostlib.types import Flow, FlowGroup, Nic, Profile
from runtime.lowering.subprograms import LoweredProgram
from runtime.network.crossings import Crossing, Pair, crossings
from runtime.network.names import group_names
from runtime.network.schedule import Schedule
from runtime.store.buffers import HOST

MAX_FLOWS = 100_000
"""Of one job; controllers refuse more."""
MAX_DEPENDENCIES = 1_000_000
"""Of the tasks of one job; controllers refuse more."""


@dataclass(frozen=True, eq=False, slots=True)
class SentEdge:
    """An edge between islands, the position of its group, and that of its first flow there."""

    crossing: Crossing
    group: int
    first: int

    @property
    def flows(self) -> tuple[int, ...]:
        """The positions of its flows."""
        return tuple(range(self.first, self.first + len(self.crossing.pairs.size_bytes)))


class FlowNumbers(Mapping[tuple[int, int, int], tuple[int, int]]):
    """The positions of group and flow by (edge, source shard, destination shard), of all pairs that the fabric carries.

    Nothing in it grows with the number of pairs of shards.
    """

    def __init__(self, sent: Mapping[int, SentEdge]) -> None:
        self._sent = sent

    def __getitem__(self, key: tuple[int, int, int]) -> tuple[int, int]:
        edge, source, destination = key
        sent = self._sent[edge]
        return sent.group, sent.first + sent.crossing.pairs.position(source, destination)

    def __iter__(self) -> Iterator[tuple[int, int, int]]:
        for number, sent in self._sent.items():
            pairs = sent.crossing.pairs
            for destination, destination_host in enumerate(pairs.destination.hosts):
                for source in pairs.resharding.sources(destination):
                    if (pairs.source.hosts[source], destination_host) in pairs.positions:
                        yield number, source, destination

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def of_edge(self, edge: int) -> Mapping[Pair, tuple[int, int]]:
        """Return the positions of group and flow by pair of hosts; none for an edge that the fabric does not carry."""
        sent = self._sent.get(edge)
        if sent is None:
            return {}
        return {pair: (sent.group, sent.first + place) for pair, place in sent.crossing.pairs.positions.items()}


@dataclass(frozen=True, eq=False, slots=True)
class Template:
    """What a program tells the controller of the network, once for all of its runs.

    ``graph`` is one run: the calls of all devices, each behind what it takes and what had its devices, and a transfer
    for each edge, for which all calls wait that take it. It is None where controllers have no room for it. ``profile``
    is one run without communication time; its work is in device-seconds. ``hosts`` and ``devices`` are those that the
    program uses.
    """

    groups: tuple[FlowGroup, ...]
    graph: TaskGraph | None
    profile: Profile
    hosts: tuple[str, ...]
    devices: int
    flow_of: FlowNumbers


def template(lowered: LoweredProgram, seconds: Callable[[int], float], nics: Mapping[int, Nic]) -> Template | None:
    """Return what a program tells the controller; None where it sends nothing over the fabric.

    Args:
        lowered: The program.
        seconds: How long a node is expected to take.
        nics: By number of host, the NIC that it sends from and receives at. Between hosts of one name there is no
            fabric.

    Raises:
        ValueError: A host that sends or receives has no NIC, or there are more flows than a controller has room for.
    """
    name = lowered.program.name

    def is_apart(source: int, destination: int) -> bool:
        for host in (source, destination):
            if host not in nics:
                raise ValueError(f"{name}: host {host} has no NIC")
        return nics[source].host != nics[destination].host

    found = crossings(lowered, is_apart)
    if not found:
        return None
    if (num_flows := sum(len(each.pairs.size_bytes) for each in found)) > MAX_FLOWS:
        raise ValueError(f"{name}: a controller has room for {MAX_FLOWS:,} flows of a program, not for {num_flows:,}")
    schedule = Schedule.of(lowered, seconds)
    grouped = _grouped(found, schedule)
    names = group_names(grouped)
    sent = {
        each.crossing.edge.number: each
        for number, members in enumerate(grouped.values())
        for each in _numbered(number, members)
    }
    groups = tuple(
        _group(group_name, members, schedule, nics) for group_name, members in zip(names, grouped.values(), strict=True)
    )
    first_s = min(schedule.end_s[each.edge.value.node] for each in found)
    places = {place for of in {placed.placement for placed in lowered.calls} for place in _places(lowered, of)}
    return Template(
        groups,
        _graph(lowered, schedule, sent, names),
        Profile(schedule.compute_s, min(first_s / schedule.compute_s, 1.0), schedule.work),
        tuple(dict.fromkeys(nics[host].host for host in sorted(lowered.subprogram_of_host) if host in nics)),
        max(1, sum(device != HOST for _, device in places)),
        FlowNumbers(sent),
    )


def _places(lowered: LoweredProgram, placement: int) -> Iterator[tuple[int, int]]:
    of = lowered.placements[placement]
    return zip(of.hosts, of.devices, strict=True)


def _grouped(found: Sequence[Crossing], schedule: Schedule) -> dict[tuple[str, str], list[Crossing]]:
    """Return edges by the names of both islands, in the order in which they are sent: sooner what is needed sooner."""

    def order(each: Crossing) -> tuple[float, float, int]:
        return schedule.end_s[each.edge.value.node], schedule.start_s[each.edge.first_node], each.edge.number

    grouped: dict[tuple[str, str], list[Crossing]] = {}
    for each in sorted(found, key=order):
        grouped.setdefault((each.pairs.source.island, each.pairs.destination.island), []).append(each)
    return grouped


def _numbered(group: int, members: Sequence[Crossing]) -> Iterator[SentEdge]:
    first = 0
    for each in members:
        yield SentEdge(each, group, first)
        first += len(each.pairs.size_bytes)


def _group(name: str, members: Sequence[Crossing], schedule: Schedule, nics: Mapping[int, Nic]) -> FlowGroup:
    head_s = min(schedule.start_s[each.edge.first_node] for each in members)
    return FlowGroup(
        name,
        tuple(
            Flow(nics[source], nics[destination], size_bytes, schedule.start_s[each.edge.first_node] - head_s)
            for each in members
            for (source, destination), size_bytes in each.pairs.size_bytes.items()
        ),
    )


def _graph(
    lowered: LoweredProgram, schedule: Schedule, sent: Mapping[int, SentEdge], names: Sequence[str]
) -> TaskGraph | None:
    if len(lowered.calls) + len(sent) > MAX_TASKS:
        return None
    tasks: list[Task] = []
    done: list[tuple[int, ...]] = [()] * len(lowered.program.arguments)
    edges = {taker: edge for edge in lowered.edges for taker in edge.takers}
    transfers: dict[int, int] = {}
    for placed in lowered.calls:
        waits = set(chain.from_iterable(done[node] for node in schedule.preceding[placed.node]))
        for position in range(len(placed.call.inputs)):
            edge = edges[placed.node, position]
            each = sent.get(edge.number)
            if each is None:
                waits.update(done[edge.value.node])
                continue
            if edge.number not in transfers:
                transfers[edge.number] = len(tasks)
                tasks.append(Transfer(names[each.group], each.flows, done[edge.value.node]))
            waits.add(transfers[edge.number])
        done.append((len(tasks),))
        tasks.append(Computation(schedule.duration_s[placed.node], tuple(sorted(waits))))
    if sum(len(task.after) for task in tasks) > MAX_DEPENDENCIES:
        return None
    return TaskGraph(tuple(tasks))
