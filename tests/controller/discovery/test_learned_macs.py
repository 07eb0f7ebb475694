"""The MACs of hosts are learned from those that have the addresses, and from nobody else."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import replace

import pytest

from controller.discovery.arp_packets import ArpPacket
from controller.discovery.differences import DifferenceKind
from controller.discovery.discoverer import Misplacement
from controller.discovery.frames import Frame
from tests.controller.discovery.wired_ports import HEARD_S, Host, WiredPorts, exchange, kinds, port_of
from topologies.addressing import BROADCAST_MAC, Address, MacAddress
from topologies.expanding import expanded
from topologies.fabric import Fabric


def host(address: Address, mac: int) -> Host:
    """A host that answers for an address."""

    def answers(octets: bytes) -> Iterable[bytes]:
        frame = Frame.read(octets)
        asked = frame and ArpPacket.read(frame)
        if asked and not asked.is_reply and asked.target == address:
            yield ArpPacket(True, MacAddress(mac), address, asked.sender_mac, asked.sender).frame(asked.sender_mac)

    return answers


def without_macs(fabric: Fabric) -> Fabric:
    nics = tuple(tuple(replace(each, mac=None) for each in interfaces) for interfaces in (fabric.interfaces or ()))
    return replace(fabric, interfaces=nics)


@pytest.fixture
def asking(fabric: Fabric) -> WiredPorts:
    """A fabric whose file has no MACs, with a host at each port."""
    wired = WiredPorts(without_macs(expanded(fabric).build()))
    for number, nic in enumerate(wired.fabric.nic_by_address.values()):
        wired.hosts[port_of(wired.fabric, nic)] = host(nic.address, 0xB8_59_9F_00_00_00 + number)
    return wired


def test_macs_are_learned_from_those_that_have_the_addresses(asking: WiredPorts) -> None:
    async def test() -> None:
        await asking.pass_s(1.0)
        nics = list(asking.fabric.nic_by_address.values())
        assert asking.macs == {nic.address: 0xB8_59_9F_00_00_00 + number for number, nic in enumerate(nics)}
        # One is unplugged: its MAC is forgotten. The next one has another.
        nic = nics[0]
        port = port_of(asking.fabric, nic)
        asking.down.add(port)
        await asking.pass_s(1.0)
        assert nic.address not in asking.macs
        asking.hosts[port] = host(nic.address, 0xB8_59_9F_FF_FF_FF)
        asking.down.clear()
        await asking.pass_s(1.0)
        assert asking.macs[nic.address] == 0xB8_59_9F_FF_FF_FF
        assert asking.discoverer.differences == {}

    asyncio.run(test())


def test_macs_that_a_controller_before_has_learned_stay_for_those_that_still_answer(asking: WiredPorts) -> None:
    async def test() -> None:
        one, other, gone, *_ = asking.fabric.nic_by_address.values()
        asking.macs = {nic.address: MacAddress(0xB8_59_9F_77_77_77) for nic in (one, other, gone)}
        asking.hosts[port_of(asking.fabric, one)] = host(one.address, 0xB8_59_9F_77_77_77)
        del asking.hosts[port_of(asking.fabric, gone)]
        # This one has gone down while no controller was there.
        asking.down.add(port_of(asking.fabric, other))
        await asking.pass_s(1.0)
        assert asking.macs[one.address] == asking.macs[gone.address] == 0xB8_59_9F_77_77_77
        assert other.address not in asking.macs
        await asking.pass_s(20.0)
        assert asking.macs[one.address] == 0xB8_59_9F_77_77_77
        assert gone.address not in asking.macs
        assert kinds(asking) == {DifferenceKind.HOST_SILENT}

    asyncio.run(test())


def test_nobody_learns_from_a_wrong_port_or_without_a_question(asking: WiredPorts) -> None:
    async def test() -> None:
        await asking.pass_s(10.0)
        before = dict(asking.macs)
        victim, liar, *_ = asking.fabric.nic_by_address.values()
        mac = MacAddress(0xB8_59_9F_EE_EE_EE)
        for reply in (True, False):
            forged = ArpPacket(reply, mac, victim.address, mac, victim.address).frame(BROADCAST_MAC)
            asking.arrive(port_of(asking.fabric, liar), forged)
        # From the right port, but nobody has asked.
        asking.arrive(
            port_of(asking.fabric, victim),
            ArpPacket(True, mac, victim.address, mac, victim.address).frame(BROADCAST_MAC),
        )
        await asking.pass_s(10.0)
        assert asking.macs == before
        assert asking.discoverer.rejected["ARP of a NIC at another port"] == 2
        assert asking.discoverer.rejected["ARP reply without a question"] == 1
        assert kinds(asking) == {DifferenceKind.HOST_ELSEWHERE}

    asyncio.run(test())


def test_exchanged_hosts_are_told_within_five_seconds_and_teach_nothing(asking: WiredPorts) -> None:
    async def test() -> None:
        await asking.pass_s(10.0)
        one, other, *_ = asking.fabric.nic_by_address.values()
        ports = port_of(asking.fabric, one), port_of(asking.fabric, other)
        asking.down.update(ports)
        await asking.pass_s(1.0)
        asking.hosts[ports[0]], asking.hosts[ports[1]] = asking.hosts[ports[1]], asking.hosts[ports[0]]
        asking.down.clear()
        await asking.pass_s(HEARD_S)
        found = {each.found for each in asking.discoverer.differences if each.kind is DifferenceKind.HOST_ELSEWHERE}
        assert found == {
            f"{one.address} answers at {ports[1][0]}:{ports[1][1]}",
            f"{other.address} answers at {ports[0][0]}:{ports[0][1]}",
        }
        assert not {one.address, other.address} & asking.macs.keys()

    asyncio.run(test())


def test_a_port_answers_for_others_and_not_for_ever(asking: WiredPorts) -> None:
    async def test() -> None:
        await asking.pass_s(10.0)
        nic, other, *_ = asking.fabric.nic_by_address.values()
        port = port_of(asking.fabric, nic)
        mac = MacAddress(0xB8_59_9F_00_00_00)
        gateway = Address(nic.subnet.address + 200)

        async def answers(sender: Address, target: Address, times: int = 1) -> list[ArpPacket]:
            asking.sent.clear()
            for _ in range(times):
                asking.arrive(port, ArpPacket(False, mac, sender, MacAddress(0), target).frame(BROADCAST_MAC))
            while asking._arrived:
                asking.discoverer.take()
            read = [ArpPacket.read(frame) for at, octets in asking.sent if at == port and (frame := Frame.read(octets))]
            return [packet for packet in read if packet is not None]

        for target in (other.address, gateway):
            (answer,) = await answers(nic.address, target)
            assert (answer.sender, answer.target, answer.target_mac) == (target, nic.address, mac)
        for sender, target in (
            (nic.address, nic.address),
            (Address(0), other.address),
            (other.address, nic.address),
            (nic.address, Address.parse("8.8.8.8")),
        ):
            assert await answers(sender, target) == []
        assert len(await answers(nic.address, other.address, 1000)) < 50
        assert asking.discoverer.rejected["ARP requests above the rate of a port"] > 900

    asyncio.run(test())


def test_arp_is_answered_while_routes_and_next_hops_wait_for_switches(
    asking: WiredPorts, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test() -> None:
        flows = asyncio.Event()
        given = asking.set_neighbours

        async def give(macs: Mapping[Address, MacAddress]) -> None:
            await flows.wait()
            await given(macs)

        async def apply(found: Misplacement) -> None:
            await flows.wait()
            asking.misplacement = found

        monkeypatch.setattr(asking, "set_neighbours", give)
        monkeypatch.setattr(asking.discoverer, "_on_cables", apply)
        exchanged = exchange(asking)
        for _ in range(20):
            asking.now_s += 0.25
            asking.discoverer.tick()
            asking.discoverer.take()
            await asyncio.sleep(0)
        assert {each.kind for each in asking.discoverer.differences} == {DifferenceKind.MISPLACED}
        assert asking.macs == {}
        nic, second, *_ = asking.fabric.nic_by_address.values()
        question = ArpPacket(False, MacAddress(1), nic.address, MacAddress(0), second.address).frame(BROADCAST_MAC)
        asking.sent.clear()
        asking.arrive(port_of(asking.fabric, nic), question)
        asking.discoverer.take()
        assert port_of(asking.fabric, nic) in {port for port, _ in asking.sent}
        flows.set()
        await asking.discoverer.applied()
        assert asking.misplacement.misplaced == exchanged
        assert asking.macs.keys() == asking.fabric.nic_by_address.keys()

    asyncio.run(test())
