"""After which pauses a policy that fails is asked again."""

from controller.planning.retry import Retry
from experiments.scenarios.driven.clock import DrivenClock


def test_pauses_grow_up_to_five_minutes_until_a_decision_succeeds() -> None:
    clock = DrivenClock()
    retry = Retry(clock)
    assert (retry.due_s, retry.is_due) == (None, False)
    pauses_s = []
    for _ in range(7):
        retry.fail()
        assert retry.due_s is not None
        assert not retry.is_due
        pauses_s.append(retry.due_s - clock.now_s())
        clock.advance_to(retry.due_s)
        assert retry.is_due
    assert pauses_s == [10, 20, 40, 80, 160, 300, 300]
    retry.succeed()
    assert (retry.due_s, retry.is_due) == (None, False)
    retry.fail()
    assert retry.due_s == clock.now_s() + 10
