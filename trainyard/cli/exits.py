"""How commands end: the exit status, and what stands on stderr before it."""

import signal
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import NoReturn

import typer

EXIT_STATUS = "Exit status: 0 all went well; 1 a run or the controller failed; 2 the input is bad, nothing was started."


class ExitStatus(IntEnum):
    """Exit status of every command; a wrong use of options is bad input too."""

    OK = 0
    FAILED = 1
    BAD_INPUT = 2


def refuse(messages: Iterable[str]) -> NoReturn:
    """End with one line on stderr for everything that is wrong with the input."""
    _end(messages, ExitStatus.BAD_INPUT)


def fail(message: str) -> NoReturn:
    """End because what was started has failed."""
    _end((message,), ExitStatus.FAILED)


@contextmanager
def terminable() -> Iterator[None]:
    """Let SIGTERM end the command as Ctrl-C does, with its processes, and what is finished shown."""
    before = signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _end(messages: Iterable[str], status: ExitStatus) -> NoReturn:
    for message in messages:
        typer.echo(message, err=True)
    raise typer.Exit(status)
