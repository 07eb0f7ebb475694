"""What a hostile switch says costs neither much memory nor the event loop."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from controller.background import Worker
from controller.southbound.openflow import actions
from controller.southbound.openflow.access import OpenFlowAccess
from controller.southbound.openflow.actions import decode_instructions, encode_instructions
from controller.southbound.openflow.entries import ToGroup
from controller.southbound.openflow.packets import OpenFlowPackets
from tests.controller.southbound.openflow import fake_switch
from tests.controller.southbound.openflow.fake_switch import FakeSwitch, message
from tests.controller.southbound.openflow.listening import connected, in_time
from tests.patience import until

_ResultT = TypeVar("_ResultT")
_EMPTY_GROUP = b"\0\x10\2\0\0\0\0\1" + bytes(8)
_PORT_STATISTICS = b"\0\x50" + bytes(78)
_GROUP_DESCRIPTIONS, _PORTS = 7, 4


class _Noting(Worker):
    """Does work at once, and notes how many items it was said to have."""

    def __init__(self) -> None:
        super().__init__("noting")
        self.items: list[int] = []

    async def run(self, call: Callable[[], _ResultT], items: int) -> _ResultT:
        self.items.append(items)
        return call()


def _packet_in(port: int, frame: bytes) -> bytes:
    match = b"\0\1\0\x0c" + b"\x80\0\0\4" + port.to_bytes(4, "big") + bytes(4)
    return message(6, fake_switch.PACKET_IN, 0, b"\xff" * 4 + bytes(12) + match + bytes(2) + frame)


def _long_answers(switch: FakeSwitch) -> Callable[[fake_switch.Received], bytes]:
    parts = {_GROUP_DESCRIPTIONS: _EMPTY_GROUP * 4_000, _PORTS: _PORT_STATISTICS * 800}
    return lambda each: switch.parts(each, [parts.get(int.from_bytes(each.body[:2], "big"), b"")])


def test_frames_of_ports_that_a_switch_does_not_describe_are_dropped() -> None:
    async def run() -> None:
        switch = FakeSwitch(ports=[1, 2])
        async with connected(switch) as channel:
            packets = OpenFlowPackets()
            packets.listen(lambda: None)
            packets.connect("t0", channel)
            switch.send(b"".join(_packet_in(port, b"a") for port in range(3, 103)) + _packet_in(2, b"b"))
            arrivals: Sequence[object] = ()

            def has_come() -> bool:
                nonlocal arrivals
                arrivals = arrivals or [(each.port, each.octets) for each in packets.take(1_000)]
                return bool(arrivals)

            await until(has_come)
            assert arrivals == [(2, b"b")]
            assert packets.dropped == {"t0": 100}

    in_time(run)


def test_long_answers_are_decoded_beside_the_event_loop() -> None:
    async def run() -> None:
        switch = FakeSwitch()
        async with connected(switch) as channel:
            switch.answers[fake_switch.MULTIPART_REQUEST] = _long_answers(switch)
            worker = _Noting()
            access = OpenFlowAccess(channel, None, worker, lambda _: None)
            await access.read({})
            assert worker.items[0] >= Worker.SMALL
            worker.items.clear()
            assert len(await access.read_ports()) == 800
            assert worker.items[0] >= Worker.SMALL

    in_time(run)


def test_long_instructions_are_not_remembered() -> None:
    done = tuple(ToGroup(number) for number in range(1, 2_000))
    before = actions._decode_known.cache_info().currsize
    assert decode_instructions(encode_instructions(done, None)) == (done, None)
    assert actions._decode_known.cache_info().currsize == before
