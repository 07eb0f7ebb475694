"""Long work in slices, between which the server answers others, and with an end where it takes too long."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator

from emulator.p4runtime.errors import resource_exhausted

MAX_STEPS = 100_000
"""Entities that a read may return, or updates that a write may have: more than a switch holds."""
MAX_CPU_S = 5.0
_SLICE = 20
"""Steps of a slice."""

BetweenSlices = Callable[[], Awaitable[None]]


async def give_way() -> None:
    """Let the server answer others."""
    await asyncio.sleep(0)


async def in_slices(steps: Iterator[None], what: str, between_slices: BetweenSlices = give_way) -> None:
    """Take all steps, and await ``between_slices`` every now and then.

    Raises:
        RequestError: RESOURCE_EXHAUSTED after MAX_STEPS, or MAX_CPU_S of the processor's time.
    """
    left_s = MAX_CPU_S
    began_s = time.thread_time()
    for number, _ in enumerate(steps, start=1):
        if number > MAX_STEPS:
            raise resource_exhausted(f"{what} of more than {MAX_STEPS:,} entities")
        if number % _SLICE == 0:
            left_s -= time.thread_time() - began_s
            if left_s < 0:
                raise resource_exhausted(f"{what} that takes longer than {MAX_CPU_S:g} s")
            await between_slices()
            began_s = time.thread_time()


async def to_the_end(steps: Iterator[None], between_slices: BetweenSlices = give_way) -> None:
    """Take all steps, however many, and await ``between_slices`` every now and then; also when cancelled meanwhile."""
    try:
        for number, _ in enumerate(steps, start=1):
            if number % _SLICE == 0:
                await between_slices()
    except asyncio.CancelledError:
        for _ in steps:
            pass
        raise
