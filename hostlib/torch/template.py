"""What a job registers: its flow groups and its task graph, from what all of its processes report.

A flow is one connection: all that one iteration sends on it, because all packets of a connection take the same path at
the same level. A process group becomes a flow group, whose flows are needed together. Both directions of a connection
are flows: acknowledgements of the one travel in the other.

A pipeline's process group becomes a flow group for each rank that sends to another, with times by its schedule, see
``iteration_graph``.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from ipaddress import IPv4Address

from hostlib.task_graph import TaskGraph
from hostlib.torch.iteration_graph import Sending, pipelined_times, profile_of, task_graph_of
from hostlib.torch.measurement import GroupTimes, Measurement, combined
from hostlib.torch.pipelines import Pair, Simulation, Table, simulated
from hostlib.torch.report import GroupReport, RankReport
from hostlib.torch.sockets import Endpoints
from hostlib.types import FiveTuple, Flow, FlowGroup, Job, Nic

ACKNOWLEDGEMENT_SHARE = 0.02
"""Bytes of acknowledgements over those of the data that they acknowledge, for a direction that sends nothing else."""
_TCP = 6

FlowKey = tuple[str, int]
"""A flow group's name, and the position of a flow in it."""
Nics = Mapping[IPv4Address, Nic]
_GroupKey = tuple[tuple[int, ...], str]
"""The ranks of a process group, and its name."""


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
        process_groups: By flow group, the name of its process group.
        windows_s: By flow group, how long computation goes on from its release on before it waits.
        unknown: Addresses that are none of the fabric's.
    """

    job: Job | None
    flow_groups: tuple[FlowGroup, ...]
    task_graph: TaskGraph | None
    connections: Mapping[FlowKey, Connection]
    unknown: frozenset[IPv4Address]
    process_groups: Mapping[str, str] = field(default_factory=dict)
    windows_s: Mapping[str, float] = field(default_factory=dict)


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
    simulations = _simulations(reports)
    computed_s = combined([report.measurement for report in reports]).compute_s
    measurement = combined(list(_with_bubbles(reports, simulations)))
    of_rank = {report.rank: nic for report in reports if report.address and (nic := nics.get(report.address))}
    hosts: dict[str, None] = dict.fromkeys(nic.host for nic in of_rank.values())
    flows: dict[str, list[Flow]] = {}
    connections: dict[FlowKey, Connection] = {}
    sendings: dict[str, Sending] = {}
    process_groups: dict[str, str] = {}
    of_number = {report.rank: report for report in reports}
    taken: set[Endpoints] = set()
    for members in _groups(reports):
        group = f"{members[0].role} {members[0].name}".replace("/", "-")
        simulation = simulations.get((members[0].ranks, members[0].name))
        for connection in _connections(members, of_number, taken):
            ends = _nics_of(connection, of_rank, nics)
            if ends is None or ends[0].host == ends[1].host:
                continue
            pair = None if simulation is None else _pair(connection, simulation)
            if simulation is None or pair is None:
                label, sending = group, Sending(measurement.groups[members[0].name])
            else:
                label = f"{group} {pair[0]}-{pair[1]}"
                sending = Sending(pipelined_times(simulation.windows[pair]), simulation.last_need_s)
            of_label = flows.setdefault(label, [])
            connections[label, len(of_label)] = connection
            of_label.append(Flow(*ends, connection.size_bytes, five_tuple=_five_tuple(connection.endpoints)))
            sendings[label] = sending
            process_groups[label] = members[0].name
            hosts |= dict.fromkeys(nic.host for nic in ends)
    unknown = frozenset({report.address for report in reports if report.address is not None} - nics.keys())
    if not flows:
        return Template(None, (), None, {}, unknown)
    profile = profile_of(measurement.compute_s, list(sendings.values()), computed_s * len(reports))
    return Template(
        Job(name, tuple(hosts), len(reports), profile),
        tuple(FlowGroup(label, tuple(of_label)) for label, of_label in flows.items()),
        task_graph_of(measurement.compute_s, sendings),
        connections,
        unknown,
        process_groups,
        {label: sending.times.slack_s for label, sending in sendings.items()},
    )


def _simulations(reports: Sequence[RankReport]) -> dict[_GroupKey, Simulation]:
    """Return the pipelines whose ranks have all seen their passes, by process group."""
    tables: dict[_GroupKey, dict[int, Table]] = {}
    for report in reports:
        for group in report.groups:
            if passes := report.measurement.passes.get(group.name):
                tables.setdefault((group.ranks, group.name), {})[report.rank] = passes
    simulations = {}
    for (ranks, name), of_ranks in tables.items():
        # Where some passes were not seen, only measured waits say when the pipeline sends.
        if len(of_ranks) == len(ranks):
            with suppress(ValueError):
                simulations[ranks, name] = simulated(of_ranks)
    return simulations


def _with_bubbles(reports: Sequence[RankReport], simulations: Mapping[_GroupKey, Simulation]) -> Iterator[Measurement]:
    """Yield what ranks have measured. The time of those in a pipeline is that of its simulation, with its bubbles."""
    timelines = {
        rank: (timeline, simulation)
        for simulation in simulations.values()
        for rank, timeline in simulation.timelines.items()
    }
    measured = {report.rank: report.measurement for report in reports}
    for rank, own in measured.items():
        if rank not in timelines:
            yield own
            continue
        timeline, simulation = timelines[rank]
        groups = {}
        for name, times in own.groups.items():
            release_s, need_s = timeline.at(times.release_s), timeline.at(times.release_s + times.slack_s)
            groups[name] = GroupTimes(release_s, need_s - release_s)
        length_s = max(each.at(measured[peer].compute_s) for peer, each in simulation.timelines.items())
        yield Measurement(own.iteration_s, length_s, groups)


def _pair(connection: Connection, simulation: Simulation) -> Pair | None:
    """Return the ranks whose transfers a connection carries, or acknowledges; None where a pipeline has none there."""
    pair = connection.source, connection.destination
    return next((each for each in (pair, pair[::-1]) if each in simulation.windows), None)


def _groups(reports: Sequence[RankReport]) -> Iterator[list[GroupReport]]:
    """Yield the reports of each process group, in order of their first rank and their name."""
    found: dict[_GroupKey, list[GroupReport]] = {}
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
