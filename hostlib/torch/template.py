"""What a job registers: its flow groups and its task graph, from what all of its processes report.

A flow is one connection: all that one iteration sends on it, because all packets of a connection take the same path at
the same level. A process group becomes a flow group, whose flows are needed together. Both directions of a connection
are flows: acknowledgements of the one travel in the other.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address

from hostlib.task_graph import Computation, TaskGraph, Transfer
from hostlib.torch.measurement import GroupTimes, Measurement, combined
from hostlib.torch.report import GroupReport, RankReport
from hostlib.torch.sockets import Endpoints
from hostlib.types import FiveTuple, Flow, FlowGroup, Job, Nic, Profile

ACKNOWLEDGEMENT_SHARE = 0.02
"""Bytes of acknowledgements over those of the data that they acknowledge, for a direction that sends nothing else."""
_TCP = 6
_SHORTEST_S = 1e-6

FlowKey = tuple[str, int]
"""A flow group's name, and the position of a flow in it."""
Nics = Mapping[IPv4Address, Nic]


@dataclass(frozen=True, slots=True)
class Connection:
    """A flow: who sends it, to whom, how much an iteration, and over which connection where that is known."""

    source: int
    destination: int
    size_bytes: int
    endpoints: Endpoints | None


@dataclass(frozen=True, slots=True)
class Template:
    """What a job registers, and to whom each flow belongs.

    Attributes:
        job: The job with its profile.
        flow_groups: Its flow groups; none where nothing crosses the network.
        task_graph: What an iteration does; None without flow groups.
        connections: What each flow stands for.
        unknown: Addresses that are none of the fabric's.
    """

    job: Job | None
    flow_groups: tuple[FlowGroup, ...]
    task_graph: TaskGraph | None
    connections: Mapping[FlowKey, Connection]
    unknown: frozenset[IPv4Address]


def addresses_of(reports: Sequence[RankReport]) -> tuple[IPv4Address, ...]:
    """Return the addresses of which the fabric's NICs are to be known, in order."""
    found = {report.address for report in reports if report.address is not None}
    for report in reports:
        for connection in _all_connections(report):
            found |= {connection.address, connection.peer_address}
    return tuple(sorted(found))


def template_of(name: str, reports: Sequence[RankReport], nics: Nics) -> Template:
    """Return what a job registers.

    Args:
        name: The job's name.
        reports: One for each rank, in order of ranks.
        nics: The fabric's NICs, by address.
    """
    measurement = combined([report.measurement for report in reports])
    of_rank = {report.rank: nic for report in reports if report.address and (nic := nics.get(report.address))}
    hosts: dict[str, None] = dict.fromkeys(nic.host for nic in of_rank.values())
    flow_groups: list[FlowGroup] = []
    connections: dict[FlowKey, Connection] = {}
    transfers: list[tuple[str, GroupTimes]] = []
    of_number = {report.rank: report for report in reports}
    taken: set[Endpoints] = set()
    for members in _groups(reports):
        label = f"{members[0].role} {members[0].name}".replace("/", "-")
        flows: list[Flow] = []
        for connection in _connections(members, of_number, taken):
            ends = _nics_of(connection, of_rank, nics)
            if ends is None or ends[0].host == ends[1].host:
                continue
            connections[label, len(flows)] = connection
            flows.append(Flow(*ends, connection.size_bytes, five_tuple=_five_tuple(connection.endpoints)))
            hosts |= dict.fromkeys(nic.host for nic in ends)
        if flows:
            flow_groups.append(FlowGroup(label, tuple(flows)))
            transfers.append((label, measurement.groups[members[0].name]))
    unknown = frozenset({report.address for report in reports if report.address is not None} - nics.keys())
    if not flow_groups:
        return Template(None, (), None, {}, unknown)
    job = Job(name, tuple(hosts), len(reports), profile_of(measurement, transfers, len(reports)))
    return Template(job, tuple(flow_groups), task_graph_of(measurement, transfers), connections, unknown)


def profile_of(measurement: Measurement, transfers: Sequence[tuple[str, GroupTimes]], gpus: int) -> Profile:
    """Return the profile of a job whose processes have one GPU each."""
    compute_s = max(measurement.compute_s, _SHORTEST_S)
    first_s = min(times.release_s for _, times in transfers)
    return Profile(compute_s, min(max(first_s / compute_s, 0.0), 1.0), compute_s * gpus)


