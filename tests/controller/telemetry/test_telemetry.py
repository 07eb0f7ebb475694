"""What a controller makes of exchanges: targets that it answers, and reports that it drops, each for its reason."""

import struct
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controller.registry.errors import NotOwnerError
from controller.telemetry.link_measurements import LinkMeasurements
from controller.telemetry.path_table import REPORTS_TO_CONFIRM, Freshness
from controller.telemetry.report_checks import SILENCE_S, RejectReason
from controller.telemetry.telemetry import Telemetry
from hostlib.telemetry.parsing import Malformed
from hostlib.telemetry.probe_agent import MAX_REPORTS
from hostlib.wire import trainyard_pb2 as wire
from tests.controller.telemetry.probed import flow_between
from tests.controller.telemetry.reports import exchange, five_tuple_to_wire, samples, stack
from topologies.fabric import Path
from topologies.given_routing import GivenRoutes, GivenRouting
from topologies.routing import Routing

NS_PER_S = 1_000_000_000
LEASE_S = 30.0
Change = Callable[[wire.ProbeReport], object]


class Controller:
    """Telemetry with one flow from h0 to h2 to watch, and h2's agent."""

    def __init__(self, routing: Routing) -> None:
        self.routing = routing
        nics = routing.fabric.nics
        self.flow = flow_between(nics["h0"][0], nics["h2"][0])
        self.paths = routing.candidate_paths(nics["h0"][0], nics["h2"][0])
        self.telemetry = Telemetry(routing, LEASE_S)
        self.telemetry.set_probe_targets([self.flow])
        self._number = 0
        self._sequence = 0

    def report(self, path: Path, port: int = 49152, change: Change | None = None) -> wire.ProbeReport:
        """The next probe's report, as changed."""
        report = wire.ProbeReport(
            five_tuple=five_tuple_to_wire(self.flow, port),
            session=1,
            sequence=self._sequence,
            stack=stack(self.routing.fabric, path),
        )
        self._sequence += 1
        if change is not None:
            change(report)
        return report

    def tell(
        self, reports: Sequence[wire.ProbeReport], now_s: float = 0.0, host: str = "h2", **fields: int
    ) -> wire.ExchangeProbesResponse:
        """An exchange of a host; returns the answer."""
        request = wire.ExchangeProbesRequest(
            host=host, session=1, number=self._number, clock_ns=round(now_s * NS_PER_S), reports=reports
        )
        for name, value in fields.items():
            setattr(request, name, value)
        self._number += 1
        self.telemetry.reporters.authorise(host, "token", now_s)
        return exchange(self.telemetry, request, now_s)

    def seen(self, now_s: float = 0.0) -> dict[Path, Freshness]:
        [pair] = self.telemetry.pairs(now_s)
        return {candidate.path: candidate.freshness for candidate in pair.candidates}


@pytest.fixture
def controller(routing: Routing) -> Controller:
    return Controller(routing)


def test_a_host_is_told_what_to_probe_and_only_what_is_new(controller: Controller) -> None:
    first = controller.tell([], host="h0")
    [target] = first.targets
    assert (target.source_address, target.destination_address) == (
        controller.flow.source_address,
        controller.flow.destination_address,
    )
    assert target.is_exploring
    assert list(target.source_ports) == [controller.flow.source_port]
    again = controller.tell([], host="h0", targets_version=first.targets_version)
    assert (again.targets_version, list(again.targets)) == (first.targets_version, [])
    assert not controller.tell([], host="h1").targets
    controller.tell([controller.report(controller.paths[0], port=50_001)])
    after = controller.tell([], host="h0", targets_version=first.targets_version)
    assert list(after.targets[0].source_ports) == [49152, 50_001]
    # Another controller that knows the same says the same.
    assert Controller(controller.routing).tell([], host="h0").targets_version == first.targets_version
    controller.telemetry.set_probe_targets([])
    assert controller.tell([], host="h0", targets_version=after.targets_version).targets_version == 0


