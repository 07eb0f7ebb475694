"""A program whose P4Info differs from its JSON without harm: what a controller writes is what packets meet."""

from finsy.proto import p4r

from emulator.p4runtime.controller_packets import decode_packet_in, encode_packet_out
from tests.bmv2.session import CPU_PORT, Packet
from tests.bmv2.small_programs import DIFFERING, EmulatedProgram


def route(emulated: EmulatedProgram, kind: int, action: str, port: int) -> p4r.Update:
    """An entry of the table ``ingress.route``, with values as wide as the P4Info says."""
    schema = emulated.pipeline.schema
    table = next(table for table in schema.tables.values() if table.name == "ingress.route")
    entry = p4r.TableEntry(table_id=table.id)
    for field, value in zip(table.match_fields, (kind, 0), strict=True):
        entry.match.add(field_id=field.id, exact=p4r.FieldMatch.Exact(value=value.to_bytes(4, "big")))
    entry.action.action.action_id = schema.actions_by_name[action].id
    entry.action.action.params.add(param_id=1, value=port.to_bytes(4, "big"))
    return p4r.Update(type=p4r.Update.INSERT, entity=p4r.Entity(table_entry=entry))


def test_translated_values_and_padded_headers_are_those_of_the_program() -> None:
    emulated = EmulatedProgram(DIFFERING)
    emulated.write([route(emulated, 1, "ingress.forward", 3), route(emulated, 2, "ingress.copy_to_cpu", 7)])
    assert emulated.send(Packet(1, b"\1\0")) == [Packet(3, b"\1\0")]
    [sent] = emulated.send(Packet(2, b"\2\0"))
    assert sent.port == CPU_PORT
    message = decode_packet_in(emulated.pipeline.schema.packet_in, sent.octets)
    assert message is not None
    assert message.payload == b"\2\0"
    assert [(item.metadata_id, item.value) for item in message.metadata if item.value != b"\0"] == [
        (1, b"\2"),
        (3, b"\7"),
    ]
    register = next(iter(emulated.pipeline.schema.registers.values()))
    assert emulated.control.register(register.name, 0) == (1 << 16) - 2


def test_a_header_that_the_program_does_not_use_stands_in_front_of_the_packet() -> None:
    header = EmulatedProgram(DIFFERING).pipeline.schema.packet_out
    message = p4r.PacketOut(payload=b"payload")
    for number, value in ((1, b"\1\xfe"), (2, b"\0")):
        message.metadata.add(metadata_id=number, value=value)
    assert encode_packet_out(header, message) == b"\xff\0payload"
