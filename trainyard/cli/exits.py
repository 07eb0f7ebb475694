"""How commands end: exit statuses, messages on stderr, and signals."""

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import IntEnum
from types import FrameType
from typing import NoReturn

import typer

from topologies.printable import printable

_MOST_LINES = 100
_MOST_CHARACTERS = 4096

EXIT_STATUS = "Exit status: 0 success; 1 a run or the controller failed; 2 bad input, nothing was started."


class ExitStatus(IntEnum):
    """Exit status of every command; a wrong option is bad input too."""

    OK = 0
    FAILED = 1
    BAD_INPUT = 2


def refuse(*messages: str) -> NoReturn:
    """End the command with status 2 and one line on stderr for each problem of the input."""
    _end(messages, ExitStatus.BAD_INPUT)


def fail(*messages: str) -> NoReturn:
    """End the command with status 1 and one line on stderr for each reason, because what it started has failed."""
    _end(messages, ExitStatus.FAILED)


@contextmanager
def terminable() -> Iterator[None]:
    """Let SIGTERM end the command as Ctrl-C does: it stops its worker processes and shows what is finished."""
    before = signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """Yield a function that says whether Ctrl-C was pressed, so that the command can stop between two events.

    A second Ctrl-C ends the command at once.
    """
    is_interrupted = False

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        nonlocal is_interrupted
        is_interrupted = True
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield lambda: is_interrupted
    finally:
        signal.signal(signal.SIGINT, before)


def tell(message: str) -> None:
    """Write a line on stderr, with what a terminal could not show escaped."""
    typer.echo(printable(message, _MOST_CHARACTERS), err=True)


def _end(messages: tuple[str, ...], status: ExitStatus) -> NoReturn:
    for message in messages[:_MOST_LINES]:
        tell(message)
    if len(messages) > _MOST_LINES:
        tell(f"and {len(messages) - _MOST_LINES:,} more problems")
    raise typer.Exit(status)
