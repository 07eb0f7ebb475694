"""Frames of real interfaces pass a program as packets do in virtual time, whatever becomes of the interfaces."""

import asyncio
import random
import socket
import struct
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest

from emulator.compiler.program import Program, compile_program
from emulator.interfaces import InterfaceError
from emulator.observations import PacketIn
from emulator.replication import Replica, Replication, Replicator
from emulator.wired_fabric import WiredFabric
from tests.bmv2.replication_sessions import GROUP, MULTICAST, request
from tests.bmv2.session import CPU_PORT, Packet
from tests.bmv2.small_programs import REPLICATION, EmulatedProgram
from tests.emulator.lab import LAB, MTU_BYTES, cable, packets_of, run
from tests.namespaces import Namespaces
from tests.patience import until
from topologies.fabric import Cable, Fabric

HOSTS = ("host1", "host2", "host3")
SWITCH = "switch"
ADDED_BYTES = 18
"""By so much the program lengthens every packet."""
COPIES = Replication((Replica(1, 7), Replica(2, 8), Replica(2, 9), Replica(CPU_PORT, 1)))


@cache
def program() -> Program:
    """The program in which a packet says what is to be done with it."""
    return compile_program(REPLICATION.json.read_text(), is_wired=True)


@dataclass(frozen=True, slots=True)
class Wired:
    """A switch with a real interface at each of its ports 1 to 3, and the hosts' ends of these."""

    fabric: WiredFabric
    ends: tuple[socket.socket, ...]
    packets_in: list[PacketIn]

    def received(self) -> list[Packet]:
        """What has come out so far and was not asked for before, by port."""
        found = []
        for port, end in enumerate(self.ends, start=1):
            while True:
                try:
                    found.append(Packet(port, end.recv(65536)))
                except OSError:  # nothing there, or the interface is down
                    break
        found += [Packet(CPU_PORT, packet.octets) for packet in self.packets_in]
        self.packets_in.clear()
        return sorted(found, key=lambda packet: (packet.port, packet.octets))

    async def answers(self, octets: bytes, count: int) -> list[Packet]:
        """What comes out for a frame at port 1, of which there must be so many."""
        self.ends[0].send(octets)
        return await self.next(count)

    async def next(self, count: int) -> list[Packet]:
        """The next packets to come out."""
        found: list[Packet] = []

        def there() -> bool:
            found.extend(self.received())
            return len(found) >= count

        await until(there)
        return sorted(found, key=lambda packet: (packet.port, packet.octets))


def topology(rate_bps: float = 1e12) -> Fabric:
    return Fabric(HOSTS, (SWITCH,), tuple(Cable((host, SWITCH), rate_bps, 0.0) for host in HOSTS), 1)


@asynccontextmanager
async def wired(lab: Namespaces, fabric: Fabric | None = None, **options: Any) -> AsyncIterator[Wired]:
    made = WiredFabric(
        *(fabric or topology(), program()),
        {(host, 0): f"f{port}" for port, host in enumerate(HOSTS, start=1)},
        namespace=lab.file(LAB),
        **options,
    )
    packets_in: list[PacketIn] = []
    serving = asyncio.create_task(made.serve(packets_in.extend))
    async with made.exclusive:
        made.switches[SWITCH].clear()
        made.switches[SWITCH].replication(Replicator.GROUP).insert(GROUP, COPIES)
    try:
        await made.is_passing.wait()
        yield Wired(made, tuple(packets_of(lab, f"e{port}") for port in (1, 2, 3)), packets_in)
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)


def test_copies_are_those_of_virtual_time_and_carry_all_bytes(lab: Namespaces) -> None:
    chance = random.Random(1)
    virtual = EmulatedProgram(REPLICATION)
    virtual.control.replication(Replicator.GROUP).insert(GROUP, COPIES)

    async def scenario() -> None:
        async with wired(lab) as found:
            for length in (14, 60, 400, 511, 513, 1514, 4000, MTU_BYTES + 14 - ADDED_BYTES):
                octets = request(MULTICAST, value=chance.randrange(256), payload=chance.randbytes(length - 8))
                expected = virtual.send(Packet(1, octets[:400]))
                assert len(expected) == 4
                tail, told = octets[400:], struct.pack("!I", length)
                whole = [Packet(each.port, each.octets[:12] + told + each.octets[16:] + tail) for each in expected]
                assert await found.answers(octets, 4) == whole
            counts = found.fabric.wire_counts
            assert (counts.received, counts.sent, counts.unsent, counts.missed) == (8, 24, 0, 0)
            # What a program has made longer than the interface takes is lost there.
            await found.answers(request(MULTICAST, payload=bytes(MTU_BYTES + 14 - 8)), 1)
            assert found.fabric.wire_counts.unsent == 3

    run(scenario)


