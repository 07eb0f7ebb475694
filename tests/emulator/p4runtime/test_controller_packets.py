"""PacketOut and PacketIn: what the CPU port carries, and who gets it."""

import asyncio
import json

import pytest
from finsy.p4client import P4Client
from finsy.proto import p4i, p4r, rpc_code
from google.protobuf import text_format
from hypothesis import given
from hypothesis import strategies as st

from emulator.observations import PacketIn
from emulator.p4runtime.controller_packets import (
    ControllerHeader,
    MetadataField,
    decode_packet_in,
    encode_packet_out,
    read_controller_header,
)
from emulator.p4runtime.errors import RequestError
from emulator.p4runtime.pipeline import Pipeline, load_pipeline
from emulator.p4runtime.server import serve
from emulator.p4runtime.service import P4RuntimeService
from tests.emulator.p4runtime.clients import LONGEST_PACKET_BYTES, advice, bid, primary, run, serving, set_pipeline
from tests.emulator.p4runtime.fake_switch import FakeSwitch

COMMIT = p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT


def packet_out(payload: bytes, *metadata: tuple[int, bytes]) -> p4r.StreamMessageRequest:
    message = p4r.PacketOut(payload=payload)
    for metadata_id, value in metadata:
        message.metadata.add(metadata_id=metadata_id, value=value)
    return p4r.StreamMessageRequest(packet=message)


GOOD = packet_out(b"payload", (3, b"\x0f"), (1, b"\1\xfe"), (2, b"\0\5"))


@st.composite
def headers(draw: st.DrawFn) -> tuple[ControllerHeader, list[int]]:
    """A header of whole bytes and a value for each of its fields."""
    widths = draw(st.lists(st.integers(1, 40), min_size=1, max_size=6))
    widths.append(8 - sum(widths) % 8)
    ids = draw(st.permutations(range(1, len(widths) + 1)))
    fields = tuple(MetadataField(number, f"field {number}", width) for number, width in zip(ids, widths, strict=True))
    return ControllerHeader("packet_out", fields), [draw(st.integers(0, (1 << width) - 1)) for width in widths]


