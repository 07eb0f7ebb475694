"""PacketOut and PacketIn as a switch's CPU port carries them (P4Runtime specification, section 16.1).

The program declares a header for each direction with ``@controller_header``. Its fields are the metadata of the message
and precede the packet as bytes. Without such a header the bare packet passes.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from types import MappingProxyType

from finsy.proto import p4i, p4r

from emulator.p4runtime.bytestrings import decode_value, encode_value
from emulator.p4runtime.errors import invalid_argument, unimplemented
from emulator.p4runtime.texts import Texts

PACKET_OUT, PACKET_IN = "packet_out", "packet_in"
NO_TYPES: Mapping[str, Texts | None] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class MetadataField:
    """One field of a controller header; without an ``id`` it is padding that no message shows."""

    id: int
    name: str
    width_bits: int
    is_translated: bool = False
    texts: Texts | None = dataclass_field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class ControllerHeader:
    """Header of packets from or to a controller; fields are in wire order, high bits first."""

    name: str
    fields: tuple[MetadataField, ...] = ()

    @property
    def width_bytes(self) -> int:
        """Length of the header."""
        return sum(field.width_bits for field in self.fields) // 8

    @property
    def shown(self) -> tuple[MetadataField, ...]:
        """Fields that messages have as metadata."""
        return tuple(field for field in self.fields if field.id)


def read_controller_header(
    messages: Iterable[p4i.ControllerPacketMetadata], name: str, translated: Mapping[str, Texts | None] = NO_TYPES
) -> ControllerHeader:
    """Return the header of this name, without fields if the P4Info declares none.

    ``translated`` are the types whose width in the program may be another one. Raises RequestError: INVALID_ARGUMENT
    for a duplicate header or field id, UNIMPLEMENTED for a field without a width.
    """
    found = [message for message in messages if message.preamble.name == name]
    if len(found) > 1:
        raise invalid_argument(f"P4Info: the controller header {name} is declared twice")
    fields = tuple(
        MetadataField(
            *(field.id, field.name, field.bitwidth, field.type_name.name in translated),
            translated.get(field.type_name.name),
        )
        for message in found
        for field in message.metadata
    )
    for field in fields:
        if field.width_bits <= 0 and field.texts is None:
            raise unimplemented(f"{name}: field {field.name} has no width, and is no text")
    if len({field.id for field in fields}) != len(fields):
        raise invalid_argument(f"P4Info: two fields of the controller header {name} have the same id")
    return ControllerHeader(name, fields)


def encode_packet_out(header: ControllerHeader, message: p4r.PacketOut) -> bytes:
    """Return the bytes that a switch receives on its CPU port.

    Raises RequestError: INVALID_ARGUMENT for metadata that is not the header's, OUT_OF_RANGE for a value that does not
    fit.
    """
    values = {metadata.metadata_id: metadata.value for metadata in message.metadata}
    if len(values) != len(message.metadata):
        raise invalid_argument(f"{header.name}: a metadata field is given twice")
    if values.keys() != {field.id for field in header.shown}:
        wanted = ", ".join(f"{field.name} ({field.id})" for field in header.shown) or "none"
        raise invalid_argument(f"{header.name}: its metadata is {wanted}, but {sorted(values)} are given")
    bits = 0
    for field in header.fields:
        where = f"{header.name}, metadata {field.name}"
        if not field.id:
            value = 0
        elif field.texts is not None:
            value = field.texts.number(values[field.id], field.width_bits, where)
        else:
            value = decode_value(values[field.id], field.width_bits, where)
        bits = bits << field.width_bits | value
    return bits.to_bytes(header.width_bytes, "big") + message.payload


def decode_packet_in(header: ControllerHeader, octets: bytes) -> p4r.PacketIn | None:
    """Return the controller's message for a packet from a CPU port; None if it is shorter than its header."""
    if len(octets) < header.width_bytes:
        return None
    message = p4r.PacketIn(payload=octets[header.width_bytes :])
    bits, left = int.from_bytes(octets[: header.width_bytes], "big"), 8 * header.width_bytes
    for field in header.fields:
        left -= field.width_bits
        if not field.id:
            continue
        value = bits >> left & (1 << field.width_bits) - 1
        text = encode_value(value) if field.texts is None else field.texts.text(value)
        message.metadata.add(metadata_id=field.id, value=text)
    return message