def test_a_frame_goes_where_the_program_says_and_keeps_its_vlan_tag(lab: Namespaces) -> None:
    tagged = request(0, port=3) + b"\x01\x02\x03\x04" + struct.pack("!HH", 0x8100, 0x6007) + b"\x08\x00" + bytes(80)

    async def scenario() -> None:
        async with wired(lab) as found:
            (plain,) = await found.answers(request(0, port=2, payload=bytes(70)), 1)
            assert plain.port == 2
            (sent,) = await found.answers(tagged, 1)
            assert sent.port == 3
            assert tagged[8:] in sent.octets

    run(scenario)


def test_frames_that_are_too_long_are_lost_counted_and_told(lab: Namespaces, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with wired(lab, mtu_bytes=1500) as found:
            found.ends[0].send(request(0, port=2, payload=bytes(3000)))
            (passed,) = await found.answers(request(0, port=2, payload=b"\xab" * 1506), 1)
            assert passed.octets.endswith(b"\xab" * 1506)
            assert (found.fabric.wire_counts.jumbo, found.fabric.wire_counts.received) == (1, 1)
            await until(lambda: "1 frames are longer than the MTU" in caplog.text)

    run(scenario)


def test_links_follow_interfaces_and_interfaces_follow_links(lab: Namespaces) -> None:
    async def scenario() -> None:
        async with wired(lab) as found:
            fabric = found.fabric
            links = [link.index for link in fabric.fabric.links if link.source == "host2"]
            both = (*links, fabric.fabric.reverse(links[0]))
            lab.ip(LAB, "link", "set", "e2", "down")
            await until(lambda: not any(map(fabric.is_up, both)))
            assert not fabric.switches[SWITCH].ports.is_up(2)
            lab.ip(LAB, "link", "set", "e2", "up")
            await until(lambda: all(map(fabric.is_up, both)))
            for set_up in (partial(fabric.set_link, both[1]), partial(_set_enabled, fabric)):
                async with fabric.exclusive:
                    set_up(up=False)
                await until(lambda: not fabric.interfaces.is_up("e2"))  # the host sees no carrier
                async with fabric.exclusive:
                    set_up(up=True)
                await until(lambda: fabric.interfaces.is_up("e2") and all(map(fabric.is_up, both)))
            assert [packet.port for packet in await found.answers(request(0, port=2, payload=bytes(60)), 1)] == [2]

    run(scenario)


def _set_enabled(fabric: WiredFabric, *, up: bool) -> None:
    fabric.set_port(SWITCH, 2, enabled=up)


def test_others_go_on_where_an_interface_vanishes_and_it_may_come_back(lab: Namespaces) -> None:
    async def scenario() -> None:
        async with wired(lab) as found:
            lab.ip(LAB, "link", "del", "f2")
            await until(lambda: not found.fabric.switches[SWITCH].ports.is_up(2))
            found.ends[0].send(request(0, port=2, payload=bytes(60)))
            assert [packet.port for packet in await found.answers(request(0, port=3, payload=bytes(60)), 1)] == [3]
            cable(lab, 2)
            await until(lambda: found.fabric.switches[SWITCH].ports.is_up(2))
            with packets_of(lab, "e2") as end:
                found.ends[0].send(request(0, port=2, payload=bytes(61)))
                await until(lambda: _has_come(end, bytes(61)))

    run(scenario)


def _has_come(end: socket.socket, payload: bytes) -> bool:
    try:
        return end.recv(65536).endswith(payload)
    except BlockingIOError:
        return False


def test_no_frame_is_lost_while_somebody_else_has_the_fabric(lab: Namespaces) -> None:
    async def scenario() -> None:
        async with wired(lab) as found:
            sent = 0
            for number in range(100):
                async with found.fabric.exclusive:
                    before = found.fabric.now_ps
                    for _ in range(3):
                        found.ends[0].send(request(0, port=2, payload=number.to_bytes(2, "big") + bytes(50)))
                        sent += 1
                    assert found.fabric.now_ps == before  # nothing passes meanwhile
                    if number % 10 == 0:
                        await found.fabric.breathe()
                        assert found.fabric.now_ps > before
            assert len(await found.next(sent)) == sent

    run(scenario)


def test_frames_pass_between_requests_that_follow_each_other(lab: Namespaces) -> None:
    async def scenario() -> None:
        async with wired(lab) as found:
            before = -1
            for _ in range(100):
                async with found.fabric.exclusive:
                    assert found.fabric.now_ps > before
                    before = found.fabric.now_ps
                    found.ends[0].send(request(0, port=2, payload=bytes(50)))
            assert len(await found.next(100)) == 100

    run(scenario)


def test_a_link_takes_frames_at_its_rate_and_its_queue_drops_the_rest(
    lab: Namespaces, caplog: pytest.LogCaptureFixture
) -> None:
    rate_bps, queue_bytes, length, count = 4e6, 20_000, 1000, 100

    async def scenario() -> None:
        async with wired(lab, topology(rate_bps), queue_limit_bytes=queue_bytes) as found:
            began_s = time.monotonic()
            async with found.fabric.exclusive:
                for _ in range(count):
                    found.ends[0].send(request(0, port=2, payload=bytes(length - 8)))
            # What waits and what is on the link at first; the rest found no room at the host's own link.
            passed = await found.next(queue_bytes // length)
            assert time.monotonic() - began_s > (queue_bytes // length - 1) * length * 8 / rate_bps

            def is_settled() -> bool:
                passed.extend(found.received())
                return len(passed) + found.fabric.host_drops().queue_full == count

            await until(is_settled)
            assert len(passed) < count
            await until(lambda: "hosts send more than the queues of their links hold" in caplog.text)
            assert found.fabric.wire_counts.queue_full == count - len(passed)

    run(scenario)


def test_memory_that_runs_short_costs_copies_and_nothing_else(lab: Namespaces) -> None:
    flood = request(MULTICAST, payload=bytes(100))

    async def scenario() -> None:
        async with wired(lab, topology(1e6), queue_limit_bytes=1 << 40) as found:
            async with found.fabric.exclusive:
                for link in found.fabric.fabric.links:
                    if link.source in HOSTS:
                        found.fabric._state.ps_per_byte[link.index] = 1.0  # hosts send as fast as they can
            while not found.fabric.wire_counts.no_memory:
                for _ in range(200):
                    found.ends[0].send(flood)
                await asyncio.sleep(0.01)
            async with found.fabric.exclusive:
                found.fabric._state.ps_per_byte[:] = 1.0
            while len(found.received()) or found.fabric.next_event_ps < 1 << 60:
                await asyncio.sleep(0.05)
            assert len(await found.answers(flood, 4)) == 4

    run(scenario)


def test_what_reaches_a_nic_without_a_wire_is_lost_and_counted(lab: Namespaces) -> None:
    async def scenario() -> None:
        made = WiredFabric(topology(), program(), {("host1", 0): "f1", ("host2", 0): "f2"}, namespace=lab.file(LAB))
        serving = asyncio.create_task(made.serve(lambda _: None))
        await made.is_passing.wait()
        async with made.exclusive:
            made.switches[SWITCH].clear()
        with packets_of(lab, "e1") as sender, packets_of(lab, "e2") as receiver:
            sender.send(request(0, port=3, payload=bytes(60)))
            sender.send(request(0, port=2, payload=bytes(61)))
            await until(lambda: _has_come(receiver, bytes(61)))
        assert (made.wire_counts.unwired, made.captured()) == (1, ())
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)

    run(scenario)


@pytest.mark.parametrize(
    ("wires", "problem"),
    [
        ({("host1", 0): "f9"}, "there is no interface 'f9'"),
        ({("host1", 0): "f1", ("host2", 0): "f1"}, "an interface can be the wire of one NIC only"),
    ],
)
def test_an_interface_that_cannot_be_a_wire_is_named(
    lab: Namespaces, wires: dict[tuple[str, int], str], problem: str
) -> None:
    with pytest.raises(InterfaceError, match=problem):
        WiredFabric(topology(), program(), wires, namespace=lab.file(LAB))


def test_what_is_no_namespace_or_no_nic_is_named(lab: Namespaces) -> None:
    with pytest.raises(InterfaceError, match="network namespace /nowhere: No such file"):
        WiredFabric(topology(), program(), {("host1", 0): "f1"}, namespace=Path("/nowhere"))
    with pytest.raises(ValueError, match=r"the topology has no NIC host9\.0"):
        WiredFabric(topology(), program(), {("host9", 0): "f1"}, namespace=lab.file(LAB))


def open_files() -> set[str]:
    return {file.name for file in Path("/proc/self/fd").iterdir()}


def test_a_fabric_that_cannot_be_made_leaves_no_file_open(lab: Namespaces, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("emulator.wired_fabric.attached", refused)
    before = open_files()
    with pytest.raises(MemoryError):
        WiredFabric(topology(), program(), {("host1", 0): "f1"}, namespace=lab.file(LAB))
    assert open_files() == before
