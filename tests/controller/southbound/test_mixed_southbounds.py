"""Two southbounds together: neither starves the other, and neither stays entered alone."""

import asyncio
from types import TracebackType
from typing import Self, cast

import pytest

from controller.southbound.fabric_southbound import FabricSouthbound
from controller.southbound.mixed import MixedSouthbound
from controller.southbound.mixed_packets import MixedPackets
from controller.southbound.packet_queue import PacketQueue


class _Queue(PacketQueue):
    """A queue in which frames of 100 ports of a switch wait."""

    def __init__(self, switch: str, num_waiting: int) -> None:
        super().__init__()
        self.listen(lambda: None)
        for number in range(num_waiting):
            self.keep(switch, number % 100, number.to_bytes(2, "big"))

    @property
    def connected(self) -> list[str]:
        return []

    def send(self, name: str, packets: object) -> None:
        raise AssertionError(f"nothing is sent to {name}: {packets}")


@pytest.mark.parametrize(("of_one", "of_other"), [(1_000, 20), (20, 1_000), (1_000, 1_000), (3, 4)])
def test_a_flood_by_one_protocol_leaves_half_of_the_turn_to_the_other(of_one: int, of_other: int) -> None:
    packets = MixedPackets(_Queue("one", of_one), _Queue("other", of_other))
    taken = packets.take(100)
    assert len(taken) == min(100, of_one + of_other)
    for switch, num_waiting in (("one", of_one), ("other", of_other)):
        own = [int.from_bytes(arrival.octets, "big") for arrival in taken if arrival.switch == switch]
        assert len(own) >= min(50, num_waiting)
        assert own == list(range(len(own)))


class _Entered:
    """What is entered of a southbound."""

    packets = MixedPackets(_Queue("", 0), _Queue("", 0))

    def __init__(self, *, fails: bool) -> None:
        self.fails = fails
        self.is_entered = False

    async def __aenter__(self) -> Self:
        if self.fails:
            raise OSError("the address cannot be bound")
        self.is_entered = True
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.is_entered = False


def test_the_first_southbound_ends_where_the_second_cannot_begin() -> None:
    first, second = _Entered(fails=False), _Entered(fails=True)
    both = MixedSouthbound(cast("FabricSouthbound", first), cast("FabricSouthbound", second))

    async def play() -> None:
        with pytest.raises(OSError, match="cannot be bound"):
            async with both:
                raise AssertionError("it was entered")
        assert not first.is_entered
        second.fails = False
        async with both:
            assert first.is_entered
            assert second.is_entered
        assert not first.is_entered
        assert not second.is_entered

    asyncio.run(play())
