"""Lines of progress where no terminal is: in pipes, in files and in CI."""

import time

import pytest

from tests.patience import PATIENCE_S
from trainyard import progress as module
from trainyard.progress import counted, progress


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LINE_EVERY_S", 0.02)


class Errors:
    """What has been written on stderr so far."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self._seen = ""

    def until(self, words: str) -> list[str]:
        """Wait until a line has these words; returns all lines."""
        end_s = time.monotonic() + PATIENCE_S
        while words not in self._seen and time.monotonic() < end_s:
            time.sleep(0.01)
            self._seen += self._capsys.readouterr().err
        return self._seen.splitlines()


@pytest.mark.usefixtures("often")
def test_a_line_says_how_many_are_done(capsys: pytest.CaptureFixture[str]) -> None:
    errors = Errors(capsys)
    with counted("runs", 12) as advance:
        assert errors.until("after")[0] == "0 of 12 runs, after 0 s"
        for _ in range(3):
            advance()
        assert "3 of 12 runs, after 0 s" in errors.until("3 of 12")
    capsys.readouterr()
    time.sleep(0.1)
    assert capsys.readouterr().err == ""  # it ends with what it tells of


@pytest.mark.usefixtures("often")
def test_a_line_says_how_far_a_run_is_and_controls_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    errors = Errors(capsys)
    with progress("small\x1b[2J under crux") as on_progress:
        assert errors.until("starting")[0] == "small\\x1b[2J under crux: starting, after 0 s"
        on_progress(1.0, float("inf"))
        errors.until(": 1.0 s, after")
        on_progress(2.0, 40.0)
        errors.until(": 2.0 of 40.0 s, after")


@pytest.mark.usefixtures("often")
def test_who_wants_no_progress_gets_none(capsys: pytest.CaptureFixture[str]) -> None:
    with counted("runs", 12, show=False):
        time.sleep(0.1)
    assert capsys.readouterr().err == ""


def test_what_is_quick_has_no_line(capsys: pytest.CaptureFixture[str]) -> None:
    with counted("runs", 1) as advance:
        advance()
    with progress("a run") as on_progress:
        on_progress(1.0, 2.0)
    assert capsys.readouterr().err == ""
