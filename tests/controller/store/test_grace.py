"""The grace after a start is stored as a duration."""

import asyncio
from pathlib import Path

from controller.store.store import Store
from experiments.scenarios.driven.clock import DrivenClock
from tests.controller.record.lives import Life
from tests.patience import until


def test_the_grace_is_a_duration_that_ends_however_the_clock_steps(address: str) -> None:
    year_s = 365 * 86_400.0

    async def scenario() -> None:
        first = Store.open(address, DrivenClock(year_s))  # its clock is a year ahead
        assert first.grace_s(10.0) == 10.0
        await first.close()
        second = Store.open(address, DrivenClock(0.0))
        assert second.grace_s(10.0) == 10.0
        await second.record_grace(4.0)
        assert second.grace_s(10.0) == 4.0
        assert second.grace_s(3.0) == 3.0  # never more than a lease
        await second.record_grace(0.0)
        await second.close()
        third = Store.open(address, DrivenClock(-year_s))
        assert third.grace_s(10.0) == 0.0
        await third.close()

    asyncio.run(scenario())


def test_what_is_left_of_the_grace_is_stored_while_it_runs_down(tmp_path: Path) -> None:
    async def scenario() -> None:
        life = Life(tmp_path / "t.db", "ecmp")
        life.start()
        recording = asyncio.create_task(life.controller.record_silences())
        life.clock.advance_to(life.clock.now_s() + 0.5)
        await until(lambda: life.store.grace_s(2.0) == 1.5)
        life.clock.advance_to(life.clock.now_s() + 5.0)
        await life.controller.planner.settle()
        assert not life.southbound.keeps_found
        await until(lambda: life.store.grace_s(2.0) == 0.0)
        recording.cancel()
        await life.store.close()
        life.start()  # a restart: what no job asks for is deleted with the first Plan
        await life.controller.planner.settle()
        assert not life.southbound.keeps_found
        await life.end()

    asyncio.run(scenario())
