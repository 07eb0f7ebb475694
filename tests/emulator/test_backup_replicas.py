"""Copies of packets that leave by another port while theirs is down."""

from emulator.replication import Replica, Replication, Replicator
from tests.bmv2.session import Packet
from tests.bmv2.small_programs import TRUNCATION, EmulatedProgram

MULTICAST, CLONED = 4, 5


def test_copies_follow_the_links() -> None:
    emulated = EmulatedProgram(TRUNCATION)
    replicas = (Replica(1, 0, (Replica(3, 9),)),)
    emulated.control.replication(Replicator.GROUP).insert(1, Replication(replicas))
    emulated.control.replication(Replicator.SESSION).insert(5, Replication(replicas))
    links = {link.source_port: link.index for link in emulated.fabric.fabric.links if link.source == "switch"}

    def ports_of(what: int) -> list[int]:
        return [packet.port for packet in emulated.send(Packet(2, bytes([what, 255, 255])))]

    assert (ports_of(MULTICAST), ports_of(CLONED)) == ([1], [1, 2])
    emulated.fabric.set_link(links[1], up=False)
    assert (ports_of(MULTICAST), ports_of(CLONED)) == ([3], [2, 3])
    before = emulated.fabric.drops("switch").link_down
    emulated.fabric.set_link(links[3], up=False)
    assert (ports_of(MULTICAST), ports_of(CLONED)) == ([], [2])
    assert emulated.fabric.drops("switch").link_down == before + 2
    emulated.fabric.set_link(links[1], up=True)
    assert (ports_of(MULTICAST), ports_of(CLONED)) == ([1], [1, 2])
