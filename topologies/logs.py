"""The log of a process on stderr, as text or JSON, in lines that no terminal takes for a command."""

import json
import logging
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, TextIO

from topologies.printable import printable

_MOST_CHARACTERS = 4096
_MOST_LINES = 200
"""Lines of a traceback in JSON."""
_OURS = ("controller", "emulator", "experiments", "hostlib", "policies", "topologies", "trainyard")
"""The loggers whose information is for operators; of other libraries, warnings and worse are logged."""


class LogLevel(StrEnum):
    """The least level of what is logged."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"

    @property
    def number(self) -> int:
        """The level as the standard library counts it."""
        return logging.getLevelNamesMapping()[self.upper()]


class LogFormat(StrEnum):
    """How a record is written: as text for people, or as one JSON object in a line for programs."""

    TEXT = "text"
    JSON = "json"


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


class JsonFormatter(logging.Formatter):
    """Writes a record as one JSON object in one line.

    Its keys are ``time`` (UTC), ``level``, ``logger`` and ``message``; ``event`` and ``fields`` where the record is an
    event, and ``traceback``, a list of lines, where it has one.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return a record."""
        entry: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": printable(record.getMessage(), _MOST_CHARACTERS),
        }
        if (event := getattr(record, "event", None)) is not None:
            fields: Mapping[str, Any] = getattr(record, "fields", {})
            entry |= {"event": str(event), "fields": {name: _plain(value) for name, value in fields.items()}}
        if record.exc_info:
            lines = self.formatException(record.exc_info).split("\n")[-_MOST_LINES:]
            entry["traceback"] = [printable(line, _MOST_CHARACTERS) for line in lines]
        return json.dumps(entry)


def _plain(value: object) -> object:
    """A field as JSON has it: a number, true, false or null, else its text."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, int) else printable(str(value), _MOST_CHARACTERS)


class _StderrHandler(logging.StreamHandler[TextIO]):
    """The handler that ``log_to_stderr`` adds."""


def log_to_stderr(level: LogLevel = LogLevel.WARNING, form: LogFormat = LogFormat.TEXT) -> None:
    """Send the process's log to stderr."""
    handler = _StderrHandler()
    handler.setFormatter(JsonFormatter() if form is LogFormat.JSON else PrintableFormatter())
    logging.basicConfig(handlers=[handler])
    set_log_level(level)


def set_log_level(level: LogLevel) -> None:
    """Log to stderr from this level on, from now on."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler, _StderrHandler):
            handler.setLevel(level.number)
    for name in _OURS:
        logging.getLogger(name).setLevel(level.number if level.number < logging.WARNING else logging.NOTSET)
