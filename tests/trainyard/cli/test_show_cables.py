"""``trainyard show cables`` and ``show links`` say of each cable what is wrong with it."""

import pytest

from controller.api.operations import operations_pb2 as wire
from controller.api.operations.cable_states import cable_states
from controller.discovery.differences import Difference, DifferenceKind
from trainyard.cli.output import PrintableConsole
from trainyard.cli.show_tables import cables, links

MISPLACED = Difference("leaf:1 - spine:3", DifferenceKind.MISPLACED, "spine:3 hears leaf:2", 6)
UNEXPECTED = Difference("leaf:30", DifferenceKind.UNEXPECTED, "leaf:30 hears spine:9", None)
ELSEWHERE = Difference("gpu:ens1 - leaf:9", DifferenceKind.HOST_ELSEWHERE, "10.0.0.1 answers at leaf:8", 2)


def test_each_difference_has_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    states = list(cable_states({MISPLACED: 90.0, ELSEWHERE: 95.0}, 100.0, {6, 7}))
    assert [(state.problem, state.for_s, state.is_unused) for state in states] == [
        ("misplaced", 10.0, True),
        ("host elsewhere", 5.0, False),
    ]
    PrintableConsole(width=160).print(cables(states))
    shown = capsys.readouterr().out
    assert "2 differences from the fabric file" in shown
    for words in ("leaf:1 - spine:3", "spine:3 hears leaf:2", "10.0 s", "host elsewhere", "10.0.0.1 answers at leaf:8"):
        assert words in shown


def test_a_cable_that_the_file_has_not_is_not_used() -> None:
    [state] = cable_states({UNEXPECTED: 90.0}, 100.0, frozenset())
    assert state.is_unused


@pytest.mark.parametrize(("state", "words"), [("misplaced", "ends elsewhere"), ("unheard", "nothing is heard over it")])
def test_a_cable_that_is_not_used_says_why(capsys: pytest.CaptureFixture[str], state: str, words: str) -> None:
    PrintableConsole(width=160).print(links([wire.LinkState(source="leaf", destination="spine", state=state)]))
    assert words in capsys.readouterr().out
