"""Lets tasks wait until something has changed."""

import asyncio


class Notice:
    """Tells all who wait that something has changed.

    Whoever waits takes ``next`` before it looks, so that it misses no change:

        while True:
            coming = notice.next
            if holds():
                return
            await coming.wait()
    """

    def __init__(self) -> None:
        self.next = asyncio.Event()

    def tell(self) -> None:
        """Tell that something has changed."""
        told, self.next = self.next, asyncio.Event()
        told.set()


async def either(first: asyncio.Event, second: asyncio.Event) -> None:
    """Wait until one of two events is set."""
    waiting = [asyncio.ensure_future(event.wait()) for event in (first, second)]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for future in waiting:
            future.cancel()
