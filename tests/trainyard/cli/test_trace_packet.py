"""``trainyard trace-packet``: what it asks of an emulator, and what it shows."""

import asyncio
import json
import threading
from collections.abc import Iterator
from concurrent.futures import Future

import pytest

from emulator.fabric import EmulatedFabric
from emulator.p4runtime.server import serve
from emulator.p4runtime.service import P4RuntimeService
from emulator.tracing.packet_trace import trace_packet
from emulator.tracing.steps import PacketTrace
from tests.bmv2.small_programs import LOOPS
from tests.emulator.mixed_fabrics import SUMS, compiled, prepare, row
from tests.trainyard.cli.conftest import Trainyard

_PACKET = bytes([0, 5, 2]) + bytes(30)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """An emulator that serves traces."""
    emulated = EmulatedFabric(row(), compiled(LOOPS))
    prepare(emulated, SUMS)
    started: Future[tuple[str, asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def serving() -> None:
        service = P4RuntimeService(emulated.switches.values(), LOOPS.pipeline, asyncio.Lock())

        def trace(switch: str, port: int, octets: bytes, length: int | None) -> PacketTrace:
            return trace_packet(emulated, switch, port, octets, length=length)

        end = asyncio.Event()
        async with serve(service, trace=trace) as port:
            started.set_result((f"127.0.0.1:{port}", asyncio.get_running_loop(), end))
            await end.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serving()))
    thread.start()
    served, loop, end = started.result()
    yield served
    loop.call_soon_threadsafe(end.set)
    thread.join()


def test_a_trace_is_shown_as_text_and_as_json(trainyard: Trainyard, address: str) -> None:
    shown = trainyard("trace-packet", address, SUMS, "2", _PACKET.hex())
    assert (shown.exit_code, shown.stderr) == (0, "")
    assert f"switch {SUMS}: packet arrives by port 2, {len(_PACKET)} bytes" in shown.stdout
    assert "request.result: 0x0 -> 0xa" in shown.stdout
    found = trainyard("trace-packet", address, SUMS, "2", _PACKET.hex(), "--length", "100", "--json")
    document = json.loads(found.stdout)
    assert document["is_complete"]
    assert [step["length"] for step in document["steps"] if step["step"] == "arrived"] == [100]
    assert [step["to"] for step in document["steps"] if step["step"] == "delivered"] == ["c"]


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (("s9", "1", "00"), 1, "the packet cannot be traced: there is no switch 's9'"),
        ((SUMS, "9", "00"), 1, f"the packet cannot be traced: switch '{SUMS}' has no cable at port 9"),
        ((SUMS, "2", "0011", "--length", "1"), 1, "a packet of 1 bytes keeps 1, not 2"),
        ((SUMS, "2", "0"), 2, "BYTES: expected pairs of hexadecimal digits, got '0'"),
    ],
)
def test_what_cannot_be_traced_is_named(
    trainyard: Trainyard, address: str, arguments: tuple[str, ...], status: int, words: str
) -> None:
    ended = trainyard("trace-packet", address, *arguments)
    assert (ended.exit_code, ended.stdout) == (status, "")
    assert words in ended.stderr
