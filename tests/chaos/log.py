"""The log of a world's processes: hundreds of lines about broken connections, shown where a run fails."""

import logging
from argparse import ArgumentParser
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

_LATEST = 100


def add_option(arguments: ArgumentParser) -> None:
    """Add ``--log``, which prints log lines as they come."""
    arguments.add_argument("--log", action="store_true", help="print what processes log, not just where a run fails")


class _Latest(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: deque[str] = deque(maxlen=_LATEST)
        self.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


@contextmanager
def kept(*, shown: bool) -> Iterator[deque[str]]:
    """The latest lines that are logged meanwhile; none where they are ``shown``, on stderr, as they come."""
    latest, root = _Latest(), logging.getLogger()
    if not shown:
        root.addHandler(latest)
    try:
        yield latest.lines
    finally:
        root.removeHandler(latest)
