"""An event loop whose time advances only while all tasks wait, and then at once."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

_ResultT = TypeVar("_ResultT")


class _Waiting(selectors.SelectSelector):
    """Lets time pass instead of waiting."""

    passed_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        assert timeout is not None, "every task waits for another"
        self.passed_s += max(0.0, timeout)
        return super().select(0)


class _VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._waiting = _Waiting()
        super().__init__(self._waiting)

    def time(self) -> float:
        return self._waiting.passed_s


def run(scenario: Coroutine[Any, Any, _ResultT]) -> _ResultT:
    """What a scenario comes to, in virtual time."""
    with asyncio.Runner(loop_factory=_VirtualLoop) as runner:
        return runner.run(scenario)
