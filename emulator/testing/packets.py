"""Packets as tests have them, Scapy's or bytes, and how an expected one differs from one that came."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol


class PacketLike(Protocol):
    """Something that has bytes: ``bytes``, or a packet of Scapy."""

    def __bytes__(self) -> bytes: ...


Ignored = str | slice
"""What is not compared: a field of a layer of Scapy, as ``IP.ttl``, or some bytes, as ``slice(0, 6)``."""

_BYTES_SHOWN = 16


@dataclass(frozen=True, slots=True)
class Difference:
    """A field, or some bytes, in which two packets differ."""

    place: str
    expected: str
    found: str

    def __str__(self) -> str:
        return f"{self.place}: expected {self.expected}, got {self.found}"


def differences(expected: PacketLike, octets: bytes, ignoring: Sequence[Ignored] = ()) -> list[Difference]:
    """Return in what a packet differs from an expected one; none where it is the same but for what is ignored.

    Raises:
        ValueError: A field to ignore is none of the packet's.
    """
    expected_octets, found_octets = bytes(expected), octets
    if _is_scapy(expected):
        shown, found = type(expected)(expected_octets), type(expected)(octets)  # type: ignore[call-arg]
        for each in ignoring:
            if isinstance(each, str):
                _ignore(shown, found, each)
        expected_octets = bytes(shown)
    elif any(isinstance(each, str) for each in ignoring):
        raise ValueError("fields can be ignored in packets of Scapy alone; in bytes, slices can")
    for each in ignoring:
        if isinstance(each, slice):
            expected_octets, found_octets = _blanked(expected_octets, each), _blanked(found_octets, each)
    if expected_octets == found_octets:
        return []
    fields = list(_fields(shown, found)) if _is_scapy(expected) else []
    return fields or list(_octets(expected_octets, found_octets))


def summary(packet: PacketLike) -> str:
    """Return a packet in a line."""
    if _is_scapy(packet):
        return str(packet.summary())  # type: ignore[attr-defined]
    octets = bytes(packet)
    more = "" if len(octets) <= _BYTES_SHOWN else "..."
    return f"{len(octets)} bytes {octets[:_BYTES_SHOWN].hex(' ')}{more}"


def like(packet: PacketLike, octets: bytes) -> PacketLike:
    """Return bytes as a packet of the same kind as another."""
    return type(packet)(octets) if _is_scapy(packet) else octets  # type: ignore[call-arg]


def _is_scapy(packet: PacketLike) -> bool:
    return hasattr(packet, "fields_desc")


def _ignore(shown: Any, found: Any, name: str) -> None:
    """Give an expected packet the value that a field has in another one."""
    layer, _, field = name.rpartition(".")
    expected, other = shown.getlayer(layer), found.getlayer(layer)
    if expected is None:
        raise ValueError(f"the expected packet has no layer {layer!r} to ignore {name} in")
    if not any(each.name == field for each in expected.fields_desc):
        fields = ", ".join(each.name for each in expected.fields_desc)
        raise ValueError(f"layer {layer!r} has no field {field!r}; it has {fields}")
    if other is not None:  # else they differ anyhow
        expected.setfieldval(field, other.getfieldval(field))


def _blanked(octets: bytes, part: slice) -> bytes:
    blank = bytearray(octets)
    for index in range(*part.indices(len(octets))):
        blank[index] = 0
    return bytes(blank)


def _fields(expected: Any, found: Any) -> Iterator[Difference]:
    number = 0
    while True:
        left, right = expected.getlayer(number), found.getlayer(number)
        if left is None and right is None:
            return
        if left is None or right is None or left.name != right.name:
            shown = ["no more" if layer is None else str(layer.name) for layer in (left, right)]
            yield Difference(f"layer {number + 1}", *shown)
            return
        for field in left.fields_desc:
            values = left.getfieldval(field.name), right.getfieldval(field.name)
            if values[0] != values[1]:
                left_text, right_text = (str(field.i2repr(left, value)) for value in values)
                yield Difference(f"{type(left).__name__}.{field.name}", left_text, right_text)
        number += 1


def _octets(expected: bytes, found: bytes) -> Iterator[Difference]:
    if len(expected) != len(found):
        yield Difference("length", f"{len(expected)} bytes", f"{len(found)} bytes")
    at, shorter = 0, min(len(expected), len(found))
    while at < shorter:
        if expected[at] == found[at]:
            at += 1
            continue
        end = at
        while end < shorter and expected[end] != found[end]:
            end += 1
        place = f"byte {at}" if end == at + 1 else f"bytes {at} to {end - 1}"
        yield Difference(place, expected[at:end].hex(" "), found[at:end].hex(" "))
        at = end
