"""A failing run prints the log, unless that was printed already."""

import logging
import sys

import pytest

from tests.chaos import __main__ as command
from tests.chaos.run import ChaosError

LINE = "j1: nobody answers"


def play(*_: object) -> None:
    logging.getLogger("hostlib").warning(LINE)
    raise ChaosError("again: make chaos")


@pytest.mark.parametrize(("options", "in_the_error"), [((), True), (("--log",), False)])
def test_log_lines_come_with_a_failure_unless_they_came_before(
    monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], *, in_the_error: bool
) -> None:
    monkeypatch.setattr(command, "play", play)
    monkeypatch.setattr(sys, "argv", ["chaos", *options])
    with pytest.raises(SystemExit) as ended:
        command.main()
    assert (LINE in str(ended.value)) == in_the_error
    assert str(ended.value).endswith("again: make chaos")