def test_when_all_paths_are_seen_no_more_ports_are_tried(controller: Controller) -> None:
    quick_s = controller.tell([], host="h0").interval_s
    for first_port, is_exploring in ((50_000, True), (50_100, False)):
        for number, path in enumerate(controller.paths):
            controller.tell([controller.report(path, port=first_port + number) for _ in range(REPORTS_TO_CONFIRM)])
        # Each path has two ports to spare in the end.
        [target] = controller.tell([], host="h0").targets
        assert target.is_exploring == is_exploring
        assert controller.tell([], host="h0").interval_s > quick_s
    assert set(controller.seen().values()) == {Freshness.FRESH}
    [target] = controller.tell([], now_s=5.0, host="h0", clock_ns=5 * NS_PER_S).targets
    assert target.is_exploring


def test_links_have_what_their_switches_told(controller: Controller) -> None:
    path = controller.paths[0]
    controller.tell([controller.report(path)])
    measured = controller.telemetry.links.get(path[1])
    assert measured is not None
    assert (measured.latency_us[3], measured.queue_packets[3], measured.latency_us[0]) == (7, 2, None)
    assert controller.telemetry.links.load_bps(path[1], since_s=0.0) == 4096 * 8 / (1 << 14) * 1e6
    assert controller.telemetry.links.get(path[0]) is None  # no switch sends on it
    assert controller.telemetry.links.load_bps(path[1], since_s=0.1) is None


def test_that_nobody_could_hear_a_silent_link_any_more_is_news(controller: Controller) -> None:
    path, other = controller.paths[:2]

    def tell(paths: Sequence[Path], now_s: float) -> None:
        def at_the_time(report: wire.ProbeReport) -> None:
            report.port_sequence, report.sent_ns = round(10 * now_s), round(now_s * NS_PER_S)

        reports = [controller.report(one, 50_000 + controller.paths.index(one), at_the_time) for one in paths]
        controller.tell(reports, now_s)

    for tenths in range(REPORTS_TO_CONFIRM + 1):
        tell((path, other), tenths / 10)
    for tenths in range(10, 10 + REPORTS_TO_CONFIRM):
        tell((other,), tenths / 10)
    assert controller.telemetry.silent_links
    version = controller.telemetry.version
    controller.telemetry.set_probe_targets([])
    assert not controller.telemetry.silent_links
    assert controller.telemetry.version != version


def test_no_single_host_says_how_full_a_link_is() -> None:
    links, path = LinkMeasurements(window_us=8e6), (0, 1)

    def tell(host: str, window_bytes: int, now_s: float) -> None:
        links.record(samples(path, now_s, window_bytes), host)

    for number, window_bytes in enumerate((100, 101, 99)):
        tell(f"h{number}", window_bytes, 1.0)
    assert links.load_bps(1, since_s=0.0) == 100
    for _ in range(10):
        tell("liar", 10**9, 2.0)
    assert links.load_bps(1, since_s=0.0) == 100
    # What is old is not asked for, and of two the lower is taken.
    tell("h2", 98, 2.0)
    assert links.load_bps(1, since_s=1.5) == 98
    # Many hosts take turns.
    for number in range(20):
        tell(f"h{number}", number, 3.0)
    assert links.load_bps(1, since_s=0.0) == 17


def _set_stack(octets: bytes) -> Change:
    return lambda report: setattr(report, "stack", octets)


def _edit(at: int, form: str, value: int) -> Change:
    """Write into the stack: offsets from the end are those of the first switch."""

    def change(report: wire.ProbeReport) -> None:
        octets = bytearray(report.stack)
        struct.pack_into(form, octets, at % len(octets), value)
        report.stack = bytes(octets)

    return change


