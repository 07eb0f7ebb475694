"""How packets are compared."""

import pytest
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.l2 import Ether

from emulator.testing.packets import Difference, differences

_SENT = Ether(src="00:00:00:00:00:01", dst="00:00:00:00:00:02") / IP(src="10.0.1.1", dst="10.0.2.2", ttl=64)


def _places(expected: object, found: object, *ignoring: str | slice) -> list[str]:
    return [each.place for each in differences(expected, bytes(found), ignoring)]  # type: ignore[arg-type, call-overload]


def test_equal_packets_do_not_differ() -> None:
    assert differences(_SENT / UDP() / b"x", bytes(_SENT / UDP() / b"x")) == []


def test_fields_are_named_with_their_values() -> None:
    other = _SENT.copy()
    other[IP].ttl, other[Ether].dst = 63, "00:00:00:00:00:03"
    found = differences(_SENT / UDP(), bytes(other / UDP()))
    assert Difference("IP.ttl", "64", "63") in found
    assert Difference("Ether.dst", "00:00:00:00:00:02", "00:00:00:00:00:03") in found
    assert {each.place for each in found} == {"IP.ttl", "IP.chksum", "Ether.dst"}


def test_ignored_fields_may_be_anything() -> None:
    other = _SENT.copy()
    other[IP].ttl = 63
    assert _places(_SENT / UDP(), other / UDP(), "IP.ttl", "IP.chksum") == []
    assert _places(_SENT / UDP(), other / UDP(), "IP.ttl") == ["IP.chksum"]
    assert _places(_SENT / UDP(), other / UDP(), slice(22, 23), slice(24, 26)) == []


def test_another_layer_and_a_missing_one_are_named() -> None:
    assert "layer 3" in _places(_SENT / UDP(), _SENT / TCP(), "IP.len", "IP.proto", "IP.chksum")
    assert "layer 3" in _places(_SENT, _SENT / b"x", "IP.len", "IP.chksum")


def test_a_payload_that_differs_is_never_ignored() -> None:
    assert _places(_SENT / UDP() / b"one", _SENT / UDP() / b"two", "UDP.chksum") == ["Raw.load"]


def test_bytes_are_compared_by_ranges() -> None:
    assert _places(b"abcdef", b"aXXdeY") == ["bytes 1 to 2", "byte 5"]
    assert _places(b"abc", b"abcd") == ["length"]
    assert _places(b"abc", b"aXc", slice(1, 2)) == []


def test_a_field_that_is_not_there_cannot_be_ignored() -> None:
    with pytest.raises(ValueError, match="has no layer 'TCP'"):
        differences(_SENT, bytes(_SENT), ["TCP.sport"])
    with pytest.raises(ValueError, match="has no field 'hops'; it has version"):
        differences(_SENT, bytes(_SENT), ["IP.hops"])
    with pytest.raises(ValueError, match="packets of Scapy alone"):
        differences(b"", b"", ["IP.ttl"])
