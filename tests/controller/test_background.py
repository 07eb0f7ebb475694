"""Background tasks and threads: one at a time, in order, and none keeps its caller waiting."""

import asyncio
import os
import sys
import threading

import pytest

from controller.background import (
    PLANNING_NICENESS,
    BackgroundTask,
    CancellableCall,
    SerialExecutor,
    run_in_thread,
    run_planning,
    to_its_end,
)
from controller.errors import StoreError
from tests.patience import PATIENCE_S


def test_a_background_task_runs_once_at_a_time_and_again_after_its_end() -> None:
    done: list[str] = []
    waiting = ["a"]

    async def work() -> None:
        while waiting:
            await asyncio.sleep(0)
            done.append(waiting.pop(0))

    async def scenario() -> None:
        task = BackgroundTask(work)
        await task.join()  # nothing to wait for
        task.start()
        waiting.append("b")
        task.start()
        await task.join()
        assert done == ["a", "b"]
        waiting.append("c")
        task.start()
        await task.join()

    asyncio.run(scenario())
    assert done == ["a", "b", "c"]


def test_cancelling_a_wait_does_not_cancel_the_background_task() -> None:
    async def scenario() -> bool:
        finish, is_done = asyncio.Event(), False

        async def work() -> None:
            nonlocal is_done
            await finish.wait()
            is_done = True

        task = BackgroundTask(work)
        task.start()
        waiting = asyncio.create_task(task.join())
        await asyncio.sleep(0)
        waiting.cancel()
        finish.set()
        await task.join()
        return is_done

    assert asyncio.run(scenario())


def test_work_goes_on_to_its_end_where_the_caller_is_cancelled() -> None:
    async def scenario() -> None:
        allowed, done = asyncio.Event(), asyncio.Event()

        async def work() -> str:
            await allowed.wait()
            done.set()
            return "made"

        caller = asyncio.create_task(to_its_end(work()))
        await asyncio.sleep(0)
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
        allowed.set()
        await done.wait()
        assert await to_its_end(work()) == "made"

    asyncio.run(asyncio.wait_for(scenario(), PATIENCE_S))


def test_calls_of_an_executor_run_in_order_and_none_after_its_close() -> None:
    executor, order = SerialExecutor(), list[int]()
    futures = [executor.submit(order.append, number) for number in range(5)]
    executor.close(patience_s=60.0)
    assert order == [0, 1, 2, 3, 4]
    assert all(future.done() for future in futures)
    with pytest.raises(RuntimeError, match="closed"):
        executor.submit(order.append, 5)


def test_a_call_in_a_thread_returns_its_result_or_raises_its_error() -> None:
    assert asyncio.run(run_in_thread(lambda: threading.current_thread().name, "policy x")) == "policy x"

    def fail() -> None:
        raise StoreError("no")

    with pytest.raises(StoreError, match="no"):
        asyncio.run(run_in_thread(fail))


def test_a_call_is_cancelled_only_before_it_begins() -> None:
    cancelled = CancellableCall(lambda: 1)
    assert cancelled.cancel()
    with pytest.raises(StoreError, match="withdrawn"):
        cancelled()
    made = CancellableCall(lambda: 1)
    assert made() == 1
    assert not made.cancel()


@pytest.mark.skipif(sys.platform != "linux", reason="niceness is a property of processes there: nothing to show")
def test_planning_leaves_the_processor_to_calls() -> None:
    def niceness(_: object = None) -> int:
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    async def scenario() -> tuple[int, int, int]:
        return await run_planning(niceness, "any"), await run_in_thread(niceness), niceness()

    planning, other, loop = asyncio.run(scenario())
    assert (planning, other) == (PLANNING_NICENESS, loop)
    assert planning > loop
