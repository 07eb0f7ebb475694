"""When a share of gradients is told."""

from itertools import pairwise

from hostlib.compression.telling import LEAST_CHANGE, TELLS_EVERY_S, Telling


def test_the_first_share_is_told_at_once_and_small_changes_never() -> None:
    telling = Telling()
    assert telling.update(0.0, 1.0)
    assert not any(telling.update(10.0 * step, 1.0 - 0.9 * LEAST_CHANGE) for step in range(1, 20))
    assert telling.update(200.0, 1.0 - 1.1 * LEAST_CHANGE)


def test_changes_are_told_at_most_every_few_seconds() -> None:
    telling = Telling()
    told = [time_s for time_s in range(100) if telling.update(float(time_s), 1.0 if time_s % 2 else 0.1)]
    assert len(told) > 3
    assert min(later - before for before, later in pairwise(told)) >= TELLS_EVERY_S


def test_a_slow_drift_is_told_once_it_is_large() -> None:
    telling = Telling()
    told = [step for step in range(40) if telling.update(10.0 * step, 0.97**step)]
    assert told[0] == 0
    assert 2 <= told[1] <= 5
