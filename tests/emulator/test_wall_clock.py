import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any

import pytest

from emulator.clock import Clock
from emulator.fabric import PS_PER_S
from emulator.observations import Completion, PacketIn
from emulator.wall_clock import IDLE_S, LATE_WITHIN_S, SLICE_S, TOLERANCE_S, WallClock
from tests.patience import PATIENCE_S

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
    is_busy: bool = True

    @property
    def next_event_ps(self) -> int:
        return self.now_ps if self.is_busy else 2**62

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
    clock: WallClock


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

    # All but the slice that is always caught up.
    assert asyncio.run(delayed()) >= 0.020 - SLICE_S
    assert not caplog.records


def test_time_goes_on_though_every_turn_comes_late(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    run = parts.machine.run

    def late(until_ps: int) -> tuple[Completion, ...]:
        parts.wall.time_s += 2 * TOLERANCE_S
        return run(until_ps)

    monkeypatch.setattr(parts.machine, "run", late)
    asyncio.run(asyncio.wait_for(_past_the_transfer(parts.clock, 20 * _MS), PATIENCE_S))
    assert parts.machine.now_ps == 20 * _MS
    assert len(parts.machine.slices) <= 20 + 2


def test_a_machine_that_cannot_follow_says_so_once_in_a_while(parts: Parts, caplog: pytest.LogCaptureFixture) -> None:
    parts.machine.cost = 300.0
    start_s = parts.wall.time_s
    asyncio.run(_past_the_transfer(parts.clock, 100 * _MS))
    lasted_s = parts.wall.time_s - start_s
    assert lasted_s >= 300 * 0.1
    assert {"fallen behind wall time" in record.message for record in caplog.records} == {True}
    assert lasted_s / LATE_WITHIN_S - 1 <= len(caplog.records) <= lasted_s / LATE_WITHIN_S + 1


def test_stalls_that_are_far_apart_are_not_told(parts: Parts, caplog: pytest.LogCaptureFixture) -> None:
    async def stalled() -> None:
        await _past_the_transfer(parts.clock, 5 * _MS)
        for number in range(5):
            parts.wall.time_s += LATE_WITHIN_S / 2 + 0.1
            assert await parts.clock.run((6 + number) * _MS) == ()

    asyncio.run(stalled())
    assert not caplog.records


def test_where_nothing_happens_time_passes_in_longer_steps(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    parts.machine.is_busy = False
    slept_s: list[float] = []

    async def wait_for(waiting: Coroutine[Any, Any, bool], timeout: float) -> None:
        waiting.close()
        slept_s.append(timeout)
        parts.wall.time_s += timeout
        raise TimeoutError

    monkeypatch.setattr(asyncio, "wait_for", wait_for)
    asyncio.run(_past_the_transfer(parts.clock, 200 * _MS))
    assert set(slept_s) == {IDLE_S}
    assert len(parts.machine.slices) <= 0.2 / IDLE_S + 3


def test_a_clock_that_is_woken_goes_on_at_once(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    parts.machine.is_busy = False
    monkeypatch.setattr("emulator.wall_clock.IDLE_S", 3600.0)

    async def woken() -> None:
        running = asyncio.create_task(_past_the_transfer(parts.clock, 20 * _MS))
        while not running.done():
            await asyncio.sleep(0)
            parts.clock.wake()
        await running

    asyncio.run(asyncio.wait_for(woken(), PATIENCE_S))
    assert parts.machine.now_ps == 20 * _MS


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
