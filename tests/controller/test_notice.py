"""Whoever waits for a change is told of it, and misses none."""

import asyncio

from controller.notice import Notice, either
from tests.patience import PATIENCE_S


def test_a_change_between_the_look_and_the_wait_is_not_missed() -> None:
    async def test() -> None:
        notice, is_there = Notice(), False
        for _ in range(2):
            coming = notice.next
            if is_there:
                return
            is_there = True
            notice.tell()
            await coming.wait()
        raise AssertionError

    asyncio.run(asyncio.wait_for(test(), PATIENCE_S))


def test_either_of_two_changes_is_enough_and_waiting_for_it_leaves_nothing_behind() -> None:
    async def test() -> None:
        first, second, before = Notice(), Notice(), asyncio.all_tasks()
        for told in (first, second):
            waiting = asyncio.create_task(either(first.next, second.next))
            await asyncio.sleep(0)
            assert not waiting.done()
            told.tell()
            await waiting
        cancelled = asyncio.create_task(either(first.next, second.next))
        await asyncio.sleep(0)
        cancelled.cancel()
        await asyncio.gather(cancelled, return_exceptions=True)
        await asyncio.sleep(0)
        assert asyncio.all_tasks() == before

    asyncio.run(asyncio.wait_for(test(), PATIENCE_S))
