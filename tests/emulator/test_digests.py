"""Digests: what ingress asks to be told, as it is at its end, and whatever becomes of the packet."""

import json
from functools import cache

import pytest

from emulator.compiler.program import compile_program
from tests.bmv2.session import Packet
from tests.bmv2.small_programs import DIGESTS, EmulatedProgram

NOTHING, LEARNED, PAIR, DROPPED = 0, 1, 2, 3
SOURCE, WIDE = bytes.fromhex("0a1122334455"), bytes.fromhex("80fffefdfcfbfaf9f8")


@cache
def switch() -> EmulatedProgram:
    """The program, compiled once."""
    return EmulatedProgram(DIGESTS)


def told(what: int, port: int = 1, odd: int = 0x155) -> list[tuple[int, bytes]]:
    """The digests of a packet: number of the list, and values."""
    emulated = switch()
    octets = bytes([what]) + SOURCE + (odd << 7).to_bytes(2, "big") + WIDE
    link = next(link.index for link in emulated.fabric.fabric.links if link.destination_port == port)
    emulated.fabric.inject(link, octets)
    emulated.fabric.run(emulated.fabric.now_ps + 10**9)
    found = emulated.fabric.packets_in()
    assert all(packet.switch == emulated.control.name for packet in found)
    return [(packet.digest, packet.octets) for packet in found]


def test_values_are_those_at_the_end_of_ingress_by_the_bytes_that_each_needs() -> None:
    switch().fabric.captured()
    # p4c copies what a digest lists where it is asked for, so that the source is not yet 0.
    assert told(LEARNED, port=3) == [(1, SOURCE + b"\0\3" + b"\1\x55" + WIDE)]
    assert told(PAIR) == [(2, SOURCE + b"\2")]
    assert told(NOTHING) == told(DROPPED) == []
    assert len(switch().fabric.captured()) == 3


def test_many_digests_at_once_are_all_told() -> None:
    emulated = switch()
    octets = bytes([PAIR]) + SOURCE + bytes(2) + WIDE
    links = [link.index for link in emulated.fabric.fabric.links if link.destination == emulated.control.name]
    for number in range(900):
        emulated.fabric.inject(links[number % len(links)], octets)
    emulated.fabric.run(emulated.fabric.now_ps + 10**9)
    assert [packet.digest for packet in emulated.fabric.packets_in()] == 900 * [2]
    assert len(emulated.fabric.captured()) == 900


def test_a_switch_sends_packets_and_digests_apart() -> None:
    emulated = switch()
    assert emulated.send(Packet(2, bytes([NOTHING]) + SOURCE + bytes(2) + WIDE))[0].port == 2


def test_a_list_that_is_not_there_is_named() -> None:
    program = json.loads(DIGESTS.json.read_text())
    program["learn_lists"].pop()
    with pytest.raises(ValueError, match="refers to the digest with id 2, which does not exist"):
        compile_program(json.dumps(program))
