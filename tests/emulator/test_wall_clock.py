import asyncio
import logging
from dataclasses import dataclass, field

import pytest

from emulator.clock import Clock
from emulator.fabric import PS_PER_S, Completion, PacketIn
from emulator.wall_clock import SLICE_S, TOLERANCE_S, WallClock

_MS = PS_PER_S // 1000
_FIRST_TRANSFER = Completion(flow=0, time_ps=7 * _MS // 2)


@dataclass
class Wall:
    """Wall time that passes while it is read, and while a fabric is at work."""

    time_s: float = 1000.0

    def read(self) -> float:
        self.time_s += 0.0004
        return self.time_s


@dataclass
class Machine:
    """A fabric of which every second takes ``cost`` seconds of wall time to follow; one transfer is under way."""

    wall: Wall
    exclusive: asyncio.Lock
    cost: float = 0.0
    now_ps: int = 0
    slices: list[tuple[int, int]] = field(default_factory=list)

    def packets_in(self) -> tuple[PacketIn, ...]:
        assert not self.exclusive.locked()
        return ()

    def run(self, until_ps: int) -> tuple[Completion, ...]:
        assert self.exclusive.locked()
        completed = self.now_ps < _FIRST_TRANSFER.time_ps <= until_ps
        until_ps = _FIRST_TRANSFER.time_ps if completed else until_ps
        self.wall.time_s += self.cost * (until_ps - self.now_ps) / PS_PER_S
        self.slices.append((self.now_ps, until_ps))
        self.now_ps = until_ps
        return (_FIRST_TRANSFER,) if completed else ()


@dataclass
class Parts:
    wall: Wall
    exclusive: asyncio.Lock
    machine: Machine
    clock: Clock


@pytest.fixture
def parts() -> Parts:
    wall, exclusive = Wall(), asyncio.Lock()
    machine = Machine(wall, exclusive)
    return Parts(wall, exclusive, machine, WallClock(machine, exclusive, lambda _packets: None, wall.read))  # type: ignore[arg-type]


async def _past_the_transfer(clock: Clock, until_ps: int) -> None:
    assert await clock.run(until_ps) == (_FIRST_TRANSFER,)
    assert await clock.run(until_ps) == ()


def test_time_follows_the_wall_in_slices(parts: Parts) -> None:
    start_s = parts.wall.time_s
    asyncio.run(_past_the_transfer(parts.clock, 20 * _MS))
    assert parts.machine.now_ps == 20 * _MS
    assert parts.wall.time_s - start_s >= 0.020
    assert all(end - begin <= SLICE_S * PS_PER_S for begin, end in parts.machine.slices)


def test_time_is_never_ahead_of_the_wall(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    start_s, run = parts.wall.time_s, parts.machine.run
    ahead_s = []

    def observed(until_ps: int) -> tuple[Completion, ...]:
        ahead_s.append(until_ps / PS_PER_S - (parts.wall.time_s - start_s))
        return run(until_ps)

    monkeypatch.setattr(parts.machine, "run", observed)
    asyncio.run(_past_the_transfer(parts.clock, 20 * _MS))
    assert max(ahead_s) < 1e-9


def test_a_short_delay_is_caught_up(parts: Parts, caplog: pytest.LogCaptureFixture) -> None:
    async def delayed() -> None:
        await _past_the_transfer(parts.clock, 5 * _MS)
        parts.wall.time_s += 0.9 * TOLERANCE_S
        before_s = parts.wall.time_s
        assert await parts.clock.run(5 * _MS + round(0.9 * TOLERANCE_S * PS_PER_S)) == ()
        # All of it was due at once; only reading the wall's clock took time.
        assert parts.wall.time_s - before_s < 0.9 * TOLERANCE_S

    asyncio.run(delayed())
    assert not caplog.records


def test_a_long_delay_is_lost(parts: Parts, caplog: pytest.LogCaptureFixture) -> None:
    async def delayed() -> float:
        await _past_the_transfer(parts.clock, 5 * _MS)
        parts.wall.time_s += 3600.0
        before_s = parts.wall.time_s
        assert await parts.clock.run(25 * _MS) == ()
        return parts.wall.time_s - before_s

    assert asyncio.run(delayed()) >= 0.020
    assert [record.levelno for record in caplog.records] == [logging.WARNING]


def test_a_machine_that_cannot_follow_says_so_once(parts: Parts, caplog: pytest.LogCaptureFixture) -> None:
    parts.machine.cost = 3.0
    start_s = parts.wall.time_s
    asyncio.run(_past_the_transfer(parts.clock, 300 * _MS))
    assert parts.wall.time_s - start_s >= 3 * 0.3
    assert ["fallen behind" in record.message for record in caplog.records] == [True]


def test_others_have_their_turn_while_the_fabric_is_late(parts: Parts) -> None:
    parts.machine.cost = 3.0

    async def contend() -> int:
        running = asyncio.create_task(_past_the_transfer(parts.clock, 50 * _MS))
        turns = 0
        while not running.done():
            async with parts.exclusive:
                turns += 1
                before = parts.machine.now_ps
                await asyncio.sleep(0)
                assert parts.machine.now_ps == before
            await asyncio.sleep(0)
        await running
        return turns

    assert asyncio.run(contend()) >= len(parts.machine.slices) // 2
