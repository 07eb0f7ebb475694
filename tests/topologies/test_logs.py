import logging

from topologies.logs import PrintableFormatter


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
