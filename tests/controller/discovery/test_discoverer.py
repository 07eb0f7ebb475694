"""What is not where the file says is found out within five seconds, and no host can make it up."""

import asyncio
import logging
from collections.abc import Iterable

import pytest

from controller.discovery.differences import DifferenceKind
from controller.discovery.frames import LLDP_TYPE, Frame
from controller.discovery.lldp_packets import LldpPacket
from tests.controller.discovery.wired_ports import HEARD_S, WiredPorts, ends, exchange, kinds, port_of, uplinks
from topologies.addressing import MacAddress
from topologies.fabric import Fabric
from topologies.specification import ClosSpecification


def test_a_fabric_as_the_file_says_differs_in_nothing(fabric: Fabric) -> None:
    async def test() -> None:
        wired = WiredPorts(fabric)
        await wired.pass_s(60.0)
        assert wired.discoverer.differences == {}
        assert wired.dead_cables() == frozenset()

    asyncio.run(test())


def test_beacons_are_rarer_in_a_large_fabric_and_nothing_is_taken_for_silent() -> None:
    async def test() -> None:
        specification = ClosSpecification(
            kind="clos", tors=40, aggs=60, hosts_per_tor=1, host_link_gbps=100, uplink_gbps=100
        )
        wired = WiredPorts(specification.build())
        await wired.pass_s(12.0)
        assert wired.discoverer.differences == {}
        link = uplinks(wired.fabric)[0]
        for port in ends(wired.fabric, link):
            del wired.wires[port]
        await wired.pass_s(12.0)
        assert wired.dead_cables() == {link // 2}

    asyncio.run(test())


def test_ports_that_the_file_does_not_have_send_too_where_there_can_be_such(fabric: Fabric) -> None:
    async def test() -> None:
        wired = WiredPorts(fabric)
        wired.odd = dict.fromkeys((-1, 0, 100, 509, 510, 511, 512, 1 << 40), True)
        # A cable between two of them is told, and nothing hears of it.
        wired.wire(("t0", 100), ("a0", 509))
        await wired.pass_s(10.0)
        assert {number for (_, number), _ in wired.sent} & wired.odd.keys() == {100, 509}
        assert {each.found for each in wired.discoverer.differences} == {"a0:509 hears t0:100", "t0:100 hears a0:509"}
        assert wired.dead_cables() == frozenset()

    asyncio.run(test())


def test_exchanged_cables_are_out_of_use_until_they_are_right(fabric: Fabric, caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        wired = WiredPorts(fabric)
        await wired.pass_s(10.0)
        exchanged = exchange(wired)
        with caplog.at_level(logging.WARNING):
            await wired.pass_s(HEARD_S)
        assert kinds(wired) == {DifferenceKind.MISPLACED}
        assert wired.dead_cables() == exchanged
        assert len([line for line in caplog.messages if "misplaced" in line]) == 2
        for cable in exchanged:
            wired.wire(*ends(fabric, 2 * cable))
        await wired.pass_s(HEARD_S)
        assert wired.discoverer.differences == {}
        assert wired.dead_cables() == frozenset()

    asyncio.run(test())


def test_a_cable_that_ends_at_a_port_of_a_host_is_out_of_use(fabric: Fabric) -> None:
    async def test() -> None:
        wired = WiredPorts(fabric)
        await wired.pass_s(10.0)
        link = uplinks(fabric)[0]
        (nic,) = fabric.nics["h0"]
        wired.wire(port_of(fabric, nic), ends(fabric, link)[1])
        await wired.pass_s(HEARD_S)
        assert kinds(wired) == {DifferenceKind.MISPLACED, DifferenceKind.UNEXPECTED}
        assert wired.dead_cables() == {link // 2}

    asyncio.run(test())


def test_a_cable_that_leads_to_nobody_is_out_of_use_though_its_ports_are_up(fabric: Fabric) -> None:
    async def test() -> None:
        wired = WiredPorts(fabric)
        await wired.pass_s(10.0)
        link = uplinks(fabric)[0]
        for port in ends(fabric, link):
            del wired.wires[port]
        await wired.pass_s(HEARD_S)
        assert kinds(wired) == {DifferenceKind.UNHEARD}
        assert wired.dead_cables() == {link // 2}

    asyncio.run(test())


def test_a_switch_that_hands_up_no_lldp_takes_no_cable_out_of_use(fabric: Fabric) -> None:
    async def test() -> None:
        wired = WiredPorts(fabric)
        wired.wires.clear()
        await wired.pass_s(60.0)
        assert wired.discoverer.differences == {}
        assert wired.dead_cables() == frozenset()

    asyncio.run(test())


def test_what_is_known_stays_while_a_switch_is_away(fabric: Fabric) -> None:
    async def test() -> None:
        wired = WiredPorts(fabric)
        exchanged = exchange(wired)
        await wired.pass_s(HEARD_S)
        wired.away = {fabric.links[uplinks(fabric)[0]].source}
        await wired.pass_s(60.0)
        assert wired.dead_cables() == exchanged
        wired.away = set()
        await wired.pass_s(HEARD_S)
        assert wired.dead_cables() == exchanged
        assert kinds(wired) == {DifferenceKind.MISPLACED}

    asyncio.run(test())


def test_a_controller_that_stood_still_finds_nothing_silent_and_nothing_right_again(fabric: Fabric) -> None:
    async def test() -> None:
        wired = WiredPorts(fabric)
        exchanged = exchange(wired)
        await wired.pass_s(HEARD_S)
        before = wired.discoverer.differences.keys()
        for stall_s in (0.9, 2.0, 20.0, 3600.0):
            await wired.stand_still_s(stall_s)
            assert wired.discoverer.differences.keys() == before
            assert wired.dead_cables() == exchanged
            await wired.pass_s(0.5)

    asyncio.run(test())


def test_nothing_that_hosts_repeat_or_make_up_changes_the_map(fabric: Fabric) -> None:
    """Hosts hear the beacons of their own ports, tell each other, and send all of them, old ones and changed ones."""

    async def test() -> None:
        wired = WiredPorts(fabric)
        ports = [port_of(fabric, nic) for nic in fabric.nic_by_address.values()]
        heard: list[bytes] = []

        def repeat(octets: bytes) -> Iterable[bytes]:
            frame = Frame.read(octets)
            if frame is not None and frame.ether_type == LLDP_TYPE:
                heard.append(octets)
                yield octets
                yield bytes((*octets[:-10], octets[-10] ^ 1, *octets[-9:]))
            yield from heard[-30:]
            yield from heard[:3]

        for port in ports:
            wired.hosts[port] = repeat
        # One host even hears what switches tell each other.
        await wired.pass_s(10.0)
        between = [octets for port, octets in wired.sent if port in wired.wires]
        for port in ports:
            for octets in between[-50:]:
                wired.arrive(port, octets)
        await wired.pass_s(HEARD_S)
        assert wired.misplacement.misplaced | wired.misplacement.unheard == frozenset()
        assert wired.dead_cables() == frozenset()
        assert kinds(wired) == {DifferenceKind.UNEXPECTED}
        assert len(wired.discoverer.differences) <= len(ports)
        assert wired.discoverer.rejected["LLDP with a wrong signature"] > 0
        assert wired.discoverer.rejected["LLDP of an earlier time"] > 0
        for port in ports:
            wired.hosts[port] = lambda _: ()
        await wired.pass_s(20.0)
        assert wired.discoverer.differences == {}

    asyncio.run(test())


def test_lldp_of_a_host_at_the_wrong_port_is_told_and_changes_nothing(fabric: Fabric) -> None:
    async def test() -> None:
        wired = WiredPorts(fabric)
        at = port_of(fabric, fabric.nics["h1"][0])
        wired.arrive(at, LldpPacket("aa", "eth0", 120, "h0").frame(MacAddress(0x02_00_00_00_00_09)))
        await wired.pass_s(1.0)
        (found,) = wired.discoverer.differences
        assert (found.kind, found.found) == (DifferenceKind.HOST_ELSEWHERE, f"h0 is heard at {at[0]}:{at[1]}")
        assert wired.misplacement.misplaced | wired.misplacement.unheard == frozenset()

    asyncio.run(test())


def test_what_probes_say_of_cables_is_told_where_beacons_say_nothing_and_changes_no_map(fabric: Fabric) -> None:
    async def test() -> None:
        wired = WiredPorts(fabric)
        first, *_, last = uplinks(fabric)
        (one, _), (_, fourth) = ends(fabric, first), ends(fabric, last)
        wired.probed = {fourth: one}
        await wired.pass_s(10.0)
        assert wired.discoverer.differences == {}
        wired.wires.clear()
        await wired.pass_s(20.0)
        (told,) = [each for each in wired.discoverer.differences if each.kind is DifferenceKind.PROBED_ELSEWHERE]
        assert (told.link, told.found) == (
            last,
            f"probes come to {fourth[0]}:{fourth[1]} from {one[0]}:{one[1]}",
        )
        assert wired.misplacement.misplaced == frozenset()
        wired.probed = {}
        await wired.pass_s(61.0)
        assert DifferenceKind.PROBED_ELSEWHERE not in kinds(wired)

    asyncio.run(test())
