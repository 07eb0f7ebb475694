"""Ports are read as os-ken reads them."""

import struct
from dataclasses import astuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.southbound.openflow.messages import MalformedError
from controller.southbound.openflow.port_messages import (
    PortChange,
    PortDescription,
    PortStatistics,
    decode_port_descriptions,
    decode_port_statistics,
    decode_port_status,
    port_descriptions_request,
    port_statistics_request,
)
from tests.controller.southbound.openflow.drawn_entries import macs
from tests.controller.southbound.openflow.os_ken_messages import OsKen
from topologies.addressing import MacAddress

_VERSIONS = st.sampled_from((4, 6))
_NUMBERS = st.integers(0, 0xFFFF_FF00)
_BITS = st.integers(0, 7)
_COUNTS = st.lists(st.integers(0, 0xFFFF_FFFF_FFFF_FFFE), min_size=8, max_size=8)
_DESCRIPTIONS, _STATISTICS = 13, 4


def _port(version: int, number: int, mac: int, name: bytes, configuration: int, state: int) -> bytes:
    """Return a port with the properties that Open vSwitch adds in version 1.5."""
    hardware, speeds = mac.to_bytes(6, "big"), struct.pack("!6I", 1, 2, 3, 4, 5, 6)
    if version == 4:
        return struct.pack("!I4x6s2x16sII", number, hardware, name, configuration, state) + speeds
    properties = struct.pack("!HH4x", 0, 32) + speeds
    fixed = struct.pack("!IH2x6s2x16sII", number, 40 + len(properties), hardware, name, configuration, state)
    return fixed + properties


def _statistics(version: int, number: int, counts: list[int]) -> bytes:
    if version == 4:
        return struct.pack("!I4x8Q4QII", number, *counts, 1, 2, 3, 4, 5, 6)
    properties = struct.pack("!HH4x4Q", 0, 40, 1, 2, 3, 4)
    return struct.pack("!H2xIII8Q", 80 + len(properties), number, 5, 6, *counts) + properties


@given(_NUMBERS, macs, st.text("abc-0", min_size=1, max_size=15), _BITS, _BITS, _VERSIONS)
def test_descriptions_are_read_as_os_ken_reads_them(
    number: int, mac: MacAddress, name: str, configuration: int, state: int, version: int
) -> None:
    os_ken = OsKen(version)
    octets = _port(version, number, mac, name.encode(), configuration, state)
    reply = os_ken.reply(_DESCRIPTIONS, octets * 2)
    ports = decode_port_descriptions([reply, reply], version)
    theirs = os_ken.read(reply).body
    numbers = os_ken.numbers
    for found in theirs:
        is_up = not found.config & numbers.OFPPC_PORT_DOWN and not found.state & numbers.OFPPS_LINK_DOWN
        expected = PortDescription(
            found.port_no, found.name.rstrip(b"\0").decode(), MacAddress(int(found.hw_addr.replace(":", ""), 16)), is_up
        )
        assert ports == [expected] * 4


@given(_NUMBERS, _COUNTS, _VERSIONS)
def test_statistics_are_read_as_os_ken_reads_them(number: int, counts: list[int], version: int) -> None:
    os_ken = OsKen(version)
    reply = os_ken.reply(_STATISTICS, _statistics(version, number, counts) * 2)
    found = decode_port_statistics([reply], version)
    fields = ("rx_packets", "tx_packets", "rx_bytes", "tx_bytes", "rx_dropped", "tx_dropped", "rx_errors", "tx_errors")
    theirs = [
        PortStatistics(port.port_no, *(getattr(port, field) for field in fields)) for port in os_ken.read(reply).body
    ]
    assert found == theirs
    assert astuple(found[0]) == (number, *counts)


@pytest.mark.parametrize("version", [4, 6])
def test_what_a_switch_does_not_count_is_none(version: int) -> None:
    reply = OsKen(version).reply(_STATISTICS, _statistics(version, 1, [1, 2, 3, 4, 0xFFFF_FFFF_FFFF_FFFF, 6, 7, 8]))
    (found,) = decode_port_statistics([reply], version)
    assert (found.received_dropped, found.sent_dropped) == (None, 6)


@pytest.mark.parametrize("version", [4, 6])
def test_ports_with_reserved_numbers_are_left_out(version: int) -> None:
    os_ken = OsKen(version)
    local = _port(version, os_ken.numbers.OFPP_LOCAL, 2, b"bridge", 0, 0)
    reply = os_ken.reply(_DESCRIPTIONS, local + _port(version, 1, 2, b"one", 0, 0))
    assert [port.name for port in decode_port_descriptions([reply], version)] == ["one"]
    statistics = _statistics(version, os_ken.numbers.OFPP_LOCAL, [0] * 8)
    assert decode_port_statistics([os_ken.reply(_STATISTICS, statistics)], version) == []


@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("change", PortChange)
def test_a_port_status_tells_what_has_become_of_a_port(change: PortChange, version: int) -> None:
    octets = struct.pack("!B7x", change) + _port(version, 3, 2, b"three", 0, 1)
    message = struct.pack("!BBHI", version, 12, 8 + len(octets), 0) + octets
    assert decode_port_status(message, version) == (change, PortDescription(3, "three", MacAddress(2), False))
    assert OsKen(version).read(message).desc.port_no == 3


@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize(("reason", "ports"), [(3, 1), (0, 0), (0, 2)])
def test_a_port_status_that_tells_something_else_is_malformed(version: int, reason: int, ports: int) -> None:
    octets = struct.pack("!B7x", reason) + _port(version, 3, 2, b"three", 0, 1) * ports
    with pytest.raises(MalformedError, match=r"port status has reason"):
        decode_port_status(struct.pack("!BBHI", version, 12, 8 + len(octets), 0) + octets, version)


@pytest.mark.parametrize("version", [4, 6])
def test_the_requests_are_those_of_os_ken(version: int) -> None:
    os_ken = OsKen(version)
    assert port_descriptions_request(version) == os_ken.octets("OFPPortDescStatsRequest", 0)
    assert port_statistics_request(version) == os_ken.octets("OFPPortStatsRequest", 0, os_ken.numbers.OFPP_ANY)


@pytest.mark.parametrize("version", [4, 6])
def test_a_name_that_is_no_text_is_shown(version: int) -> None:
    reply = OsKen(version).reply(_DESCRIPTIONS, _port(version, 1, 2, b"e\xff", 0, 0))
    assert decode_port_descriptions([reply], version)[0].name == "e\\xff"


@pytest.mark.parametrize("version", [4, 6])
def test_every_truncation_is_malformed(version: int) -> None:
    for kind, decode, octets in (
        (_DESCRIPTIONS, decode_port_descriptions, _port(version, 1, 2, b"one", 0, 0)),
        (_STATISTICS, decode_port_statistics, _statistics(version, 1, [0] * 8)),
    ):
        for length in range(1, len(octets)):
            with pytest.raises(MalformedError):
                decode([OsKen(version).reply(kind, octets[:length])], version)
