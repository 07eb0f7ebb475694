"""Check what hosts report of their probes, and keep what it tells of paths and links."""

import hashlib
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace

import numpy as np

from controller.registry.errors import NotOwnerError
from controller.telemetry.exchange import PairKey, ProbeAnswer, ProbeExchange, ProbeReport, ProbeTarget
from controller.telemetry.foreign_loads import COUNTERS, ForeignLoads
from controller.telemetry.int_coverage import IntCoverage
from controller.telemetry.int_reports import NOT_KNOWN, HopSamples, IntReportBatch
from controller.telemetry.int_units import IntUnits
from controller.telemetry.link_failures import LinkFailureDetector
from controller.telemetry.link_measurements import LinkMeasurements
from controller.telemetry.pair_monitor import PairMonitor
from controller.telemetry.path_decoding import PathDecoder
from controller.telemetry.path_table import Candidate, Freshness
from controller.telemetry.probed_cables import ProbedCables
from controller.telemetry.report_checks import SILENCE_S, RejectReason, Reporters, check_arrival
from hostlib.telemetry.parsing import Malformed
from hostlib.telemetry.probe_agent import MAX_REPORTS
from hostlib.telemetry.receiver import DropReason
from hostlib.wire.int_md import UTILISATION_WINDOW_US
from hostlib.wire.sequence_window import Arrival, SequenceWindow
from hostlib.wire.session_window import SessionWindow
from topologies.addressing import FiveTuple
from topologies.fabric import Nic, Path
from topologies.routing import Routing

STALE_AFTER_S = 5.0
"""Five times as long as hosts take to probe a path again while they have room for it."""

_AGENT_REASONS = frozenset(str(reason) for reason in (*Malformed, *DropReason))
"""Why the agents of hosts drop packets."""

_NEW = Arrival.NEW

_MAX_DROPPED = 1 << 48
"""Packets that a host receives in a month at a hundred million a second."""

_NS_PER_S = 1_000_000_000
_MAX_AGE_NS = 10 * _NS_PER_S
_EXPLORING_INTERVAL_S = 0.05
_STEADY_INTERVAL_S = 0.25
_MAX_EXCHANGES_PER_S = 1000
"""Of all hosts together."""


