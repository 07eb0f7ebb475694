"""The telemetry against the plain way to do the same: tables, links, refusals, what is silent and what is answered."""

import random
import struct
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.telemetry.link_failures import LinkFailureDetector
from controller.telemetry.pair_monitor import PairMonitor
from controller.telemetry.report_checks import RejectReason
from controller.telemetry.telemetry import PairView, Telemetry
from hostlib.telemetry.probe_agent import MAX_REPORTS
from hostlib.wire import trainyard_pb2 as wire
from tests.controller.telemetry.plain import PlainTelemetry
from tests.controller.telemetry.plain_candidates import CandidateRow
from tests.controller.telemetry.probed import flow_between
from tests.controller.telemetry.reports import exchange, five_tuple_to_wire, stack
from topologies.addressing import FiveTuple
from topologies.fabric import Path
from topologies.routing import Routing

NS_PER_S = 1_000_000_000
STALE_S = 3.0
TURN_S = 0.5
PORTS = (49152, *range(50_000, 50_018))
NO_LINK = -1
PAIRS = (("h0", "h2"), ("h1", "h2"), ("h0", "h3"), ("h0", "h1"))


@pytest.fixture(autouse=True, scope="module")
def _reports_alone() -> Iterator[None]:
    """Leave out overruled hosts and black holes: they follow from what is compared and have tests of their own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LinkFailureDetector, "_vote", lambda *_: frozenset())
        patch.setattr(PairMonitor, "update_black_holes", lambda *_: False)
        yield


class Hosts:
    """Hosts that probe each other from a few ports in turn, honest for the most part, through what fails at times.

    Whatever they say is told to both controllers at once.
    """

    def __init__(self, routing: Routing, seed: int) -> None:
        self.random = random.Random(seed)
        self.routing = routing
        nics = {host: routing.fabric.nics[host][0] for host in routing.fabric.hosts}
        self.flows = [flow_between(nics[one], nics[other]) for one, other in PAIRS]
        self.watched = self.flows[:]
        self.telemetry = Telemetry(routing, 30.0, STALE_S)
        self.plain = PlainTelemetry(routing, 30.0, STALE_S)
        self.watch()
        self.now_s = 10.0
        self.lost = NO_LINK
        self._shift = 0
        self._numbers = Counter[object]()

    def watch(self) -> None:
        self.telemetry.set_probe_targets(self.watched)
        self.plain.set_probe_targets(self.watched)

    def turn(self) -> None:
        """Time passes, something may happen, and every host tells what has come to it."""
        self.now_s += TURN_S
        match self.random.randrange(40):
            case 0:
                self.watched = self.random.sample(self.flows, len(self.flows) - 1)
                self.watch()
            case 1 | 2:
                dead = frozenset({self.lost} - {NO_LINK}) if self.random.random() < 0.5 else frozenset[int]()
                self.telemetry.reroute(dead)
                self.plain.reroute(dead)
            case 3:
                self._shift += 1
            case 4 | 5:
                switches = [link.index for link in self.routing.fabric.links if link.source in ["t0", "t1", "a0", "a1"]]
                self.lost = self.random.choice([NO_LINK, *switches])
        for host in self.routing.fabric.hosts:
            self.exchange(host)

    def exchange(self, host: str) -> None:
        fate = self.random.random()
        reports = [report for flow in self.flows for report in self._reports(flow, host)]
        if fate < 0.02:
            reports = [wire.ProbeReport()] * (MAX_REPORTS + 1)
        number = self._numbers[host]
        self._numbers[host] += fate > 0.04
        clock_s = self.now_s + (5.0 if 0.04 < fate < 0.05 else 0.0)
        request = wire.ExchangeProbesRequest(
            host=host, session=1, number=number, clock_ns=round(clock_s * NS_PER_S), reports=reports
        )
        if 0.05 < fate < 0.07:
            return  # it is lost
        for one in (self.telemetry, self.plain):
            one.reporters.authorise(host, "token", self.now_s)
        answer = exchange(self.telemetry, request, self.now_s)
        assert list(answer.targets) == self.plain.exchange(request, self.now_s)
        assert self.telemetry.silent_links == self.plain.silent
        assert self.telemetry.version == self.plain.version
        assert self.telemetry.rejected == self.plain.rejected

    def _reports(self, flow: FiveTuple, host: str) -> list[wire.ProbeReport]:
        """What of a round of probes comes, some of it forged; to a host that is not theirs, next to nothing."""
        ends = self.routing.fabric.nic_by_address
        if ends[flow.destination_address].host != host and self.random.random() < 0.99:
            return []
        paths = self.routing.candidate_paths(ends[flow.source_address], ends[flow.destination_address])
        reports = []
        for port in self.random.sample(PORTS, 6) if self.random.random() < 0.05 else PORTS:
            sequence, port_sequence = self._numbers[flow], self._numbers[flow, port]
            self._numbers[flow] += 1
            self._numbers[flow, port] += 1
            path = paths[(port + self._shift * (port % 3)) % len(paths)]
            if self.lost in path or self.random.random() < 0.01:
                continue
            age_ns = self.random.randrange(NS_PER_S // 2)
            reports.append(
                wire.ProbeReport(
                    five_tuple=five_tuple_to_wire(flow, port),
                    session=1,
                    sequence=sequence,
                    port_sequence=port_sequence,
                    sent_ns=round(self.now_s * NS_PER_S) - age_ns,
                    age_ns=age_ns,
                    stack=self._measured(stack(self.routing.fabric, path)),
                )
            )
            if self.random.random() < 0.03:
                self._forge(reports[-1], paths)
        if self.random.random() < 0.1:
            self.random.shuffle(reports)
        return reports

    def _measured(self, octets: bytes) -> bytes:
        """The stack with levels, queues and counters of its own; at times one that a switch does not know."""
        changed = bytearray(octets)
        for at in range(0, len(changed), 36):
            draw = self.random.randrange
            struct.pack_into("!I", changed, at + 12, self.random.choice([draw(10) << 24 | draw(1 << 24), 0xFFFF_FFFF]))
            struct.pack_into("!I", changed, at + 32, self.random.choice([draw(1 << 32), 0xFFFF_FFFF]))
            if draw(10) == 0:
                struct.pack_into("!I", changed, at + 8, 0xFFFF_FFFF)
                struct.pack_into("!Q", changed, at + 16, self.random.choice([1, (1 << 64) - 1]))
        return bytes(changed)

    def _forge(self, report: wire.ProbeReport, paths: tuple[Path, ...]) -> None:
        draw = self.random.randrange
        octets = bytearray(report.stack)
        match draw(14):
            case 0:
                report.five_tuple.destination_address = draw(1 << 32)
            case 1:
                report.five_tuple.destination_port = draw(1 << 16)
            case 2:
                report.five_tuple.source_port = self.random.choice([80, 1 << 20, 50_000])
            case 3:
                report.age_ns = draw(12 * NS_PER_S)
            case 4:
                report.session = 0
            case 5:
                report.sequence = max(0, report.sequence + self.random.choice([-300, -7, -1, 3, 1 << 17]))
            case 6:
                report.sent_ns += self.random.choice([-3, 3]) * NS_PER_S
            case 7:
                report.stack = report.stack[: draw(len(octets) + 1)]
            case 8:
                report.stack = stack(self.routing.fabric, self.random.choice(paths))
            case 9:
                report.stack = stack(self.routing.fabric, _detour(self.routing, paths[0]))
            case 10:
                report.stack = report.stack[36:]
            case _:
                # Anything of a hop: switch, ports, latency, times.
                octets[draw(len(octets))] = self.random.choice([0, 1, 9, 255])
                report.stack = bytes(octets)

    def compare_tables(self) -> None:
        views = {_key(view): view for view in self.telemetry.pairs(self.now_s)}
        assert views.keys() == self.plain.pairs.keys()
        for key, (candidates, stream) in self.plain.pairs.items():
            view, window = views[key], stream.window
            assert _rows(view) == _approximately(candidates.rows(self.now_s))
            assert (view.received, view.missing) == (window.received, window.missing)
            assert (view.late, view.duplicates) == (window.late, window.duplicates)
        for link in self.routing.fabric.links:
            measured = self.telemetry.links.get(link.index)
            assert measured == self.plain.measured.get(link.index)
            # Whose word counts no longer if another speaks.
            assert measured is None or list(measured.window_bytes) == list(self.plain.measured[link.index].window_bytes)


@pytest.mark.slow
@given(seed=st.integers(0, 1 << 32))
@settings(max_examples=8)
def test_tables_and_refusals_are_those_of_the_plain_way(routing: Routing, seed: int) -> None:
    hosts = Hosts(routing, seed)
    for number in range(30):
        hosts.turn()
        if number % 6 == 5:
            hosts.compare_tables()


def test_what_is_compared_are_all_refusals_whole_pairs_and_silent_links(routing: Routing) -> None:
    dropped, was_silent, was_complete = set[RejectReason](), False, False
    for seed in range(8):
        hosts = Hosts(routing, seed)
        for _ in range(30):
            hosts.turn()
            was_silent |= bool(hosts.telemetry.silent_links)
            was_complete |= any(view.is_complete for view in hosts.telemetry.pairs(hosts.now_s))
        dropped |= hosts.telemetry.rejected.keys()
    assert dropped == set(RejectReason) - {
        RejectReason.NOT_OWNER,
        RejectReason.COUNTS,
    }  # which do not look at the reports
    assert was_silent
    assert was_complete


def _detour(routing: Routing, path: Path) -> Path:
    """Up and down once more behind a path's first way down, where it has one."""
    if len(path) < 4:
        return path
    links = routing.fabric.links
    tor = links[path[2]].destination
    up = next(link for link in routing.fabric.links_from[tor] if link.destination.startswith("a"))
    down = next(link for link in routing.fabric.links_from[up.destination] if link.destination == tor)
    return (*path[:3], up.index, down.index, path[-1])


def _key(view: PairView) -> tuple[int, int, int, int]:
    return view.source.address, view.destination.address, view.protocol, view.destination_port


def _rows(view: PairView) -> dict[Path, tuple[object, ...]]:
    return {
        one.path: (one.freshness.value == "fresh", one.source_ports, one.age_s, pytest.approx(one.loss))
        for one in view.candidates
    }


def _approximately(rows: list[CandidateRow]) -> dict[Path, tuple[object, ...]]:
    return {path: (is_fresh, ports, age_s, loss) for path, is_fresh, ports, age_s, loss in rows}
