"""Packets that the program truncates: what leaves, and what is left of copies and of hosts' packets."""

import json
from functools import cache
from random import Random

import pytest

from emulator.compiler.program import compile_program
from emulator.replication import Replica, Replication, Replicator
from tests.bmv2.session import Packet
from tests.bmv2.small_programs import PASSING, TRUNCATION, EmulatedProgram
from tests.emulator.replicating_interpreter import ReplicatingInterpreter
from topologies.addressing import FiveTuple

IN_INGRESS, IN_EGRESS, LONGER, MULTICAST, CLONED, _, IN_BOTH, CLONED_LATE, _, RECIRCULATED, RESUBMITTED = range(1, 12)
REST = bytes(range(100, 140))
COPIES = Replication((Replica(1), Replica(3, 7)))


@cache
def compiled() -> EmulatedProgram:
    """The program, compiled once."""
    return EmulatedProgram(TRUNCATION)


def switch() -> EmulatedProgram:
    """The program with a group and a session."""
    emulated = compiled()
    emulated.clear()
    emulated.control.replication(Replicator.GROUP).insert(1, COPIES)
    emulated.control.replication(Replicator.SESSION).insert(5, COPIES)
    return emulated


def request(what: int, first: int = 0, second: int = 0) -> bytes:
    """A packet that asks for something."""
    return bytes([what, first, second]) + REST


def sent(octets: bytes) -> list[Packet]:
    """What leaves because of a packet."""
    return switch().send(Packet(1, octets))


@pytest.mark.parametrize("length", [0, 1, 2, 3, 4, 42, 43, 44, 255])
def test_the_first_bytes_leave(length: int) -> None:
    early, late = request(IN_INGRESS, length), request(IN_EGRESS, 0, length)
    assert sent(early) == [Packet(2, early[:length])]
    assert sent(late) == [Packet(2, late[:length])]


def test_the_length_is_that_of_what_leaves() -> None:
    octets = request(LONGER, 6)
    assert sent(octets) == [Packet(2, b"\1\2\3\4" + octets[:2])]
    assert sent(request(LONGER, 200)) == [Packet(2, b"\1\2\3\4" + request(LONGER, 200))]


@pytest.mark.parametrize(("first", "second"), [(10, 20), (20, 10), (10, 10), (0, 5)])
def test_the_least_length_counts(first: int, second: int) -> None:
    octets = request(IN_BOTH, first, second)
    assert sent(octets) == [Packet(2, octets[: min(first, second)])]


@pytest.mark.parametrize(
    ("what", "expected"),
    [(MULTICAST, [(1, None), (3, None)]), (CLONED, [(1, None), (2, 5), (3, None)]), (RESUBMITTED, [(2, None)])],
)
def test_copies_and_packets_that_return_are_whole(what: int, expected: list[tuple[int, int | None]]) -> None:
    """As on BMv2, where a length belongs to one packet object."""
    octets = request(what, 5)
    assert sent(octets) == [Packet(port, octets[:length]) for port, length in expected]


def test_a_clone_of_egress_is_whole_and_the_packet_is_not() -> None:
    after = request(9, 5)
    assert sent(request(CLONED_LATE, 5)) == [Packet(1, after), Packet(2, after[:5]), Packet(3, after)]


def test_a_packet_that_recirculates_is_whole() -> None:
    octets = request(RECIRCULATED, 5)
    assert sent(octets) == [Packet(2, octets)]


def test_any_packets_do_as_the_interpreter_says() -> None:
    random, emulated = Random(4), switch()
    reference = ReplicatingInterpreter(json.loads(TRUNCATION.json.read_text()))
    reference.multicast_groups[1] = reference.sessions[5] = COPIES
    for _ in range(200):
        octets = request(random.randrange(12), random.randrange(60), random.randrange(60))[: random.randrange(1, 44)]
        expected = sorted((left.port, left.octets) for left in reference.process_all(octets, 1))
        assert [(left.port, left.octets) for left in emulated.send(Packet(1, octets))] == expected


def test_a_truncated_packet_takes_its_own_time_on_the_link() -> None:
    emulated = switch()
    links = emulated.fabric.fabric.links
    link = next(link.index for link in links if link.source == emulated.control.name and link.source_port == 2)
    before = int(emulated.fabric.sent_bytes()[link].sum())
    emulated.send(Packet(1, request(IN_INGRESS, 7)))
    assert int(emulated.fabric.sent_bytes()[link].sum()) - before == 7


def test_a_host_takes_a_truncated_packet_for_none_of_its_flow() -> None:
    """To the program, the gateway's MAC address 06:ff:... asks for 255 bytes."""
    emulated = switch()
    fabric = emulated.fabric
    first, second = (fabric.fabric.nics[name][0].address for name in ("host1", "host2"))
    flow = fabric.add_flow(FiveTuple(first, second, 17, 1, 2))
    fabric.start_transfer(flow, 1000)
    fabric.run(fabric.now_ps + 10**9)
    assert {capture.length for capture in fabric.captured()} == {255}
    assert fabric.progress(flow).acknowledged == 0


def test_a_program_that_does_not_truncate_has_no_code_for_it() -> None:
    assert "truncate(" not in compile_program(PASSING.json.read_text()).source