@dataclass(frozen=True, slots=True)
class PairView:
    """The paths between two NICs, and how many of the sender's probes were received or are missing.

    ``late`` counts probes that arrived behind a later one, ``duplicates`` those that were reported more than once.
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
    source: Nic
    destination: Nic
    monitor: PairMonitor
    stream: SessionWindow
    paths: dict[bytes, Path]
    """Candidate paths already decoded, by the bytes of the INT stack that tell them."""
    target: ProbeTarget


def ports_by_pair(flows: Iterable[FiveTuple]) -> dict[PairKey, set[int]]:
    """The source ports of flows, by the pair that is probed for them."""
    ports: dict[PairKey, set[int]] = {}
    for flow in flows:
        ports.setdefault(_pair_key(flow), set()).add(flow.source_port)
    return ports


class Telemetry:
    """The paths and loads of a fabric, as probes between its hosts show them.

    ``set_probe_targets`` says for which flows hosts probe; pairs whose paths cross a switch ``without_int``, other than
    an ordinary one, are left out. Every report is checked against the topology and the other
    reports; ``rejected`` counts those that fail, which change nothing else, and ``accepted`` the others.
    """

    def __init__(
        self,
        routing: Routing,
        lease_s: float,
        stale_after_s: float = STALE_AFTER_S,
        window_us: float = UTILISATION_WINDOW_US,
        without_int: Set[str] = frozenset(),
    ) -> None:
        self.version = 0
        """Rises whenever the path of a flow, the completeness of a pair, a silent link or a black hole changes."""
        self.accepted = 0
        self.rejected: Counter[RejectReason] = Counter()
        self.dropped_by_hosts: dict[str, Mapping[str, int]] = {}
        self.links = LinkMeasurements(window_us)
        self.foreign_loads = ForeignLoads(routing.fabric, window_us, stale_after_s)
        self.reporters = Reporters(lease_s)
        self._routing = routing
        self._nic_by_address = routing.fabric.nic_by_address
        self._stale_after_s = stale_after_s
        self._min_interval_s = len(routing.fabric.hosts) / _MAX_EXCHANGES_PER_S
        self._decoder = PathDecoder(routing.fabric)
        self._units = IntUnits(routing.fabric)
        self.probed_cables = ProbedCables(routing.fabric)
        self._coverage = IntCoverage(frozenset(without_int))
        ordinary = routing.fabric.ordinary_switches
        self._silent_hops = frozenset(link.index for link in routing.fabric.links if link.source in ordinary)
        self._pairs: dict[PairKey, _Pair] = {}
        self._pairs_from: dict[str, dict[PairKey, _Pair]] = {}
        self._pairs_to: dict[str, dict[PairKey, _Pair]] = {}
        self._failures = LinkFailureDetector(self.links, stale_after_s)
        self._dead_links: Set[int] = frozenset()
        self._exploring: set[PairKey] = set()
        self._targets: dict[str, tuple[int, Sequence[ProbeTarget]]] = {}
        """By host, its targets and their version; absent where they may have changed."""

    def set_probe_targets(self, flows: Iterable[FiveTuple]) -> None:
        """Have hosts probe between the NICs of these flows, keep the ports of the flows, and forget all other pairs."""
        deque(self.setting_probe_targets(ports_by_pair(flows)), maxlen=0)

    def setting_probe_targets(self, ports: Mapping[PairKey, Set[int]]) -> Iterator[None]:
        """Do the same pair by pair; what has been done when the caller stops is in force."""
        silent_links = self.silent_links
        for key in self._pairs.keys() - ports.keys():
            self._remove_pair(key)
            yield
        for key, flow_ports in ports.items():
            if self._is_covered(key):
                pair = self._pairs.get(key) or self._add_pair(key)
                pair.monitor.keep_ports(frozenset(flow_ports))
            yield
        self.version += self.silent_links != silent_links

    def authorise(self, host: str, owner_token: str, num_reports: int, now_s: float) -> None:
        """Check that an agent may report for a host, and count its reports as rejected if not.

        Raises:
            NotOwnerError: Another agent reports for the host.
        """
        try:
            self.reporters.authorise(host, owner_token, now_s)
        except NotOwnerError:
            self.rejected[RejectReason.NOT_OWNER] += num_reports
            raise

    def exchange(self, exchange: ProbeExchange, now_s: float) -> ProbeAnswer:
        """Take the reports of an authorised host, and answer with its targets."""
        host = exchange.host
        if self._accept_exchange(exchange, now_s):
            self.dropped_by_hosts[host] = {
                reason: packets for reason, packets in exchange.dropped.items() if reason in _AGENT_REASONS
            }
            self._take_reports(exchange, now_s)
            self._judge_links(host, now_s)
        version, targets = self._targets_of(host, now_s)
        return ProbeAnswer(
            max(self._min_interval_s, _EXPLORING_INTERVAL_S if self._exploring else _STEADY_INTERVAL_S),
            version,
            targets if version != exchange.targets_version else (),
        )

    def record_counted(self, loads_bps: Mapping[int, float], now_s: float) -> None:
        """Record the loads of links as the counters of switches without INT show them."""
        links = np.fromiter(loads_bps, np.int64, len(loads_bps))
        unknown = np.full(len(links), NOT_KNOWN)
        window_bytes = np.fromiter(loads_bps.values(), np.float64, len(loads_bps)) / self.links.bps_per_byte
        samples = HopSamples(
            links=links,
            came_s=np.full(len(links), now_s),
            latency_us=unknown,
            level=unknown,
            queue_packets=unknown,
            window_bytes=window_bytes.round().astype(np.int64),
        )
        self.foreign_loads.record(self.links.record(samples, COUNTERS), COUNTERS)

    @property
    def windows(self) -> tuple[SequenceWindow, ...]:
        """Of every pair that is probed, the count of its probes."""
        return tuple(pair.stream.window for pair in self._pairs.values())

    def pairs(self, now_s: float) -> tuple[PairView, ...]:
        """Return what is known of every pair that is probed, in the order of their addresses."""
        return tuple(self.pairs_in_turn(now_s))

    def pairs_in_turn(self, now_s: float) -> Iterator[PairView]:
        """The same one after the other; pairs may come and go meanwhile."""
        for key in sorted(self._pairs):
            pair = self._pairs.get(key)
            if pair is not None:
                yield _view(key, pair, now_s)

    def path_of(self, flow: FiveTuple, now_s: float) -> Path | None:
        """Return the path that a flow takes where no rule steers it, None if that is not known or stale."""
        pair = self._pairs.get(_pair_key(flow))
        return pair.monitor.table.path_of(flow.source_port, now_s) if pair is not None else None

    @property
    def silent_links(self) -> frozenset[int]:
        """Links that lose all probes, as all pairs agree whose probes cross them."""
        return self._failures.silent_links

    @property
    def overruled(self) -> Mapping[int, frozenset[str]]:
        """By silent link, the hosts that claim to receive probes over it, against all others."""
        return self._failures.overruled

    def black_holes(self, flow: FiveTuple) -> frozenset[Path]:
        """Return the paths that lose all probes between the NICs of a flow, though their links work for others."""
        pair = self._pairs.get(_pair_key(flow))
        return pair.monitor.black_holes if pair is not None else frozenset()

    def reroute(self, dead_links: Set[int]) -> None:
        """Adapt to a fabric that routes around these links from now on."""
        self._dead_links = dead_links
        for pair in self._pairs.values():
            pair.monitor.reroute(dead_links)

    def find_paths(self, routing: Routing) -> None:
        """Find the paths of all pairs under a routing, which then knows them; for a thread beside the event loop."""
        for pair in list(self._pairs.values()):
            routing.candidate_paths(pair.source, pair.destination)

    def use_paths(self, routing: Routing) -> None:
        """Use the candidate paths of a routing; what is known of a pair whose paths are others is forgotten."""
        if routing is self._routing:
            return
        self._routing = routing
        for key, pair in list(self._pairs.items()):
            if tuple(pair.monitor.table.paths) != tuple(routing.candidate_paths(pair.source, pair.destination)):
                ports = pair.monitor.table.flow_ports
                self._remove_pair(key)
                self._add_pair(key).monitor.keep_ports(ports)
                self.version += 1

    def flows_along(self, flow: FiveTuple, path: Path, now_s: float) -> tuple[FiveTuple, ...]:
        """Return the flow from every port that is known to lead along a path, lowest first."""
        pair = self._pairs.get(_pair_key(flow))
        ports = pair.monitor.table.ports_along(path, now_s) if pair is not None else ()
        return tuple(replace(flow, source_port=port) for port in ports)

    def _accept_exchange(self, exchange: ProbeExchange, now_s: float) -> bool:
        """Check an exchange as a whole, and forget losses that lost reports may explain."""
        host, num_reports = exchange.host, len(exchange.reports)
        reason = self.reporters.check_exchange(host, exchange.session, exchange.number, exchange.clock_ns, now_s)
        if reason is None and num_reports > MAX_REPORTS:
            reason = RejectReason.TOO_MANY
        if reason is None and max(exchange.dropped.values(), default=0) > _MAX_DROPPED:
            reason = RejectReason.COUNTS
        is_replayed = reason is RejectReason.REPLAYED_EXCHANGE
        if not is_replayed and (reason is not None or self.reporters.has_gap(host)):
            for pair in self._pairs_to.get(host, {}).values():
                pair.monitor.reset_loss(now_s)
        if reason is not None:
            self.rejected[reason] += num_reports
        return reason is None

    def _take_reports(self, exchange: ProbeExchange, now_s: float) -> None:
        """Record the reports that pass all checks, and count the others by reason."""
        host, clock_ns = exchange.host, exchange.clock_ns
        batch = IntReportBatch([report.stack for report in exchange.reports])
        accepted: dict[int, tuple[Path, float]] = {}
        for place, (report, path_octets) in enumerate(zip(exchange.reports, batch.path_octets, strict=True)):
            path = self._take_report(report, path_octets, place in batch.contradictory, host, clock_ns, now_s)
            if isinstance(path, RejectReason):
                self.rejected[path] += 1
            else:
                accepted[place] = path, now_s - report.age_ns / _NS_PER_S
        self.accepted += len(accepted)
        if accepted:
            samples = self._units.converted(batch.samples(accepted, self._silent_hops))
            self.foreign_loads.record(self.links.record(samples, host), host)

    def _take_report(
        self, report: ProbeReport, path_octets: bytes, is_contradictory: bool, host: str, clock_ns: int, now_s: float
    ) -> Path | RejectReason:
        """Record a probe; return the path it took, or why the report is rejected."""
        key, port, session, sequence, port_sequence, sent_ns, age_ns, _ = report
        pair = self._pairs.get(key)
        if pair is None:
            destination = self._nic_by_address.get(key[1])
            is_own = destination is not None and destination.host == host
            return RejectReason.NOT_WANTED if is_own else RejectReason.NOT_ITS_HOST
        if pair.destination.host != host:
            return RejectReason.NOT_ITS_HOST
        table = pair.monitor.table
        if not table.accepts(port):
            return RejectReason.SOURCE_PORT
        if age_ns > _MAX_AGE_NS:
            return RejectReason.TOO_OLD
        stream, came_s = pair.stream, now_s - age_ns / _NS_PER_S
        arrival = stream.note(session, sequence, clock_ns - age_ns - sent_ns, came_s)
        if arrival is not _NEW and (reason := check_arrival(arrival)) is not None:
            return reason
        path = pair.paths.get(path_octets) or self._decoder.decode(path_octets, pair.source, pair.destination)
        if isinstance(path, RejectReason):
            if path is RejectReason.NOT_ADJACENT:
                self.probed_cables.note(path_octets)
            return path
        if is_contradictory:
            return RejectReason.HOP_TIMES
        if path_octets not in pair.paths:
            if path not in table.paths:
                return RejectReason.NOT_A_CANDIDATE
            pair.paths[path_octets] = path
        number = stream.generation << 32 | sequence
        self.version += pair.monitor.record_probe(port, port_sequence, number, path, came_s)
        return path

    def _judge_links(self, host: str, now_s: float) -> None:
        """Update silent links and black holes after new reports of a host."""
        pairs = self._pairs_to.get(host, {}).values()
        self.version += self._failures.update([pair.monitor for pair in pairs], now_s)
        for pair in pairs:
            has_gaps = pair.stream.window.recent_loss > 0
            self.version += pair.monitor.update_black_holes(self.silent_links, has_gaps)

    def _targets_of(self, host: str, now_s: float) -> tuple[int, Sequence[ProbeTarget]]:
        """Return the targets of a host and their version, which depends on nothing but the targets."""
        pairs = self._pairs_from.get(host, {})
        for key, pair in pairs.items():
            table = pair.monitor.table
            if table.update_completeness(now_s):
                self.version += 1
                (self._exploring.discard if table.is_complete else self._exploring.add)(key)
            if table.take_changed():
                pair.target = ProbeTarget(key, table.kept_ports(), table.wants_ports)
                self._targets.pop(host, None)
        if host not in self._targets:
            targets = [pair.target for pair in pairs.values()]
            digest = hashlib.blake2b(b"".join(target.octets() for target in targets), digest_size=8)
            self._targets[host] = (int.from_bytes(digest.digest()) if targets else 0), targets
        return self._targets[host]

    def _is_covered(self, key: PairKey) -> bool:
        nics = self._nic_by_address
        return self._coverage.covers(nics[key[0]], nics[key[1]], self._routing)

    def _add_pair(self, key: PairKey) -> _Pair:
        source, destination = self._nic_by_address[key[0]], self._nic_by_address[key[1]]
        monitor = PairMonitor(self._routing.candidate_paths(source, destination), self._stale_after_s)
        monitor.reroute(self._dead_links)
        target = ProbeTarget(key, monitor.table.kept_ports(), monitor.table.wants_ports)
        pair = self._pairs[key] = _Pair(source, destination, monitor, SessionWindow(SILENCE_S), {}, target)
        self._targets.pop(source.host, None)
        self._pairs_from.setdefault(source.host, {})[key] = pair
        self._pairs_to.setdefault(destination.host, {})[key] = pair
        self._failures.add_pair(monitor, source.host, destination.host)
        self._exploring.add(key)
        return pair

    def _remove_pair(self, key: PairKey) -> None:
        pair = self._pairs.pop(key)
        del self._pairs_from[pair.source.host][key]
        del self._pairs_to[pair.destination.host][key]
        self._failures.remove_pair(pair.monitor)
        self._exploring.discard(key)
        self._targets.pop(pair.source.host, None)


def _pair_key(flow: FiveTuple) -> PairKey:
    return flow.source_address, flow.destination_address, flow.protocol, flow.destination_port


def _view(key: PairKey, pair: _Pair, now_s: float) -> PairView:
    window = pair.stream.window
    candidates = pair.monitor.table.candidates(now_s, pair.monitor.black_holes)
    return PairView(
        pair.source,
        pair.destination,
        *key[2:],
        candidates,
        all(candidate.freshness is Freshness.FRESH for candidate in candidates),
        window.received,
        window.missing,
        window.late,
        window.duplicates,
    )
