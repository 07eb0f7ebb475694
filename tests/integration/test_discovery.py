"""A controller in real time hears from the switches which cables are not where its file says."""

import asyncio
import logging
from dataclasses import replace
from itertools import permutations

import pytest

from controller.discovery.arp_packets import ArpPacket
from controller.discovery.differences import DifferenceKind
from controller.discovery.discoverer import Discoverer
from controller.discovery.frames import LLDP_TYPE, Frame
from controller.process.core import ControllerCore
from emulator.entries import ActionCall
from tests.integration.miscabled import RunningFabric, controlled, exchanged, running, with_ports
from tests.patience import until
from topologies.addressing import BROADCAST_MAC, MacAddress, switch_mac
from topologies.fabric import Fabric, Nic
from topologies.specification import ClosSpecification

CLOS = ClosSpecification(
    kind="clos", tors=2, aggs=2, hosts_per_tor=1, host_link_gbps=10, uplink_gbps=10, uplinks_per_pair=2
)


def _discoverer(controller: ControllerCore) -> Discoverer:
    assert controller.discoverer is not None
    return controller.discoverer


def _places(controller: ControllerCore, kind: DifferenceKind) -> set[str]:
    return {each.place for each in _discoverer(controller).differences if each.kind is kind}


def _dead(controller: ControllerCore) -> set[int]:
    return {link // 2 for link in controller.planner.links.dead_links(0.0)}


def _next_hop_mac(fabric: RunningFabric, file: Fabric, nic: Nic) -> int | None:
    link = file.links[nic.link]
    for key, action in fabric.emulated.switches[link.destination].entries("ingress.next_hop"):
        if key.match[0].value == link.destination_port:
            assert isinstance(action, ActionCall)
            return action.arguments[-1]
    return None


def test_exchanged_cables_are_told_and_carry_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        file = with_ports(CLOS.build())
        first, second = file.links_between("t0", "a0")[0], file.links_between("t1", "a1")[0]
        async with running(exchanged(file, first, second)) as fabric:
            # They are plugged in once the controller knows all others.
            for link in (first, second):
                await fabric.set_cable(link, up=False)
            async with controlled(fabric, file) as controller:
                await until(lambda: _dead(controller) == {first // 2, second // 2})
                assert _places(controller, DifferenceKind.MISPLACED) == set()
                for link in (first, second):
                    await fabric.set_cable(link, up=True)
                await until(lambda: len(_places(controller, DifferenceKind.MISPLACED)) == 2)
                assert _dead(controller) == {first // 2, second // 2}
                for source, destination in permutations(file.nic_by_address.values(), 2):
                    await fabric.transfer(source, destination)

    with caplog.at_level(logging.WARNING):
        asyncio.run(test())
    told = [line for line in caplog.messages if "misplaced: " in line]
    assert len(told) == 2
    assert any("t0:2 - a0:1" in line and "a0:1 hears t1:4" in line for line in told)


def test_hosts_that_repeat_beacons_change_no_map() -> None:
    async def test() -> None:
        file = with_ports(CLOS.build())
        nics = list(file.nic_by_address.values())
        async with running(file) as fabric, controlled(fabric, file) as controller:
            discoverer = _discoverer(controller)
            heard: list[bytes] = []
            # Everything that one host hears, both send; in turn with a changed bit.
            while discoverer.rejected["LLDP with a wrong signature"] < 20 or len(heard) < 4:
                for _, octets in await fabric.received():
                    if (frame := Frame.read(octets)) is not None and frame.ether_type == LLDP_TYPE:
                        heard.append(octets)
                for octets in heard[-4:]:
                    for nic in nics:
                        await fabric.send(nic, octets)
                        await fabric.send(nic, octets[:-8] + bytes((octets[-8] ^ 1,)) + octets[-7:])
                await asyncio.sleep(0.1)
            assert _dead(controller) == set()
            assert _places(controller, DifferenceKind.MISPLACED) == set()
            assert _places(controller, DifferenceKind.UNHEARD) == set()
            assert len(_places(controller, DifferenceKind.UNEXPECTED)) == len(nics)

    asyncio.run(test())


def test_the_mac_that_a_host_answers_is_its_next_hop_and_that_of_another_port_is_not() -> None:
    async def test() -> None:
        whole = with_ports(CLOS.build())
        interfaces = tuple(tuple(replace(each, mac=None) for each in nics) for nics in whole.interfaces or ())
        file = replace(whole, interfaces=interfaces)
        victim, liar = file.nic_by_address.values()
        mac, forged = MacAddress(0xB8_59_9F_00_00_01), MacAddress(0xB8_59_9F_66_66_66)
        link = file.links[victim.link]
        port_mac = switch_mac(file.switch_index[link.destination], link.destination_port)
        answers = {
            nic: ArpPacket(True, its_mac, victim.address, port_mac, victim.address).frame(port_mac)
            for nic, its_mac in ((victim, mac), (liar, forged))
        }
        async with running(whole) as fabric:
            async with controlled(fabric, file) as controller:
                while _discoverer(controller).rejected["ARP of a NIC at another port"] < 5:
                    assert _next_hop_mac(fabric, file, victim) == BROADCAST_MAC
                    await fabric.send(liar, answers[liar])
                    await asyncio.sleep(0.1)
                while _next_hop_mac(fabric, file, victim) != mac:
                    await fabric.send(victim, answers[victim])
                    await asyncio.sleep(0.1)
            # The next controller takes it over, and forgets it with the cable.
            async with controlled(fabric, file):
                assert _next_hop_mac(fabric, file, victim) == mac
                await fabric.set_cable(victim.link, up=False)
                await until(lambda: _next_hop_mac(fabric, file, victim) == BROADCAST_MAC)

    asyncio.run(test())