def task_graph_of(measurement: Measurement, transfers: Sequence[tuple[str, GroupTimes]]) -> TaskGraph:
    """Return what an iteration does: computation in a row, and transfers that it may have to wait for.

    A flow group is sent from its release on; what is computed later than its slack after that waits for it.
    """
    end_s = max(measurement.compute_s, _SHORTEST_S)
    releases = {name: _rounded(min(max(times.release_s, 0.0), end_s)) for name, times in transfers}
    needs = {name: _rounded(min(releases[name] + times.slack_s, end_s)) for name, times in transfers}
    tasks: list[Computation | Transfer] = []
    computed: tuple[int, ...] = ()
    sent: dict[str, int] = {}
    before_s = 0.0
    for time_s in sorted({*releases.values(), *needs.values(), _rounded(end_s)}):
        if time_s > before_s:
            tasks.append(Computation(time_s - before_s, after=computed))
            computed, before_s = (len(tasks) - 1,), time_s
        for name, release_s in releases.items():
            if release_s == time_s:
                tasks.append(Transfer(name, after=computed))
                sent[name] = len(tasks) - 1
        computed += tuple(sent[name] for name, need_s in needs.items() if need_s == time_s and time_s < end_s)
    return TaskGraph(tuple(tasks))


def _rounded(time_s: float) -> float:
    return round(time_s, 6)


def _groups(reports: Sequence[RankReport]) -> Iterator[list[GroupReport]]:
    """Yield the reports of each process group, in order of their first rank and their name."""
    found: dict[tuple[tuple[int, ...], str], list[GroupReport]] = {}
    for report in reports:
        for group in report.groups:
            found.setdefault((group.ranks, group.name), []).append(group)
    for _, members in sorted(found.items()):
        yield members


def _connections(
    members: Sequence[GroupReport], reports: Mapping[int, RankReport], taken: set[Endpoints]
) -> Iterator[Connection]:
    """Yield what each rank of a process group sends to each other one, over the connection that both of them have.

    A connection that no group is known to have opened is that of the first group that fits, which takes it.
    """
    ranks = members[0].ranks
    sent: dict[tuple[int, int], int] = {}
    own: dict[int, frozenset[Endpoints]] = {}
    for rank in ranks:
        group = next((each for each in reports[rank].groups if each.name == members[0].name), None)
        if group is None:
            continue
        own[rank] = frozenset(group.connections) or frozenset(reports[rank].unowned)
        for peer, size_bytes in group.sent_bytes.items():
            sent[rank, peer] = size_bytes
    for low, high in sorted({(min(pair), max(pair)) for pair in sent}):
        mirrored = {each.reversed for each in own.get(high, frozenset())}
        shared = sorted((own.get(low, frozenset()) & mirrored) - taken, key=str)
        endpoints = shared[0] if shared else None
        if endpoints is not None:
            taken.add(endpoints)
        for source, destination, ends in (
            (low, high, endpoints),
            (high, low, None if endpoints is None else endpoints.reversed),
        ):
            size_bytes = sent.get((source, destination), 0)
            if size_bytes == 0 and ends is None:
                continue  # acknowledgements of a transport that has no connections
            acknowledgement_bytes = round(sent.get((destination, source), 0) * ACKNOWLEDGEMENT_SHARE)
            yield Connection(source, destination, max(size_bytes, acknowledgement_bytes, 1), ends)


def _nics_of(connection: Connection, of_rank: Mapping[int, Nic], nics: Nics) -> tuple[Nic, Nic] | None:
    """Return the NICs at the ends of a connection; None where one is not in the fabric."""
    if connection.endpoints is None:
        found = of_rank.get(connection.source), of_rank.get(connection.destination)
    else:
        found = nics.get(connection.endpoints.address), nics.get(connection.endpoints.peer_address)
    source, destination = found
    return None if source is None or destination is None else (source, destination)


def _five_tuple(endpoints: Endpoints | None) -> FiveTuple | None:
    if endpoints is None:
        return None
    return FiveTuple(endpoints.address, endpoints.peer_address, _TCP, endpoints.port, endpoints.peer_port)


def _all_connections(report: RankReport) -> Iterator[Endpoints]:
    for group in report.groups:
        yield from group.connections
    yield from report.unowned