REFUSED: dict[str, tuple[RejectReason, Change]] = {
    "unknown NIC": (RejectReason.NOT_ITS_HOST, lambda report: setattr(report.five_tuple, "destination_address", 1)),
    "another pair": (RejectReason.NOT_WANTED, lambda report: setattr(report.five_tuple, "destination_port", 80)),
    "source port": (RejectReason.SOURCE_PORT, lambda report: setattr(report.five_tuple, "source_port", 1 << 20)),
    "well-known port": (RejectReason.SOURCE_PORT, lambda report: setattr(report.five_tuple, "source_port", 80)),
    "old": (RejectReason.TOO_OLD, lambda report: setattr(report, "age_ns", 11 * NS_PER_S)),
    "another session": (RejectReason.OTHER_SESSION, lambda report: setattr(report, "session", 1 << 31)),
    "doubled": (RejectReason.REPLAYED, lambda report: setattr(report, "sequence", 0)),
    "number": (RejectReason.NUMBER_JUMP, lambda report: setattr(report, "sequence", 1 << 31)),
    "sender's clock": (RejectReason.SENDER_CLOCK, lambda report: setattr(report, "sent_ns", 3 * NS_PER_S)),
    "no stack": (RejectReason.STACK, _set_stack(b"")),
    "half a hop": (RejectReason.STACK, _set_stack(bytes(35))),
    "unknown switch": (RejectReason.UNKNOWN_SWITCH, _edit(0, "!I", 99)),
    "no switch": (RejectReason.UNKNOWN_SWITCH, _edit(0, "!I", 0xFFFF_FFFF)),
    "another way in": (RejectReason.NOT_ADJACENT, _edit(-36 + 4, "!H", 9)),
    "another way out": (RejectReason.NOT_ADJACENT, _edit(-36 + 6, "!H", 9)),
    "no way out": (RejectReason.NOT_ADJACENT, _edit(-36 + 6, "!H", 0xFFFF)),
    "a hop is missing": (RejectReason.NOT_ADJACENT, lambda report: setattr(report, "stack", report.stack[36:])),
    "latency": (RejectReason.HOP_TIMES, _edit(8, "!I", 6)),
    "time goes back": (RejectReason.HOP_TIMES, _edit(24, "!Q", 0)),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_believed_is_dropped_for_its_reason(controller: Controller, case: str) -> None:
    expected, change = REFUSED[case]
    controller.tell([controller.report(controller.paths[0])])
    forged = [controller.report(controller.paths[1], 50_000, change) for _ in range(REPORTS_TO_CONFIRM)]
    controller.tell(forged)
    # After a jump, the sender's clock is believed as it is then.
    dropped = 1 if expected is RejectReason.SENDER_CLOCK else len(forged)
    assert controller.telemetry.rejected == {expected: dropped}
    assert set(controller.seen().values()) == {Freshness.UNSEEN}


@given(
    stack=st.binary(max_size=150),
    numbers=st.tuples(*[st.integers(0, 0xFFFF_FFFF)] * 3),
    times=st.tuples(*[st.integers(0, (1 << 64) - 1)] * 2),
    port=st.integers(0, 0xFFFF_FFFF),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_no_report_does_more_than_to_be_dropped(
    routing: Routing, stack: bytes, numbers: tuple[int, int, int], times: tuple[int, int], port: int
) -> None:
    controller = Controller(routing)

    def forge(report: wire.ProbeReport) -> None:
        report.session, report.sequence, report.port_sequence = numbers
        report.sent_ns, report.age_ns = times
        report.five_tuple.source_port, report.stack = port, stack

    controller.tell([controller.report(controller.paths[0], 50_000, forge)])
    assert sum(controller.telemetry.rejected.values()) == 1
    [target] = controller.tell([], host="h0").targets
    assert list(target.source_ports) == [49152]


def test_a_way_through_the_fabric_that_ecmp_does_not_give_is_dropped(controller: Controller) -> None:
    links = controller.routing.fabric.links
    down_again = [*controller.paths[0][:3]]
    t1 = links[down_again[-1]].destination
    up = next(link for link in controller.routing.fabric.links_from[t1] if link.destination == "a1")
    down = next(link for link in controller.routing.fabric.links_from["a1"] if link.destination == t1)
    detour = (*down_again, up.index, down.index, controller.paths[0][-1])
    controller.tell([controller.report(detour)])
    assert controller.telemetry.rejected == {RejectReason.NOT_A_CANDIDATE: 1}


def test_reports_of_another_host_are_dropped(controller: Controller) -> None:
    controller.tell([controller.report(controller.paths[0])], host="h1")
    assert controller.telemetry.rejected == {RejectReason.NOT_ITS_HOST: 1}


def test_a_host_belongs_to_who_spoke_for_it_until_that_is_silent(controller: Controller) -> None:
    controller.tell([])
    with pytest.raises(NotOwnerError, match="owner_token: host 'h2'"):
        controller.telemetry.reporters.authorise("h2", "other", LEASE_S - 1)
    controller.telemetry.reporters.authorise("h2", "other", LEASE_S)
    with pytest.raises(NotOwnerError):
        controller.telemetry.reporters.authorise("h2", "token", LEASE_S)


def test_an_exchange_counts_once(controller: Controller) -> None:
    report = controller.report(controller.paths[0])
    controller.tell([report], number=500)
    controller.tell([report], number=500)
    controller.tell([report], number=100)
    controller.tell([report], number=1 << 60)
    controller.tell([report], session=0, number=9)
    assert controller.telemetry.rejected == {RejectReason.REPLAYED_EXCHANGE: 4}
    controller.tell([report], now_s=SILENCE_S, session=2, number=0)
    assert controller.telemetry.rejected == {RejectReason.REPLAYED_EXCHANGE: 4, RejectReason.REPLAYED: 1}


def test_too_many_reports_are_not_read(controller: Controller) -> None:
    controller.tell([controller.report(controller.paths[0])] * (MAX_REPORTS + 1))
    assert controller.telemetry.rejected == {RejectReason.TOO_MANY: MAX_REPORTS + 1}


@pytest.mark.parametrize("jump_s", [-60, 60])
def test_a_reporters_clock_that_jumps_is_not_believed_until_it_goes_on(controller: Controller, jump_s: int) -> None:
    base_ns = 1000 * NS_PER_S
    controller.tell([controller.report(controller.paths[0])], now_s=0.0, clock_ns=base_ns)
    for now_s in (1.0, 2.0):
        clock_ns = base_ns + round((now_s + jump_s) * NS_PER_S)
        controller.tell([controller.report(controller.paths[0])], now_s=now_s, clock_ns=clock_ns)
    # The second time the pair's own sender seems to have travelled otherwise.
    assert controller.telemetry.rejected == {RejectReason.HOST_CLOCK: 1, RejectReason.SENDER_CLOCK: 1}


@pytest.mark.parametrize(
    ("forged", "reason"),
    [
        ({"session": (1 << 32) - 1}, RejectReason.OTHER_SESSION),
        ({"sequence": (1 << 32) - 1}, RejectReason.NUMBER_JUMP),
        ({"sent_ns": (1 << 64) - 1}, RejectReason.SENDER_CLOCK),
    ],
)
def test_one_forged_report_shuts_out_no_other_probe(
    controller: Controller, forged: dict[str, int], reason: RejectReason
) -> None:
    def forge(report: wire.ProbeReport) -> None:
        for field, value in forged.items():
            setattr(report, field, value)

    controller.tell([controller.report(controller.paths[0])])
    controller.tell([controller.report(controller.paths[0], change=forge)])
    # Its clock counts as right again after it has gone on from where it was.
    controller.tell([controller.report(controller.paths[0])])
    before = controller.telemetry.rejected.copy()
    for number, path in enumerate(controller.paths):
        controller.tell([controller.report(path, port=50_000 + number) for _ in range(REPORTS_TO_CONFIRM)])
    assert before[reason] in (1, 2)
    assert controller.telemetry.rejected == before
    assert set(controller.seen().values()) == {Freshness.FRESH}


@pytest.mark.parametrize("forged", [{"session": (1 << 32) - 1}, {"number": 1 << 63}, {"clock_ns": (1 << 64) - 1}])
def test_one_forged_exchange_shuts_out_a_host_for_a_second_at_most(
    controller: Controller, forged: dict[str, int]
) -> None:
    now_s = 0.0
    for now_s in (0.0, 0.25, 0.5):
        controller.tell([], now_s)
    controller.tell([], now_s + 0.01, **forged)
    counted = []
    for step in range(1, 10):
        before = controller.telemetry.rejected.total()
        controller.tell([controller.report(controller.paths[0])], now_s + step * 0.25)
        counted.append(controller.telemetry.rejected.total() == before)
    assert all(counted[4:])


def test_an_agent_whose_number_came_from_the_future_is_believed_after_its_next_start(controller: Controller) -> None:
    controller.tell([controller.report(controller.paths[0])], session=(1 << 32) - 1)
    controller.tell([controller.report(controller.paths[0])], now_s=2 * SILENCE_S, session=1, number=0)
    assert not controller.telemetry.rejected


def test_what_was_known_of_an_agent_is_forgotten_with_its_lease(controller: Controller) -> None:
    report = controller.report(controller.paths[0])
    controller.tell([report], number=5)
    controller.tell([report], now_s=LEASE_S - 1, number=5)
    assert controller.telemetry.rejected == {RejectReason.REPLAYED_EXCHANGE: 1}
    controller.tell([report], now_s=LEASE_S, number=5)
    assert controller.telemetry.rejected[RejectReason.REPLAYED_EXCHANGE] == 1


def test_counts_that_no_host_reaches_reject_the_exchange_and_nothing_grows(controller: Controller) -> None:
    def told(dropped: list[wire.DroppedPackets], number: int) -> None:
        report = controller.report(controller.paths[0])
        request = wire.ExchangeProbesRequest(
            host="h2", session=1, number=number, reports=[report], dropped=dropped, targets_version=(1 << 64) - 1
        )
        controller.telemetry.reporters.authorise("h2", "token", 0.0)
        exchange(controller.telemetry, request, 0.0)

    told([wire.DroppedPackets(reason=Malformed.VERSION, packets=(1 << 64) - 1)], 0)
    assert controller.telemetry.rejected == {RejectReason.COUNTS: 1}
    assert controller.telemetry.dropped_by_hosts == {}
    told([wire.DroppedPackets(reason=f"{number}", packets=1) for number in range(10_000)], 1)
    assert controller.telemetry.dropped_by_hosts == {"h2": {}}


def test_what_agents_have_dropped_is_known_by_host(controller: Controller) -> None:
    dropped = [wire.DroppedPackets(reason=Malformed.VERSION, packets=3), wire.DroppedPackets(reason="?", packets=9)]
    request = wire.ExchangeProbesRequest(host="h2", session=1, dropped=dropped)
    controller.telemetry.reporters.authorise("h2", "token", 0.0)
    exchange(controller.telemetry, request, 0.0)
    assert controller.telemetry.dropped_by_hosts == {"h2": {Malformed.VERSION: 3}}


def test_a_routing_that_is_found_on_switches_replaces_the_candidates_of_a_pair(controller: Controller) -> None:
    telemetry, routing = controller.telemetry, controller.routing
    controller.tell([controller.report(controller.paths[0])])
    given = {switch: GivenRoutes(routing.routes(switch), 1) for switch in routing.fabric.switches}
    telemetry.use_paths(GivenRouting(routing.fabric, given))
    assert tuple(controller.seen()) == controller.paths
    [pair] = telemetry.pairs(0.0)
    assert pair.received == 1
    source = routing.fabric.nics["h0"][0]
    tor = routing.fabric.links[source.link].destination
    one_way = tuple(
        replace(route, links=route.links[:1]) if len(route.links) > 1 else route for route in routing.routes(tor)
    )
    telemetry.use_paths(GivenRouting(routing.fabric, given | {tor: GivenRoutes(one_way, 1)}))
    seen = controller.seen()
    assert 0 < len(seen) < len(controller.paths)
    left_out = next(path for path in controller.paths if path not in seen)
    controller.tell([controller.report(left_out)])
    assert telemetry.rejected[RejectReason.NOT_A_CANDIDATE] == 1
