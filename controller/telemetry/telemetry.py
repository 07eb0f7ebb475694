"""What hosts report of their probes, checked and remembered: candidate paths, and what links carry."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from controller.registry.registration import NotOwnerError
from controller.telemetry.candidates import Candidate, Freshness, PairCandidates
from controller.telemetry.drops import Drop
from controller.telemetry.foreign_loads import ForeignLoads
from controller.telemetry.links import LinkMeasurements
from controller.telemetry.reporters import Reporters
from controller.telemetry.silence import SilentLinks
from controller.telemetry.stacks import Stacks
from controller.telemetry.streams import ProbeStream
from controller.telemetry.ways import WayFinder
from controller.telemetry.window import WINDOW_US
from hostlib.telemetry.agent import MAX_REPORTS
from hostlib.telemetry.parsing import Malformed
from hostlib.telemetry.receiver import Refused
from hostlib.wire import trainyard_pb2 as wire
from topologies.addressing import FiveTuple
from topologies.fabric import Nic, Path
from topologies.routing import Routing

STALE_AFTER_S = 5.0
"""Five times as long as hosts take to probe a path again while they have room for it."""

_HOSTS_REASONS = frozenset(str(reason) for reason in (*Malformed, *Refused))

_NS_PER_S = 1_000_000_000
_MAX_AGE_NS = 10 * _NS_PER_S
_EXPLORING_S = 0.05
_KNOWN_S = 0.25
_EXCHANGES_PER_S = 1000
"""Of all hosts together."""

_Key = tuple[int, int, int, int]
"""Source and destination address, protocol, destination port."""


@dataclass(frozen=True, slots=True)
class PairView:
    """What is known of the paths between two NICs, and how many of its sender's probes were reported or are missing.

    ``late`` are those that came behind a later one, ``duplicates`` those that were reported more than once.
    """

    source: Nic
    destination: Nic
    protocol: int
    destination_port: int
    candidates: tuple[Candidate, ...]
    is_complete: bool
    received: int
    missing: int
    late: int
    duplicates: int


@dataclass(slots=True, eq=False)
class _Pair:
    key: _Key
    source: Nic
    destination: Nic
    candidates: PairCandidates
    stream: ProbeStream
    paths: dict[bytes, Path]
    """What its probes' stacks have been found to tell of, as far as it may be."""
    target: wire.ProbeTarget
    """What its source is to probe, as it was after ``changes`` of the candidates."""
    changes: int


