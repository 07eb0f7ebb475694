"""How long tests wait for what must happen."""

import asyncio
from collections.abc import Callable

PATIENCE_S = 300.0
"""Only a test that hangs waits so long, however busy the machine is."""

_LOOK_S = 0.01


async def until(holds: Callable[[], bool]) -> None:
    """Wait until a condition holds. Raises TimeoutError after ``PATIENCE_S``."""
    async with asyncio.timeout(PATIENCE_S):
        while not holds():
            await asyncio.sleep(_LOOK_S)
