"""Types that are texts for controllers and numbers for the program."""

import re

import pytest
from finsy.proto import p4r, rpc_code

from emulator.p4runtime.controller_packets import decode_packet_in, encode_packet_out
from emulator.p4runtime.errors import BatchError, RequestError
from emulator.p4runtime.pipeline import Pipeline, compiled_pipeline
from emulator.p4runtime.target import Target
from emulator.p4runtime.texts import LONGEST_TEXT, Texts
from emulator.p4runtime.write import write_batch
from tests.bmv2.session import CPU_PORT, Packet
from tests.bmv2.small_programs import DIFFERING, EmulatedProgram


def with_texts() -> Pipeline:
    """The program whose ports are texts."""
    text = DIFFERING.p4info.read_text().replace("sdn_bitwidth: 32", "sdn_string { }")
    text = re.sub(r"bitwidth: 32(\s+(?:match_type: \w+\s+)?type_name)", r"\1", text)
    assert "bitwidth: 32" not in text
    return compiled_pipeline(text, DIFFERING.json.read_bytes())


def route(pipeline: Pipeline, kind: int, action: str, port: str) -> p4r.Update:
    """An entry whose port is a text; the one in the key is empty, which is 0."""
    table = next(table for table in pipeline.schema.tables.values() if table.name == "ingress.route")
    entry = p4r.TableEntry(table_id=table.id)
    for field, value in zip(table.match_fields, (bytes([kind]), b""), strict=True):
        entry.match.add(field_id=field.id, exact=p4r.FieldMatch.Exact(value=value))
    entry.action.action.action_id = pipeline.schema.actions_by_name[action].id
    entry.action.action.params.add(param_id=1, value=port.encode())
    return p4r.Update(type=p4r.Update.INSERT, entity=p4r.Entity(table_entry=entry))


def test_texts_in_decimal_are_the_ports_of_packets() -> None:
    emulated, pipeline = EmulatedProgram(DIFFERING), with_texts()
    emulated.target = Target(emulated.control, pipeline)
    written = [route(pipeline, 1, "ingress.forward", "3"), route(pipeline, 2, "ingress.copy_to_cpu", "7")]
    emulated.write(written)
    assert emulated.send(Packet(1, b"\1\0")) == [Packet(3, b"\1\0")]
    [sent] = emulated.send(Packet(2, b"\2\0"))
    assert sent.port == CPU_PORT
    message = decode_packet_in(pipeline.schema.packet_in, sent.octets)
    assert message is not None
    assert [(item.metadata_id, item.value) for item in message.metadata][::2] == [(1, b"2"), (3, b"7")]
    everything = emulated.read(p4r.Entity(table_entry=p4r.TableEntry(table_id=written[0].entity.table_entry.table_id)))
    assert everything == [update.entity for update in written]
    for port, code in (("512", rpc_code.INVALID_ARGUMENT), ("Ethernet0", rpc_code.INVALID_ARGUMENT)):
        with pytest.raises(BatchError) as error:
            write_batch(emulated.target, [route(pipeline, 3, "ingress.forward", port)])
        assert error.value.results[0].canonical_code == code


def test_a_packet_out_takes_texts() -> None:
    header = with_texts().schema.packet_in
    message = p4r.PacketOut(payload=b"x")
    for field in header.shown:
        message.metadata.add(metadata_id=field.id, value=b"5" if field.texts else b"\0")
    assert encode_packet_out(header, message) == (5 << 23 | 5 << 7).to_bytes(4, "big") + b"x"


def test_other_texts_get_numbers_from_the_top_and_keep_them() -> None:
    texts = Texts()
    first, second = (texts.number(name, 12, "field") for name in (b"vrf-1", "über".encode()))
    assert (first, second) == (4095, 4094)
    assert texts.number(b"vrf-1", 12, "field") == 4095
    assert [texts.text(number) for number in (4095, 4094, 7)] == [b"vrf-1", "über".encode(), b"7"]
    assert texts.number(b"7", 12, "field") == 7
    assert texts.number(b"", 12, "field") == 0
    assert texts.text(0) == b""
    assert texts.number(b"007", 12, "field") == 4093  # not a number as it is written


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (b"4095", "the number of '4095' belongs to 'taken'"),
        (b"\xff", "not UTF-8"),
        (b"x" * (LONGEST_TEXT + 1), f"at most {LONGEST_TEXT} bytes"),
    ],
)
def test_wrong_texts_are_refused_by_name(text: bytes, named: str) -> None:
    texts = Texts()
    texts.number(b"taken", 12, "field")
    with pytest.raises(RequestError, match=f"field: .*{named}"):
        texts.number(text, 12, "field")


def test_there_is_an_end_to_texts() -> None:
    texts = Texts()
    numbers = [texts.number(f"text {number}".encode(), 10, "field") for number in range(1023)]
    assert sorted(numbers) == list(range(1, 1024))
    with pytest.raises(RequestError, match="field: there are too many texts"):
        texts.number(b"one more", 10, "field")
