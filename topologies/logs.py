"""The log of a process on stderr, in lines that no terminal takes for a command."""

import logging

from topologies.printable import printable

_MOST_CHARACTERS = 4096


class PrintableFormatter(logging.Formatter):
    """Escapes and bounds messages, and every line of a traceback: they may quote what others have sent."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name is the base class's
        """Return the first line of a record."""
        record.message = printable(record.message, _MOST_CHARACTERS)
        return super().formatMessage(record)

    def format(self, record: logging.LogRecord) -> str:
        """Return a record, with its traceback where it has one."""
        first, *traceback = super().format(record).split("\n")
        return "\n".join((first, *(printable(line, _MOST_CHARACTERS) for line in traceback)))


def log_to_stderr() -> None:
    """Send the process's log to stderr, warnings and worse."""
    handler = logging.StreamHandler()
    handler.setFormatter(PrintableFormatter())
    logging.basicConfig(handlers=[handler])
