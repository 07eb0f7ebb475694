"""Flows whose packets are lost wait, and retransmit after a timeout."""

import pytest

from experiments.scenarios.routes import Route
from experiments.scenarios.transfers import RetransmissionTimers, next_try_ps
from policies.model.picoseconds import NEVER_PS, PS_PER_S

THERE, LOST = Route((1, 2), 0, 0), Route((1, 2), 0, 0, is_lost=True)


TIMEOUT_PS = 67_108_864_000


@pytest.mark.parametrize(
    ("after_ps", "tries"), [(0, 0), (1, 1), (TIMEOUT_PS, 1), (TIMEOUT_PS + 1, 2), (9 * PS_PER_S, 135)]
)
def test_senders_retransmit_after_each_timeout(after_ps: int, tries: int) -> None:
    assert next_try_ps(PS_PER_S, PS_PER_S + after_ps) == PS_PER_S + tries * TIMEOUT_PS


def test_a_lost_flow_starts_waiting_once() -> None:
    timers = RetransmissionTimers()
    assert timers.update({0: LOST, 1: THERE}, PS_PER_S) == [0]
    assert timers.update({0: LOST, 1: LOST}, 2 * PS_PER_S) == [1], "the first waits already"
    assert (sorted(timers.waiting), timers.next_try_ps) == ([0, 1], NEVER_PS)


def test_a_restored_flow_retransmits_at_its_timeout_also_when_renumbered() -> None:
    timers = RetransmissionTimers()
    timers.update({0: LOST, 1: LOST}, PS_PER_S)
    timers.renumber({10: 0, 11: 1, 12: 5})
    timers.update({10: THERE, 11: LOST, 12: THERE}, round(1.3 * PS_PER_S))
    assert timers.next_try_ps == PS_PER_S + 5 * TIMEOUT_PS
    assert timers.pop_due(PS_PER_S + 5 * TIMEOUT_PS) == [10]
    assert (list(timers.waiting), timers.next_try_ps) == ([11], NEVER_PS)


def test_a_path_that_fails_again_before_the_timeout_keeps_the_timer() -> None:
    timers = RetransmissionTimers()
    for now_s, way in ((1.0, LOST), (1.3, THERE), (1.32, LOST), (1.7, THERE)):
        timers.update({0: way}, round(now_s * PS_PER_S))
    assert timers.next_try_ps == PS_PER_S + 11 * TIMEOUT_PS
