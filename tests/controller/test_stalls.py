"""Who waits while links are down, and until when."""

import pytest

from controller.run.stalls import Stalls, next_try_ps
from controller.run.ways import Way
from simulator.fluid import NEVER_PS, PS_PER_S

THERE, LOST = Way((1, 2), 0, 0), Way((1, 2), 0, 0, is_lost=True)


@pytest.mark.parametrize(
    ("now_s", "try_s"),
    [(1.0, 1.0), (1.001, 1.2), (1.2, 1.2), (1.3, 1.6), (2.0, 2.4), (5.0, 7.2), (7.3, 11.2), (11.3, 15.2)],
)
def test_senders_try_again_after_twice_as_long_each_time_up_to_four_seconds(now_s: float, try_s: float) -> None:
    """Since second 1: after 0.2, 0.4, 0.8, 1.6, 3.2, 4 and 4 s."""
    assert next_try_ps(PS_PER_S, round(now_s * PS_PER_S)) == round(try_s * PS_PER_S)


def test_who_is_lost_waits_once() -> None:
    stalls = Stalls()
    assert stalls.look({0: LOST, 1: THERE}, PS_PER_S) == [0]
    assert stalls.look({0: LOST, 1: LOST}, 2 * PS_PER_S) == [1], "the first waits already"
    assert (sorted(stalls.waiting), stalls.next_try_ps) == ([0, 1], NEVER_PS)


def test_who_has_a_way_again_tries_when_its_sender_does_whatever_its_number_is_by_then() -> None:
    stalls = Stalls()
    stalls.look({0: LOST, 1: LOST}, PS_PER_S)
    stalls.renumber({10: 0, 11: 1, 12: 5})
    stalls.look({10: THERE, 11: LOST, 12: THERE}, round(1.3 * PS_PER_S))
    assert stalls.next_try_ps == round(1.6 * PS_PER_S)
    assert stalls.take_trying(round(1.6 * PS_PER_S)) == [10]
    assert (list(stalls.waiting), stalls.next_try_ps) == ([11], NEVER_PS)


def test_a_way_that_is_lost_again_before_the_try_is_waited_for_as_before() -> None:
    stalls = Stalls()
    for now_s, way in ((1.0, LOST), (1.3, THERE), (1.5, LOST), (1.7, THERE)):
        stalls.look({0: way}, round(now_s * PS_PER_S))
    assert stalls.next_try_ps == round(2.4 * PS_PER_S)
