"""Telemetry the plain way: one report after the other, and every link asked of every pair."""

import math
from collections import Counter
from collections.abc import Iterable, Set

from controller.telemetry.link_measurements import MAX_REPORTERS, LinkMeasurement
from controller.telemetry.path_table import REPORTS_TO_CONFIRM
from controller.telemetry.report_checks import SILENCE_S, RejectReason, Reporters, check_arrival
from hostlib.telemetry.probe_agent import MAX_REPORTS
from hostlib.wire import trainyard_pb2 as wire
from hostlib.wire.int_md import Hop, read_stack
from hostlib.wire.session_window import SessionWindow
from tests.controller.telemetry.plain_candidates import PlainCandidates
from topologies.addressing import FIRST_SOURCE_PORT, LAST_SOURCE_PORT, FiveTuple
from topologies.fabric import Path
from topologies.routing import Routing

Key = tuple[int, int, int, int]


class PlainTelemetry:
    def __init__(self, routing: Routing, lease_s: float, stale_after_s: float) -> None:
        self.version = 0
        self.rejected: Counter[RejectReason] = Counter()
        self.measured: dict[int, LinkMeasurement] = {}
        self.pairs: dict[Key, tuple[PlainCandidates, SessionWindow]] = {}
        self.silent: set[int] = set()
        self.reporters = Reporters(lease_s)
        self._routing = routing
        self._fabric = routing.fabric
        self._stale_after_s = stale_after_s
        self._dead: Set[int] = frozenset()

    def set_probe_targets(self, flows: Iterable[FiveTuple]) -> None:
        before, silent = self.pairs, self.silent
        ports: dict[Key, set[int]] = {}
        for flow in flows:
            key = flow.source_address, flow.destination_address, flow.protocol, flow.destination_port
            ports.setdefault(key, set()).add(flow.source_port)
        self.pairs = {key: before[key] for key in before if key in ports}
        for key, own in ports.items():
            if key not in self.pairs:
                ends = self._fabric.nic_by_address[key[0]], self._fabric.nic_by_address[key[1]]
                candidates = PlainCandidates(self._routing.candidate_paths(*ends), self._stale_after_s)
                candidates.reroute(self._dead)
                self.pairs[key] = candidates, SessionWindow(SILENCE_S)
            self.pairs[key][0].keep_ports(own)
        self.silent = {link for link in silent if any(self._crosses(pair, link) for pair, _ in self.pairs.values())}
        self.version += self.silent != silent

    def reroute(self, dead: Set[int]) -> None:
        self._dead = dead
        for candidates, _ in self.pairs.values():
            candidates.reroute(dead)

    def exchange(self, request: wire.ExchangeProbesRequest, now_s: float) -> list[wire.ProbeTarget]:
        """Take the reports; returns all that the host is to probe."""
        host = request.host
        drop = self.reporters.check_exchange(host, request.session, request.number, request.clock_ns, now_s)
        if drop is None and len(request.reports) > MAX_REPORTS:
            drop = RejectReason.TOO_MANY
        if drop is not RejectReason.REPLAYED_EXCHANGE and (drop is not None or self.reporters.has_gap(host)):
            for candidates in self._pairs_at(host, end=1).values():
                candidates.reset_loss(now_s)
        if drop is not None:
            self.rejected[drop] += len(request.reports)
        else:
            for report in request.reports:
                refused = self._note(report, request, now_s)
                if refused is not None:
                    self.rejected[refused] += 1
            self._look(host, now_s)
        return [self._target(key, candidates, now_s) for key, candidates in self._pairs_at(host, end=0).items()]

    def _note(self, report: wire.ProbeReport, request: wire.ExchangeProbesRequest, now_s: float) -> RejectReason | None:
        flow = report.five_tuple
        key = flow.source_address, flow.destination_address, flow.protocol, flow.destination_port
        destination = self._fabric.nic_by_address.get(flow.destination_address)
        if destination is None or destination.host != request.host:
            return RejectReason.NOT_ITS_HOST
        if key not in self.pairs:
            return RejectReason.NOT_WANTED
        candidates, stream = self.pairs[key]
        if (
            not FIRST_SOURCE_PORT <= flow.source_port <= LAST_SOURCE_PORT
            and flow.source_port not in candidates.flow_ports
        ):
            return RejectReason.SOURCE_PORT
        if report.age_ns > 10_000_000_000:
            return RejectReason.TOO_OLD
        travelled_ns = request.clock_ns - report.age_ns - report.sent_ns
        came_s = now_s - report.age_ns / 1_000_000_000
        drop = check_arrival(stream.note(report.session, report.sequence, travelled_ns, came_s))
        if drop is not None:
            return drop
        try:
            hops = read_stack(report.stack)
        except ValueError:
            return RejectReason.STACK
        path = self._walk(hops, flow.source_address, flow.destination_address)
        if isinstance(path, RejectReason):
            return path
        for hop in hops:
            if hop.ingress_us is not None and hop.egress_us is not None:
                travelled_us = hop.egress_us - hop.ingress_us
                if travelled_us < 0 or hop.latency_us not in (None, travelled_us):
                    return RejectReason.HOP_TIMES
        if path not in candidates.seen_s:
            return RejectReason.NOT_A_CANDIDATE
        came_s = now_s - report.age_ns / 1_000_000_000
        for link, hop in zip(path[1:], hops, strict=True):
            self._measure(link, hop, request.host, came_s)
        number = stream.generation << 32 | report.sequence
        self.version += candidates.record_probe(flow.source_port, report.port_sequence, number, path, came_s)
        return None

    def _walk(self, hops: tuple[Hop, ...], source_address: int, destination_address: int) -> Path | RejectReason:
        if not hops:
            return RejectReason.STACK
        links, switches = self._fabric.links, self._fabric.switches
        destination = self._fabric.nic_by_address[destination_address]
        path = [self._fabric.nic_by_address[source_address].link]
        for hop in hops:
            if hop.node_id is None or not 1 <= hop.node_id <= len(switches):
                return RejectReason.UNKNOWN_SWITCH
            switch = switches[hop.node_id - 1]
            if (links[path[-1]].destination, links[path[-1]].destination_port) != (switch, hop.ingress_port):
                return RejectReason.NOT_ADJACENT
            leaving = [link.index for link in self._fabric.links_from[switch] if link.source_port == hop.egress_port]
            if not leaving:
                return RejectReason.NOT_ADJACENT
            path += leaving
        if (links[path[-1]].destination, links[path[-1]].destination_port) != (destination.host, destination.index):
            return RejectReason.NOT_ADJACENT
        return tuple(path)

    def _measure(self, link: int, hop: Hop, host: str, came_s: float) -> None:
        measured = self.measured.setdefault(link, LinkMeasurement(came_s))
        measured.measured_s = max(measured.measured_s, came_s)
        if hop.window_bytes is not None:
            measured.window_bytes.pop(host, None)
            measured.window_bytes[host] = came_s, hop.window_bytes
            if len(measured.window_bytes) > MAX_REPORTERS:
                del measured.window_bytes[next(iter(measured.window_bytes))]
        if hop.level is not None and hop.level < 8:
            measured.latency_us[hop.level] = hop.latency_us
            measured.queue_packets[hop.level] = hop.queue_packets

    def _look(self, host: str, now_s: float) -> None:
        before = set(self.silent)
        everyone = [candidates for candidates, _ in self.pairs.values()]
        own = self._pairs_at(host, end=1).values()
        for link in range(len(self._fabric.links)):
            crossing = [candidates for candidates in everyone if self._crosses(candidates, link)]
            is_heard = any(candidates.sees_working(link, now_s) for candidates in crossing)
            if link in before:
                if is_heard:
                    self.silent.remove(link)
                continue
            if not any(pair in crossing and pair.missing_probes(link, -math.inf, now_s) for pair in own):
                continue
            heard_s = self.measured[link].measured_s if link in self.measured else -math.inf
            missing = [candidates.missing_probes(link, heard_s, now_s) for candidates in crossing]
            told = [number for number in missing if number is not None]
            if not is_heard and len(told) == len(missing) and sum(told) >= REPORTS_TO_CONFIRM:
                self.silent.add(link)
        self.version += self.silent != before

    def _target(self, key: Key, candidates: PlainCandidates, now_s: float) -> wire.ProbeTarget:
        self.version += candidates.update_completeness(now_s)
        return wire.ProbeTarget(
            source_address=key[0],
            destination_address=key[1],
            protocol=key[2],
            destination_port=key[3],
            source_ports=sorted(candidates.flow_ports | candidates.ports.keys()),
            is_exploring=candidates.wants_ports(),
        )

    def _pairs_at(self, host: str, end: int) -> dict[Key, PlainCandidates]:
        """Those that start (0) or end (1) at a host."""
        nics = self._fabric.nic_by_address
        return {key: candidates for key, (candidates, _) in self.pairs.items() if nics[key[end]].host == host}

    def _crosses(self, candidates: PlainCandidates, link: int) -> bool:
        return any(link in path[1:] for path in candidates.seen_s)
