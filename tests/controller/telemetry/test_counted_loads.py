"""Loads by the counters of ports, where switches know no INT."""

import asyncio
from collections.abc import Collection, Mapping

import pytest

from controller.telemetry.counted_loads import CountedLoads
from controller.telemetry.telemetry import Telemetry
from topologies.addressing import FiveTuple
from topologies.ecmp import hash_multipliers
from topologies.routing import Routing
from topologies.specification import ClosSpecification

FABRIC = ClosSpecification(
    kind="clos", tors=2, aggs=2, hosts_per_tor=2, host_link_gbps=100, uplink_gbps=100, uplinks_per_pair=1
).build()
LINKS = [link.index for link in FABRIC.links if link.source == "t0"]
BUSY, IDLE = LINKS[:2]


class Ports:
    """Counters that the test sets; a link without one belongs to a switch that does not answer."""

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}

    async def link_bytes(self, links: Collection[int]) -> Mapping[int, int]:
        return {link: count for link, count in self.counts.items() if link in links}


def test_a_load_is_what_has_left_between_two_readings() -> None:
    async def read() -> None:
        ports = Ports()
        counted = CountedLoads(ports, LINKS)
        ports.counts = {BUSY: 1_000, IDLE: 500, FABRIC.reverse(BUSY): 7}
        assert await counted.read(10.0) == {}
        ports.counts = {BUSY: 251_000, IDLE: 500, FABRIC.reverse(BUSY): 9_999}
        assert await counted.read(12.0) == {BUSY: 1_000_000.0, IDLE: 0.0}

    asyncio.run(read())


@pytest.mark.parametrize("counts", [{BUSY: 5}, {}])
def test_a_link_whose_counter_began_anew_or_is_not_heard_has_no_load_until_it_is_read_twice(
    counts: dict[int, int],
) -> None:
    async def read() -> None:
        ports = Ports()
        counted = CountedLoads(ports, LINKS)
        ports.counts = {BUSY: 1_000}
        await counted.read(10.0)
        ports.counts = counts
        assert await counted.read(11.0) == {}
        ports.counts = {BUSY: 1_000}
        again = await counted.read(12.0)
        assert again == ({BUSY: 8 * 995.0} if counts else {})
        ports.counts = {BUSY: 2_000}
        assert await counted.read(13.0) == {BUSY: 8_000.0}

    asyncio.run(read())


def test_what_others_send_over_a_counted_link_is_found_as_foreign_load() -> None:
    telemetry = Telemetry(Routing(FABRIC, hash_multipliers(FABRIC.switches, 1)), lease_s=30.0)
    for second in range(60):
        telemetry.record_counted({BUSY: 40e9, IDLE: 0.0}, float(second))
    loads_bps = telemetry.foreign_loads.loads_bps(59.5)
    assert loads_bps.keys() == {BUSY}
    assert loads_bps[BUSY] == pytest.approx(40e9, rel=0.01)
    measured_bps = telemetry.links.load_bps(BUSY, 58.0)
    assert measured_bps == pytest.approx(40e9, rel=0.01)


def test_no_load_changes_nothing() -> None:
    telemetry = Telemetry(Routing(FABRIC, hash_multipliers(FABRIC.switches, 1)), lease_s=30.0)
    telemetry.record_counted({}, 1.0)
    assert telemetry.foreign_loads.loads_bps(1.0) == {}
    assert telemetry.links.get(BUSY) is None


def test_hosts_do_not_probe_where_a_path_crosses_a_switch_without_int() -> None:
    routing = Routing(FABRIC, hash_multipliers(FABRIC.switches, 1))
    nics = [FABRIC.nics[host][0] for host in FABRIC.hosts]
    across = [FiveTuple(nics[0].address, nics[2].address, 17, 50_000, 4791)]
    inside = [FiveTuple(nics[2].address, nics[3].address, 17, 50_000, 4791)]
    assert (nics[0].host, nics[2].host) == ("h0", "h2")

    def probed(without_int: frozenset[str]) -> list[tuple[str, str]]:
        telemetry = Telemetry(routing, lease_s=30.0, without_int=without_int)
        telemetry.set_probe_targets(across + inside)
        return [(pair.source.host, pair.destination.host) for pair in telemetry.pairs(0.0)]

    assert probed(frozenset()) == [("h0", "h2"), ("h2", "h3")]
    assert probed(frozenset({"t0"})) == [("h2", "h3")]
    assert probed(frozenset({"a1"})) == [("h2", "h3")]
    assert probed(frozenset({"t1"})) == []
