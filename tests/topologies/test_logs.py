import json
import logging
import subprocess
import sys

import pytest

from topologies.logs import JsonFormatter, PrintableFormatter


def _record(message: str, *arguments: object, error: BaseException | None = None) -> logging.LogRecord:
    info = None if error is None else (type(error), error, error.__traceback__)
    return logging.LogRecord("controller", logging.WARNING, "file", 1, message, arguments, info)


def test_what_a_client_sent_stays_in_one_printable_line() -> None:
    shown = PrintableFormatter().format(_record("job %s is gone", "a\x1b[2J\n2026 WARNING root: forged"))
    assert shown.endswith(r"WARNING controller: job a\x1b[2J\n2026 WARNING root: forged is gone")
    assert shown.isprintable()


def test_long_messages_are_cut() -> None:
    assert len(PrintableFormatter().format(_record("j" * 1_000_000))) < 5000


def test_tracebacks_keep_their_lines() -> None:
    try:
        raise ValueError("a\x9bm")
    except ValueError as error:
        lines = PrintableFormatter().format(_record("it failed", error=error)).split("\n")
    assert lines[1] == "Traceback (most recent call last):"
    assert lines[-1] == r"ValueError: a\x9bm"


def test_json_has_one_object_in_a_line_whatever_names_say() -> None:
    try:
        raise ValueError('a\x9b\nm"}')
    except ValueError as error:
        record = _record("job %s is gone", 'a\x1b[2J\n{"level": "forged"}', error=error)
    record.event, record.fields = "job withdrawn", {"job": "a\n\ud800", "hosts": 2, "age_s": float("nan"), "by": None}
    line = JsonFormatter().format(record)
    assert line.isascii()
    assert line.isprintable()
    entry = json.loads(line)
    traceback = entry.pop("traceback")
    assert traceback[0] == "Traceback (most recent call last):"
    assert traceback[-2:] == [r"ValueError: a\x9b", 'm"}']
    assert entry.pop("time").endswith("+00:00")
    assert entry == {
        "level": "warning",
        "logger": "controller",
        "message": r'job a\x1b[2J\n{"level": "forged"} is gone',
        "event": "job withdrawn",
        "fields": {"job": r"a\n\ud800", "hosts": 2, "age_s": None, "by": None},
    }


@pytest.mark.parametrize(
    ("level", "said"),
    [
        ("debug", ["debug", "info", "warning", "theirs"]),
        ("info", ["info", "warning", "theirs"]),
        ("warning", ["warning", "theirs"]),
        ("error", []),
    ],
)
def test_the_level_holds_for_what_is_ours_and_others_only_warn(level: str, said: list[str]) -> None:
    program = f"""
import logging
from topologies.logs import LogFormat, LogLevel, log_to_stderr, set_log_level
log_to_stderr(LogLevel.ERROR, LogFormat.JSON)
set_log_level(LogLevel({level!r}))
for each in ("debug", "info", "warning"):
    getattr(logging.getLogger("controller.some"), each)(each)
logging.getLogger("numba").info("much")
logging.getLogger("numba").warning("theirs")
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert [json.loads(line)["message"] for line in ran.stderr.splitlines()] == said
