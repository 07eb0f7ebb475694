"""Packets that switches hand up wait in a bounded place, each port's by itself."""

import asyncio
from collections.abc import Callable
from typing import cast

import pytest
from finsy import P4PacketIn, P4Schema, Switch
from finsy.proto import p4r
from grpc.aio import UsageError

from controller.southbound.p4runtime.packets import MAX_WAITING_PER_SWITCH, PacketGate
from controller.southbound.packet_queue import MAX_WAITING_PER_PORT
from controller.southbound.southbound import PacketArrival
from p4src import P4INFO
from tests.controller.southbound.p4runtime.memory_server import MemoryServer, connected, serving
from tests.patience import PATIENCE_S
from topologies.routing import Routing


class _Stream:
    """A switch's stream: ``taken`` has the frames that it took; ``fail`` is raised by the next one."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.p4info = P4Schema(P4INFO)
        self.taken: list[bytes] = []
        self.fail: BaseException | None = None
        self.flows = asyncio.Event()
        self.flows.set()

    @property
    def switch(self) -> Switch:
        return cast("Switch", self)

    @property
    def _p4client(self) -> "_Stream":
        return self

    async def send(self, message: p4r.StreamMessageRequest) -> None:
        await self.flows.wait()
        if self.fail is not None:
            failure, self.fail = self.fail, None
            raise failure
        self.taken.append(message.packet.payload)


def test_a_port_that_floods_leaves_room_to_others() -> None:
    gate, wakes = PacketGate(), []
    gate.receive("s0", packet(b"early", 1))
    assert gate.take(10) == []
    gate.listen(lambda: wakes.append(1))
    for number in range(MAX_WAITING_PER_PORT + 100):
        gate.receive("s0", packet(bytes([number % 256]), 1))
    gate.receive("s0", packet(b"other port", 2))
    gate.receive("s1", packet(b"other switch", 1))
    assert gate.dropped == {"s0": 100}
    assert len(wakes) == 1
    taken = gate.take(1000)
    assert taken[-2:] == [PacketArrival("s0", 2, b"other port"), PacketArrival("s1", 1, b"other switch")]
    assert len(taken) == MAX_WAITING_PER_PORT + 2
    gate.receive("s0", packet(b"again", 1))
    assert gate.take(1000) == [PacketArrival("s0", 1, b"again")]
    assert len(wakes) == 2


def test_a_packet_without_a_port_is_dropped() -> None:
    gate = PacketGate()
    gate.listen(lambda: None)
    gate.receive("s0", P4PacketIn(b"", metadata={}))
    assert gate.dropped == {"s0": 1}


def test_a_switch_that_takes_nothing_holds_up_no_other_one_and_gets_the_newest_later() -> None:
    async def test() -> None:
        gate, hung, other = PacketGate(), _Stream("s0"), _Stream("s1")
        for stream in (hung, other):
            gate.connect(stream.switch)
        hung.flows.clear()
        for number in range(MAX_WAITING_PER_SWITCH + 100):
            gate.send("s0", [(1, b"%d" % number)])
        await asyncio.sleep(0)
        gate.send("s1", [(1, b"one"), (2, b"two")])
        await gate.sent("s1")
        assert other.taken == [b"one", b"two"]
        assert hung.taken == []
        hung.flows.set()
        await gate.sent("s0")
        assert len(hung.taken) <= MAX_WAITING_PER_SWITCH + 1
        assert hung.taken[-1] == b"%d" % (MAX_WAITING_PER_SWITCH + 99)

    asyncio.run(test())


@pytest.mark.parametrize("failure", [asyncio.CancelledError, asyncio.InvalidStateError, UsageError, AssertionError])
def test_a_stream_that_is_closed_under_a_frame_takes_the_later_ones_when_it_is_open_again(
    failure: Callable[[], BaseException],
) -> None:
    async def test() -> None:
        gate, stream = PacketGate(), _Stream("s0")
        gate.connect(stream.switch)
        stream.fail = failure()
        gate.send("s0", [(1, b"lost"), (1, b"lost with it")])
        await gate.sent("s0")
        assert stream.taken == []
        gate.disconnect("s0")
        gate.send("s0", [(1, b"away")])
        gate.connect(stream.switch)
        gate.send("s0", [(1, b"again")])
        await gate.sent("s0")
        assert stream.taken == [b"again"]

    asyncio.run(test())


def test_a_stream_that_is_cancelled_while_its_switch_takes_nothing_ends_the_sending(star: Routing) -> None:
    async def test() -> None:
        async with serving(MemoryServer()) as address, connected([address], star) as southbound:
            await southbound.caught_up()
            gate = southbound.packets
            connection = gate._connected["s0"]
            # The server reads no second message: flow control stops the stream.
            gate.send("s0", [(1, bytes(100_000))] * MAX_WAITING_PER_SWITCH)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(gate.sent("s0"), 0.5)
            assert connection.waiting
            client = connection.switch._p4client
            assert client is not None
            assert client._stream is not None
            client._stream.cancel()
            await asyncio.wait_for(connection.sending.join(), PATIENCE_S)
            assert not connection.waiting

    asyncio.run(test())


def packet(octets: bytes, port: int) -> P4PacketIn:
    return P4PacketIn(octets, metadata={"ingress_port": port})
