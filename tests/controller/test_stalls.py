"""Who waits while links are down, and until when."""

import pytest

from controller.run.stalls import Stalls, next_try_ps
from controller.run.ways import Way
from simulator.fluid import NEVER_PS, PS_PER_S

WAYS = {0: Way((1, 2), 0, 0, back=(3, 4)), 1: Way((5, 2), 0, 0, back=(6, 4))}


@pytest.mark.parametrize(
    ("now_s", "try_s"),
    [(1.0, 1.2), (1.2, 1.2), (1.3, 1.6), (2.0, 2.4), (5.0, 7.2), (7.3, 11.2), (11.3, 15.2)],
)
def test_senders_try_again_after_twice_as_long_each_time_up_to_four_seconds(now_s: float, try_s: float) -> None:
    """Since second 1: after 0.2, 0.4, 0.8, 1.6, 3.2, 4 and 4 s."""
    assert next_try_ps(PS_PER_S, round(now_s * PS_PER_S)) == round(try_s * PS_PER_S)


@pytest.mark.parametrize(("link", "who"), [(1, [0]), (2, [0, 1]), (3, [0]), (6, [1]), (7, [])])
def test_a_flow_waits_for_its_path_and_for_its_acknowledgements(link: int, who: list[int]) -> None:
    stalls = Stalls()
    stalls.down = frozenset({link})
    assert stalls.look(WAYS, PS_PER_S) == who
    assert stalls.look(WAYS, 2 * PS_PER_S) == [], "they wait already"
    assert (sorted(stalls.waiting), stalls.next_try_ps) == (who, NEVER_PS)


def test_who_has_a_way_again_tries_when_its_sender_does_whatever_its_number_is_by_then() -> None:
    stalls = Stalls()
    stalls.down = frozenset({2})
    stalls.look(WAYS, PS_PER_S)
    stalls.renumber({10: 0, 11: 1, 12: 5})
    stalls.down = frozenset({5})
    stalls.look({10: WAYS[0], 11: WAYS[1]}, round(1.3 * PS_PER_S))
    assert stalls.next_try_ps == round(1.6 * PS_PER_S)
    assert stalls.take_trying(round(1.6 * PS_PER_S)) == [10]
    assert (list(stalls.waiting), stalls.next_try_ps) == ([11], NEVER_PS)


def test_a_way_that_is_lost_again_before_the_try_is_waited_for_as_before() -> None:
    stalls = Stalls()
    for now_s, down in ((1.0, {2}), (1.3, set()), (1.5, {2}), (1.7, set())):
        stalls.down = frozenset(down)
        stalls.look(WAYS, round(now_s * PS_PER_S))
    assert stalls.next_try_ps == round(2.4 * PS_PER_S)
