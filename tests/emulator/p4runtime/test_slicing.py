"""Long work in slices that must come to its end."""

import asyncio
from collections.abc import Iterator

import pytest

from emulator.p4runtime.slicing import to_the_end


def test_a_cancelled_call_leaves_no_work_half_done() -> None:
    done: list[int] = []

    async def test() -> None:
        waits = asyncio.Event()

        async def wait() -> None:
            waits.set()
            await asyncio.Event().wait()

        steps = (done.append(number) for number in range(1000))
        call = asyncio.create_task(to_the_end(steps, wait))
        await waits.wait()
        assert 0 < len(done) < 1000
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    asyncio.run(test())
    assert done == [*range(1000)]


def test_an_error_of_a_step_ends_the_work() -> None:
    def steps() -> Iterator[None]:
        yield
        raise ValueError("wrong")

    with pytest.raises(ValueError, match="wrong"):
        asyncio.run(to_the_end(steps()))