@given(headers(), st.binary(max_size=20))
def test_metadata_stands_in_front_of_the_packet_field_by_field(
    header_and_values: tuple[ControllerHeader, list[int]], payload: bytes
) -> None:
    header, values = header_and_values
    message = p4r.PacketOut(payload=payload)
    for field, value in zip(header.fields, values, strict=True):
        message.metadata.add(metadata_id=field.id, value=value.to_bytes(5, "big"))
    octets = encode_packet_out(header, message)
    bits = "".join(f"{value:0{field.width_bits}b}" for field, value in zip(header.fields, values, strict=True))
    assert "".join(f"{octet:08b}" for octet in octets[: len(bits) // 8]) == bits
    assert octets[len(bits) // 8 :] == payload
    back = decode_packet_in(header, octets)
    assert back is not None
    assert back.payload == payload
    assert [int.from_bytes(metadata.value, "big") for metadata in back.metadata] == values
    assert all(len(metadata.value) == 1 or metadata.value[0] for metadata in back.metadata)


def test_a_field_without_a_width_is_refused_by_name() -> None:
    message = text_format.Parse(
        'preamble { name: "packet_in" } metadata { id: 1 name: "port" type_name { name: "PortName" } }',
        p4i.ControllerPacketMetadata(),
    )
    with pytest.raises(RequestError, match="packet_in: field port has no width"):
        read_controller_header([message], "packet_in")


def test_a_packet_goes_to_the_switch_of_the_stream_with_its_header(pipeline: Pipeline) -> None:
    async def test() -> None:
        async with serving(pipeline) as served, primary(served) as client:
            await client.request(set_pipeline(COMMIT, pipeline.message))
            await client.send(GOOD)
            await bid(client, 5)
            assert await advice(client) == ("OK", 5)
            assert served.sent == [("switch1", bytes.fromhex("ff5f") + b"payload")]

    run(test())


def test_without_a_header_the_bare_packet_passes(pipeline: Pipeline) -> None:
    config = p4r.ForwardingPipelineConfig()
    config.CopyFrom(pipeline.message)
    del config.p4info.controller_packet_metadata[:]
    document = json.loads(config.p4_device_config)
    document["headers"] = [header for header in document["headers"] if not header["name"].startswith("packet_")]
    config.p4_device_config = json.dumps(document).encode()
    without = load_pipeline(config)

    async def test() -> None:
        async with serving(without) as served, primary(served) as client:
            await client.request(set_pipeline(COMMIT, config))
            await client.send(packet_out(b"payload"))
            await client.send(GOOD)
            error = (await client.receive()).error
            assert (error.canonical_code, "metadata is none" in error.message) == (rpc_code.INVALID_ARGUMENT, True)
            assert served.sent == [("switch1", b"payload")]
            served.service.deliver([PacketIn("switch1", 0, b"abc")])
            assert (await client.receive()).packet == p4r.PacketIn(payload=b"abc")

    run(test())


@pytest.mark.parametrize(
    ("request_message", "code", "named"),
    [
        (packet_out(b"x", (1, b"\1"), (2, b"\1")), rpc_code.INVALID_ARGUMENT, "reserved"),
        (packet_out(b"x", (1, b"\1"), (2, b"\1"), (3, b"\0"), (7, b"\0")), rpc_code.INVALID_ARGUMENT, "7"),
        (packet_out(b"x", (1, b"\1"), (2, b"\1"), (3, b"\0"), (3, b"\0")), rpc_code.INVALID_ARGUMENT, "twice"),
        (packet_out(b"x", (1, b"\1"), (2, b"\x08"), (3, b"\0")), rpc_code.OUT_OF_RANGE, "level"),
        (packet_out(b"x", (1, b""), (2, b"\1"), (3, b"\0")), rpc_code.OUT_OF_RANGE, "egress_port"),
        (
            packet_out(bytes(LONGEST_PACKET_BYTES - 1), (1, b"\1"), (2, b"\1"), (3, b"\0")),
            rpc_code.INVALID_ARGUMENT,
            f"keeps {LONGEST_PACKET_BYTES}",
        ),
    ],
)
def test_a_packet_that_cannot_be_sent_is_answered_with_what_is_wrong(
    pipeline: Pipeline, request_message: p4r.StreamMessageRequest, code: rpc_code.Code.ValueType, named: str
) -> None:
    async def test() -> None:
        async with serving(pipeline) as served, primary(served) as client:
            await client.request(set_pipeline(COMMIT, pipeline.message))
            await client.send(request_message)
            error = (await client.receive()).error
            assert error.canonical_code == code
            assert named in error.message
            assert error.packet_out.packet_out == request_message.packet
            assert served.sent == []

    run(test())


def test_only_the_primary_sends_and_only_to_a_switch_with_a_pipeline(pipeline: Pipeline) -> None:
    async def test() -> None:
        async with serving(pipeline) as served, primary(served) as client, P4Client(served.address) as backup:
            await client.send(GOOD)
            assert (await client.receive()).error.canonical_code == rpc_code.FAILED_PRECONDITION
            await client.request(set_pipeline(COMMIT, pipeline.message))
            await backup.send(GOOD)
            assert (await backup.receive()).error.canonical_code == rpc_code.PERMISSION_DENIED
            await bid(backup, 4)
            assert await advice(backup) == ("ALREADY_EXISTS", 5)
            await backup.send(GOOD)
            assert (await backup.receive()).error.canonical_code == rpc_code.PERMISSION_DENIED
            assert served.sent == []

    run(test())


def test_packets_of_a_switch_come_to_its_primary_alone(pipeline: Pipeline, caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        async with serving(pipeline) as served, primary(served) as client, P4Client(served.address) as backup:
            await bid(backup, 4)
            await advice(backup)
            early = PacketIn("switch1", 0, b"\xff\x85early")
            served.service.deliver([early])
            await client.request(set_pipeline(COMMIT, pipeline.message))
            elsewhere, short = PacketIn("switch2", 0, b"\xff\x85elsewhere"), PacketIn("switch1", 0, b"\xff")
            served.service.deliver([elsewhere, short, PacketIn("switch1", 0, b"\xff\x85here")])
            packet = (await client.receive()).packet
            assert packet.payload == b"here"
            assert [(item.metadata_id, item.value) for item in packet.metadata] == [(5, b"\1\xff"), (4, b"\5")]
            await bid(backup, 4)
            assert await advice(backup) == ("ALREADY_EXISTS", 5)
        assert "switch1 sent its CPU port 1 bytes without a packet_in header" in caplog.text

    run(test())


def test_a_server_that_does_not_reach_the_cpu_ports_says_so(pipeline: Pipeline) -> None:
    async def test() -> None:
        service = P4RuntimeService([FakeSwitch(1)], pipeline, asyncio.Lock())
        async with serve(service) as port, P4Client(f"127.0.0.1:{port}") as client:
            await bid(client, 5)
            await advice(client)
            await client.request(set_pipeline(COMMIT, pipeline.message))
            await client.send(GOOD)
            error = (await client.receive()).error
            assert (error.canonical_code, error.message[:11]) == (rpc_code.UNIMPLEMENTED, "a PacketOut")

    run(test())
