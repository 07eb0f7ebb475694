"""Frames go to and from the controller as os-ken has them."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.southbound.openflow.messages import MalformedError
from controller.southbound.openflow.packet_messages import PacketIn, decode_packet_in, encode_packet_out
from tests.controller.southbound.openflow.drawn_entries import cookies
from tests.controller.southbound.openflow.os_ken_messages import OsKen

_VERSIONS = st.sampled_from((4, 6))
_PORTS = st.integers(1, 0xFFFF_FF00)


@given(_PORTS, st.binary(max_size=200), _VERSIONS)
def test_packet_outs_are_those_of_os_ken(port: int, octets: bytes, version: int) -> None:
    os_ken = OsKen(version)
    controller = os_ken.numbers.OFPP_CONTROLLER
    origin = {"in_port": controller} if version == 4 else {"match": os_ken.parts.OFPMatch(in_port=controller)}
    assert encode_packet_out(port, octets, version) == os_ken.octets(
        "OFPPacketOut",
        buffer_id=os_ken.numbers.OFP_NO_BUFFER,
        actions=[os_ken.parts.OFPActionOutput(port, 0)],
        data=octets,
        **origin,
    )


@pytest.mark.parametrize(("port", "size"), [(0, 1), (0xFFFF_FFFB, 1), (1, 65_536)])
def test_what_cannot_be_sent_is_refused(port: int, size: int) -> None:
    with pytest.raises(ValueError, match=r"reserved|longer"):
        encode_packet_out(port, bytes(size), 4)


def _packet_in(version: int, match: dict[str, object], cookie: int, octets: bytes) -> bytes:
    fields = bytearray()
    OsKen(version).parts.OFPMatch(**match).serialize(fields, 0)
    body = struct.pack("!IHBBQ", 0xFFFF_FFFF, len(octets), 1, 0, cookie) + bytes(fields) + bytes(2) + octets
    return struct.pack("!BBHI", version, 10, 8 + len(body), 0) + body


@given(_PORTS, cookies, st.binary(max_size=200), _VERSIONS)
def test_packet_ins_are_read_as_os_ken_reads_them(port: int, cookie: int, octets: bytes, version: int) -> None:
    message = _packet_in(version, {"in_port": port, "tunnel_id": 7, "metadata": 3}, cookie, octets)
    theirs = OsKen(version).read(message)
    assert (theirs.match["in_port"], theirs.cookie, theirs.data) == (port, cookie, octets)
    assert decode_packet_in(message, version) == PacketIn(port, cookie, octets)


@pytest.mark.parametrize("version", [4, 6])
def test_a_packet_in_that_tells_no_port_is_malformed(version: int) -> None:
    with pytest.raises(MalformedError, match=r"does not tell the port"):
        decode_packet_in(_packet_in(version, {"tunnel_id": 7}, 0, b"frame"), version)


@pytest.mark.parametrize("version", [4, 6])
def test_a_truncated_packet_in_is_malformed(version: int) -> None:
    whole = _packet_in(version, {"in_port": 1}, 0, b"")
    for length in range(len(whole) - 2):  # the last two are padding
        with pytest.raises(MalformedError):
            decode_packet_in(whole[:2] + length.to_bytes(2, "big") + whole[4:length], version)
