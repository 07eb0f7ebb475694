"""Paths that are lost to one pair of NICs alone, though others come by all their links."""

from collections.abc import Sequence
from itertools import count

import pytest

from controller.telemetry.path_table import REPORTS_TO_CONFIRM
from controller.telemetry.telemetry import Telemetry
from hostlib.wire import trainyard_pb2 as wire
from tests.controller.telemetry.hosts import PORTS, TO_ONE, TO_OTHER, Hosts
from tests.controller.telemetry.probed import flow_between
from tests.controller.telemetry.reports import exchange, five_tuple_to_wire, stack
from topologies.addressing import FiveTuple
from topologies.fabric import Fabric, Path
from topologies.routing import Routing

NS_PER_S = 1_000_000_000


def look(hosts: Hosts) -> list[frozenset[Path]]:
    """What is lost to each pair now."""
    for pair in hosts.pairs:
        pair.update_black_holes(hosts.failures.silent_links, has_gaps=True)
    return [pair.black_holes for pair in hosts.pairs]


def report(fabric: Fabric, flow: FiveTuple, port: int, sequence: int, path: Path, now_s: float) -> wire.ProbeReport:
    return wire.ProbeReport(
        five_tuple=five_tuple_to_wire(flow, port),
        session=1,
        sequence=sequence,
        port_sequence=round(10 * now_s),
        sent_ns=round(now_s * NS_PER_S),
        stack=stack(fabric, path),
    )


def request_of(number: int, reports: Sequence[wire.ProbeReport], now_s: float) -> wire.ExchangeProbesRequest:
    clock_ns = round(now_s * NS_PER_S)
    return wire.ExchangeProbesRequest(host="h2", session=1, number=number, clock_ns=clock_ns, reports=reports)


def test_a_path_is_lost_until_probes_come_from_all_its_ports() -> None:
    hosts = Hosts(TO_ONE, TO_OTHER)
    for second in range(2, 7):
        assert look(hosts) == [frozenset(), frozenset()]
        hosts.round(1, float(second))
        hosts.round(0, float(second), lost=1)
    assert look(hosts) == [{TO_ONE[0]}, frozenset()]
    one_only = {port: way for port, way in PORTS.items() if port != 50_001}
    hosts.round(0, 7.0, ways=one_only)
    assert look(hosts)[0] == {TO_ONE[0]}
    hosts.pairs[0].reset_loss(7.5)
    assert look(hosts)[0] == {TO_ONE[0]}
    hosts.round(0, 8.0)
    assert look(hosts)[0] == frozenset()


def test_what_silent_links_explain_is_not_lost() -> None:
    hosts = Hosts(TO_ONE, TO_OTHER)
    for second in range(2, 9):
        for number in range(2):
            hosts.round(number, float(second), lost=1)
    assert hosts.failures.silent_links == {1, 2}
    assert look(hosts) == [frozenset(), frozenset()]


def test_a_path_that_any_port_leads_along_is_not_lost() -> None:
    hosts, but_one = Hosts(TO_ONE), {port: way for port, way in PORTS.items() if port != 50_000}
    for second in range(2, 9):
        hosts.round(0, float(second), ways=but_one)
    assert look(hosts) == [frozenset()]


@pytest.mark.parametrize("counts_all", [True, False])
def test_both_ends_have_to_say_that_probes_are_lost(routing: Routing, counts_all: bool) -> None:
    telemetry, nics = Telemetry(routing, lease_s=30.0), routing.fabric.nics
    mine, others = (flow_between(nics[host][0], nics["h2"][0]) for host in ("h0", "h1"))
    telemetry.set_probe_targets([mine, others])
    numbers, exchanges = dict.fromkeys((mine, others), 0), count()

    def tell(now_s: float, lost: Path | None = None) -> bool:
        """Probes by every path of either flow, but for those by one that is lost; whether they are news."""
        version, reports = telemetry.version, []
        for flow, sender in ((mine, "h0"), (others, "h1")):
            for number, path in enumerate(routing.candidate_paths(nics[sender][0], nics["h2"][0])):
                is_reported = path != lost
                if is_reported:
                    reports.append(report(routing.fabric, flow, 50_000 + number, numbers[flow], path, now_s))
                numbers[flow] += is_reported or counts_all
        exchange(telemetry, request_of(next(exchanges), reports, now_s), now_s)
        return telemetry.version != version

    telemetry.reporters.authorise("h2", "token", 0.0)
    for tenths in range(REPORTS_TO_CONFIRM + 1):
        tell(tenths / 10)
    [first, *_] = routing.candidate_paths(nics["h0"][0], nics["h2"][0])
    news = [tell(float(second), lost=first) for second in range(1, 10)]
    assert telemetry.black_holes(mine) == ({first} if counts_all else frozenset())
    assert any(news) == counts_all
    assert telemetry.black_holes(others) == frozenset()
    assert tell(10.0) == counts_all
    assert telemetry.black_holes(mine) == frozenset()