class Telemetry:
    """Paths and loads of a fabric, as its hosts' probes tell them.

    What is to be probed is what flows need: ``watch`` says which there are. Reports are checked against the topology
    and against each other; what cannot be believed is counted in ``dropped`` and changes nothing else.
    """

    def __init__(
        self, routing: Routing, lease_s: float, stale_after_s: float = STALE_AFTER_S, window_us: float = WINDOW_US
    ) -> None:
        self.version = 0
        """Counts how often a flow's path, whether all of a pair are known, or what is silent or lost has changed."""
        self.dropped: Counter[Drop] = Counter()
        self.dropped_by_hosts: dict[str, Mapping[str, int]] = {}
        self.links = LinkMeasurements(window_us)
        self.foreign_loads = ForeignLoads(routing.fabric, window_us, stale_after_s)
        self.reporters = Reporters(lease_s)
        self._routing = routing
        self._nic_by_address = routing.fabric.nic_by_address
        self._stale_after_s = stale_after_s
        self._least_interval_s = len(routing.fabric.hosts) / _EXCHANGES_PER_S
        self._ways = WayFinder(routing.fabric)
        self._pairs: dict[_Key, _Pair] = {}
        self._pairs_of: dict[str, dict[_Key, _Pair]] = {}
        self._pairs_to: dict[str, dict[_Key, PairCandidates]] = {}
        self._silent = SilentLinks(self.links, stale_after_s)
        self._dead: Set[int] = frozenset()
        self._exploring: set[_Key] = set()
        self._targets: dict[str, tuple[int, list[wire.ProbeTarget]]] = {}

    def watch(self, flows: Iterable[FiveTuple]) -> None:
        """Have the pairs of NICs probed that these flows use, keep the flows' own ports known, and forget all else."""
        ports: dict[_Key, set[int]] = {}
        silent = self.silent_links
        for flow in flows:
            ports.setdefault(_key(flow), set()).add(flow.source_port)
        for key in self._pairs.keys() - ports.keys():
            pair = self._pairs.pop(key)
            del self._pairs_of[pair.source.host][key]
            del self._pairs_to[pair.destination.host][key]
            self._silent.remove(pair.candidates)
            self._exploring.discard(key)
            self._targets.pop(pair.source.host, None)
        for key, own in ports.items():
            pair = self._pairs.get(key) or self._new_pair(key)
            pair.candidates.pin(frozenset(own))
        self.version += self.silent_links != silent

    def authorise(self, request: wire.ExchangeProbesRequest, now_s: float) -> None:
        """Raise NotOwnerError where it is another agent that speaks for the host; what this one reports is dropped."""
        try:
            self.reporters.authorise(request.host, request.owner_token, now_s)
        except NotOwnerError:
            self.dropped[Drop.NOT_OWNER] += len(request.reports)
            raise

    def exchange(self, request: wire.ExchangeProbesRequest, now_s: float) -> wire.ExchangeProbesResponse:
        """Take the reports of a host whose agent is authorised, and answer what it is to probe."""
        host, clock_ns, reports = request.host, request.clock_ns, request.reports
        drop = self.reporters.note(host, request.session, request.number, clock_ns, now_s)
        if drop is None and len(reports) > MAX_REPORTS:
            drop = Drop.TOO_MANY
        own = self._pairs_to.get(host, {})
        if drop is not Drop.REPLAYED_EXCHANGE and (drop is not None or self.reporters.has_gap(host)):
            for pair in own.values():
                pair.forgive(now_s)
        if drop is not None:
            self.dropped[drop] += len(reports)
        else:
            self.dropped_by_hosts[host] = {
                told.reason: told.packets for told in request.dropped if told.reason in _HOSTS_REASONS
            }
            self._take(reports, host, clock_ns, now_s)
            self.version += self._silent.look(own.values(), now_s)
            for key, pair in own.items():
                has_gaps = self._pairs[key].stream.window.recent_loss > 0
                self.version += pair.look_for_lost(self.silent_links, has_gaps)
        version, targets = self._targets_of(host, now_s)
        return wire.ExchangeProbesResponse(
            interval_s=max(self._least_interval_s, _EXPLORING_S if self._exploring else _KNOWN_S),
            targets_version=version,
            targets=targets if version != request.targets_version else [],
        )

    def pairs(self, now_s: float) -> tuple[PairView, ...]:
        """What is known of every pair that is probed, in the order of their addresses."""
        return tuple(self._view(pair, now_s) for _, pair in sorted(self._pairs.items()))

    def path_of(self, flow: FiveTuple, now_s: float) -> Path | None:
        """The path that a flow takes where no rule steers it; None where that is not known, or no longer."""
        pair = self._pairs.get(_key(flow))
        return pair.candidates.path_of(flow.source_port, now_s) if pair is not None else None

    @property
    def silent_links(self) -> frozenset[int]:
        """Links by which probes have ceased to come, as all agree whose probes crossed them."""
        return self._silent.links

    @property
    def outvoted(self) -> Mapping[int, frozenset[str]]:
        """Hosts that claim to hear silent links, against all others."""
        return self._silent.outvoted

    def lost_paths(self, flow: FiveTuple) -> frozenset[Path]:
        """Paths that probes between a flow's NICs do not come by, though others' come by all their links."""
        pair = self._pairs.get(_key(flow))
        return pair.candidates.lost if pair is not None else frozenset()

    def rerouted(self, dead: Set[int]) -> None:
        """The fabric routes otherwise from now on, around these links."""
        self._dead = dead
        for pair in self._pairs.values():
            pair.candidates.rerouted(dead)

    def flows_along(self, flow: FiveTuple, path: Path, now_s: float) -> tuple[FiveTuple, ...]:
        """The flow from every port that is known to lead along a path, lowest first."""
        pair = self._pairs.get(_key(flow))
        ports = pair.candidates.ports_along(path, now_s) if pair is not None else ()
        return tuple(replace(flow, source_port=port) for port in ports)

    def _take(self, reports: Sequence[wire.ProbeReport], host: str, clock_ns: int, now_s: float) -> None:
        """Believe reports, or count why not."""
        stacks = Stacks([report.stack for report in reports])
        believed: dict[int, tuple[Path, float]] = {}
        for place, (report, ways) in enumerate(zip(reports, stacks.ways, strict=True)):
            path = self._note(report, ways, place in stacks.contradictory, host, clock_ns, now_s)
            if isinstance(path, Drop):
                self.dropped[path] += 1
            else:
                believed[place] = path, now_s - report.age_ns / _NS_PER_S
        if believed:
            self.foreign_loads.note(self.links.note(stacks.samples(believed), host), host)

    def _note(
        self, report: wire.ProbeReport, ways: bytes, is_contradictory: bool, host: str, clock_ns: int, now_s: float
    ) -> Path | Drop:
        """Believe that a probe has come by a path, or say why not."""
        flow = report.five_tuple
        key = flow.source_address, flow.destination_address, flow.protocol, flow.destination_port
        pair = self._pairs.get(key)
        if pair is None:
            destination = self._nic_by_address.get(flow.destination_address)
            return Drop.NOT_ITS_HOST if destination is None or destination.host != host else Drop.NOT_WANTED
        if pair.destination.host != host:
            return Drop.NOT_ITS_HOST
        port, candidates = flow.source_port, pair.candidates
        if not candidates.is_probed(port):
            return Drop.SOURCE_PORT
        age_ns = report.age_ns
        if age_ns > _MAX_AGE_NS:
            return Drop.TOO_OLD
        session, sequence = report.session, report.sequence
        drop = pair.stream.note(session, sequence, report.sent_ns, clock_ns - age_ns)
        if drop is not None:
            return drop
        path = pair.paths.get(ways) or self._ways.path(ways, pair.source, pair.destination)
        if isinstance(path, Drop):
            return path
        if is_contradictory:
            return Drop.HOP_TIMES
        if ways not in pair.paths:
            if not candidates.allows(path):
                return Drop.NOT_A_CANDIDATE
            pair.paths[ways] = path
        moves = candidates.moves
        number = session << 32 | sequence
        candidates.note(port, report.port_sequence, number, path, now_s - age_ns / _NS_PER_S)
        self.version += candidates.moves - moves
        return path

    def _targets_of(self, host: str, now_s: float) -> tuple[int, list[wire.ProbeTarget]]:
        """What a host is to probe, and its version: the same for the same targets, whichever controller gives them."""
        pairs = self._pairs_of.get(host, {}).values()
        is_known = host in self._targets
        for pair in pairs:
            candidates = pair.candidates
            if candidates.age(now_s):
                self.version += 1
                (self._exploring.discard if candidates.is_complete else self._exploring.add)(pair.key)
            if pair.changes != candidates.changes:
                pair.target, pair.changes, is_known = _target(pair.key, candidates), candidates.changes, False
        if not is_known:
            targets = [pair.target for pair in pairs]
            digest = hashlib.blake2b(digest_size=8)
            for target in targets:
                digest.update(target.SerializeToString(deterministic=True))
            self._targets[host] = (int.from_bytes(digest.digest()) if targets else 0), targets
        return self._targets[host]

    def _new_pair(self, key: _Key) -> _Pair:
        source, destination = self._nic_by_address[key[0]], self._nic_by_address[key[1]]
        candidates = PairCandidates(self._routing.candidate_paths(source, destination), self._stale_after_s)
        candidates.rerouted(self._dead)
        target, changes = _target(key, candidates), candidates.changes
        pair = _Pair(key, source, destination, candidates, ProbeStream(), {}, target, changes)
        self._pairs[key] = pair
        self._targets.pop(source.host, None)
        self._pairs_of.setdefault(source.host, {})[key] = pair
        self._pairs_to.setdefault(destination.host, {})[key] = candidates
        self._silent.add(candidates, source.host, destination.host)
        self._exploring.add(key)
        return pair

    def _view(self, pair: _Pair, now_s: float) -> PairView:
        window = pair.stream.window
        candidates = pair.candidates.candidates(now_s)
        return PairView(
            pair.source,
            pair.destination,
            *pair.key[2:],
            candidates,
            all(candidate.freshness is Freshness.FRESH for candidate in candidates),
            window.received,
            window.missing,
            window.late,
            window.duplicates,
        )


def _key(flow: FiveTuple) -> _Key:
    return flow.source_address, flow.destination_address, flow.protocol, flow.destination_port


def _target(key: _Key, candidates: PairCandidates) -> wire.ProbeTarget:
    source_address, destination_address, protocol, destination_port = key
    return wire.ProbeTarget(
        source_address=source_address,
        destination_address=destination_address,
        protocol=protocol,
        destination_port=destination_port,
        source_ports=candidates.kept_ports(),
        is_exploring=candidates.wants_ports,
    )
