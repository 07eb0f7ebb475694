"""Ending in an orderly way when interrupted: at the next event, not in the middle of one."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """Whether an interrupt (Ctrl-C) has come meanwhile; a second one ends the command at once."""
    has_come = False

    def note(_number: int, _frame: FrameType | None) -> None:
        nonlocal has_come
        has_come = True
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, note)
    try:
        yield lambda: has_come
    finally:
        signal.signal(signal.SIGINT, before)
