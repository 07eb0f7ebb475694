"""Tests of router.p4: what it does with packets, by packets."""

from pathlib import Path

import pytest
from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.l2 import ARP, Ether

from emulator.testing import Digest, PacketInMessage, Programs, Switch

HERE = Path(__file__).parent
GATEWAY, HOST, ELSEWHERE = "00:00:00:00:00:aa", "00:00:00:00:00:01", "00:00:00:00:00:02"


@pytest.fixture
def switch(p4: Programs) -> Switch:
    """A router with four ports, and a route by port 2."""
    made = p4.switch(p4.load(HERE / "router.json"), ports=4)
    made.table("routes").add({"destination": "10.0.2.0/24"}, "forward", next_hop=ELSEWHERE, port=2)
    return made


def packet(**fields: object) -> Ether:
    """A packet from a host, with some fields of its IPv4 header."""
    header = IP(**{"src": "10.0.1.1", "dst": "10.0.2.2", "ttl": 64, **fields})
    return Ether(src=HOST, dst=GATEWAY) / header / UDP(sport=1000, dport=2000) / (b"payload" * 200)


def routed(sent: Ether) -> Ether:
    """The same packet behind the router."""
    found = sent.copy()
    found.src, found.dst = GATEWAY, ELSEWHERE
    found[IP].ttl -= 1
    del found[IP].chksum
    return found


def test_a_packet_is_routed(switch: Switch) -> None:
    switch.send(1, packet())
    switch.expect(2, routed(packet()))
    switch.expect_nothing()
    assert switch.table("routes").counter({"destination": "10.0.2.0/24"}).packets == 1


def test_the_longest_prefix_wins(switch: Switch) -> None:
    switch.table("routes").add({"destination": "10.0.2.2/32"}, "forward", next_hop=ELSEWHERE, port=3)
    switch.send(1, packet())
    switch.expect(3, routed(packet()))
    switch.expect_nothing()


def test_nothing_leaves_without_a_route(switch: Switch) -> None:
    switch.send(1, packet(dst="10.0.3.3"))
    switch.send(1, packet(ttl=1))
    switch.send(1, Ether(src=HOST, dst="ff:ff:ff:ff:ff:ff") / ARP(pdst="10.0.2.2"))
    switch.expect_nothing()


def test_a_group_gets_copies(switch: Switch) -> None:
    switch.add_multicast_group(7, ports=[0, 2, 3])
    switch.table("routes").add({"destination": "224.0.0.0/4"}, "flood", group=7)
    switch.send(1, packet(dst="224.0.0.5"))
    for port in (0, 2, 3):
        switch.expect(port, packet(dst="224.0.0.5"))
    switch.expect_nothing()


def test_the_controller_is_asked_about_icmp(switch: Switch) -> None:
    switch.table("access").add({"protocol": (1, 0xFF)}, "tell_controller", priority=10)
    ping = Ether(src=HOST, dst=GATEWAY) / IP(src="10.0.1.1", dst="10.0.2.2") / ICMP()
    switch.send(1, ping)
    assert switch.packet_ins() == [PacketInMessage(bytes(ping), {"ingress_port": 1})]
    switch.packet_out(ping, egress_port=3)
    switch.expect(3, ping)
    switch.expect_nothing()


def test_what_it_remembers_and_counts(switch: Switch) -> None:
    switch.send(1, packet())
    switch.send(1, packet(src="10.0.1.9"))
    assert switch.counter("received", index=1).packets == 2
    assert switch.register("last_source", index=1) == 0x0A000109


def test_an_unknown_sender_is_told_until_the_controller_knows_it(switch: Switch) -> None:
    switch.send(1, packet())
    assert switch.digests() == [Digest("sender_t", (0x1, 1))]
    switch.table("senders").add({"source": HOST}, "NoAction")
    switch.send(1, packet())
    assert switch.digests() == []
