"""What counts as drift, and what was only written while the switch was read."""

from finsy import P4TableAction, P4TableEntry, P4TableMatch

from controller.southbound.drift import Drift, drift_between, may_have_drifted
from controller.southbound.p4runtime.states import MEANING, state_of


def _flow(number: int, action: str = "steer") -> P4TableEntry:
    return P4TableEntry("flow", match=P4TableMatch(source_port=number), action=P4TableAction(action))


ONE, TWO, THREE = (_flow(number) for number in (1, 2, 3))


def test_missing_changed_and_foreign_entries_are_counted() -> None:
    found = state_of([_flow(1), _flow(2, "prioritise"), _flow(4), _flow(5)])
    drift = drift_between(found, state_of([ONE, TWO, THREE]), MEANING.holds_same)
    assert drift == Drift(missing=1, changed=1, foreign=2)
    assert (drift.total, str(drift)) == (4, "1 missing, 1 changed and 2 foreign")


def test_entries_that_do_the_same_are_no_drift() -> None:
    assert drift_between(state_of([_flow(1)]), state_of([ONE]), MEANING.holds_same) is None


def test_only_what_was_expected_throughout_can_have_drifted() -> None:
    before, now = state_of([ONE, TWO]), state_of([ONE, THREE])
    for found in ([ONE], [ONE, TWO], [ONE, THREE], [ONE, TWO, THREE]):
        assert not may_have_drifted(state_of(found), before, now)
    for found in ([], [TWO], [ONE, _flow(4)], [_flow(1, "prioritise")]):
        assert may_have_drifted(state_of(found), before, now)
