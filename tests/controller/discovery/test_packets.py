"""Frames are read as they were written, and nothing that a host sends is taken for more than it is."""

from random import Random

import pytest

from controller.discovery.arp_packets import ArpPacket
from controller.discovery.beacons import VALID_PERIODS, BeaconProblem, Beacons
from controller.discovery.frames import Frame
from controller.discovery.lldp_packets import LldpPacket
from topologies.addressing import BROADCAST_MAC, Address, MacAddress

MAC = MacAddress.parse("b8:59:9f:00:00:01")
ASKED = ArpPacket(False, MAC, Address.parse("192.168.7.11"), MacAddress(0), Address.parse("192.168.7.12"))


def lldp(octets: bytes) -> LldpPacket:
    frame = Frame.read(octets)
    assert frame is not None
    packet = LldpPacket.read(frame)
    assert packet is not None
    return packet


def test_arp_is_read_as_it_was_written() -> None:
    frame = Frame.read(ASKED.frame(BROADCAST_MAC))
    assert frame is not None
    assert frame.destination == BROADCAST_MAC
    assert ArpPacket.read(frame) == ASKED


@pytest.mark.parametrize("place", [0, 1, 2, 3, 4, 5, 6, 7, 8, 13])
def test_arp_of_another_kind_or_sender_is_none(place: int) -> None:
    """Hardware, protocol, lengths and operation, and the sender, who must be the frame's."""
    octets = bytearray(ASKED.frame(BROADCAST_MAC))
    octets[14 + place] ^= 0x80
    frame = Frame.read(bytes(octets))
    assert frame is not None
    assert ArpPacket.read(frame) is None


def test_a_beacon_tells_its_port_to_all_and_is_believed_for_a_short_time() -> None:
    beacons = Beacons(("leaf", "spine"), {("spine", 7): "Ethernet1/7"})
    packet = lldp(beacons.frame(("spine", 7), 100))
    assert (packet.chassis, packet.port, packet.system) == ("spine", "Ethernet1/7", "spine")
    for period in range(100, 100 + VALID_PERIODS):
        assert beacons.sender(packet, period) == ("spine", 7)
    for period in (99, 100 + VALID_PERIODS):
        assert beacons.sender(packet, period) is BeaconProblem.REPLAYED
    assert Beacons(("leaf", "spine")).sender(packet, 100) is BeaconProblem.FORGED


def test_no_changed_beacon_names_another_port() -> None:
    beacons = Beacons(("leaf", "spine"))
    octets = beacons.frame(("leaf", 3), 100)
    for place in range(14, len(octets)):
        for bit in range(8):
            changed = bytearray(octets)
            changed[place] ^= 1 << bit
            frame = Frame.read(bytes(changed))
            packet = frame and LldpPacket.read(frame)
            if packet:
                assert beacons.sender(packet, 100) in (("leaf", 3), BeaconProblem.FORGED, None)


def test_the_longest_name_of_a_switch_fits() -> None:
    name = "s" * 256
    beacons = Beacons((name,))
    assert beacons.sender(lldp(beacons.frame((name, 1), 5)), 5) == (name, 1)


def test_any_octets_are_read_without_harm() -> None:
    random = Random(1)
    beacons = Beacons(("leaf",))
    genuine = (ASKED.frame(BROADCAST_MAC), beacons.frame(("leaf", 3), 100))
    for _ in range(20_000):
        octets = bytearray(random.choice(genuine))
        for _ in range(random.randrange(6)):
            octets[random.randrange(len(octets))] = random.randrange(256)
        del octets[random.randrange(12, len(octets) + 1) :]
        if (frame := Frame.read(bytes(octets))) is not None:
            ArpPacket.read(frame)
            packet = LldpPacket.read(frame)
            if packet is not None:
                assert packet.system.isprintable()
                assert len(packet.chassis) <= 64
                beacons.sender(packet, 100)
