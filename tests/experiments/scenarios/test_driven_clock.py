"""The driven clock."""

import pytest

from experiments.scenarios.driven.clock import DrivenClock


def test_the_driven_clock_shows_the_time_it_was_set_to() -> None:
    clock = DrivenClock()
    clock.advance_to(2.5)
    clock.advance_to(2.5)
    assert clock.now_s() == 2.5


@pytest.mark.parametrize("time_s", [1.0, float("nan")])
def test_the_driven_clock_never_goes_back(time_s: float) -> None:
    clock = DrivenClock()
    clock.advance_to(2.0)
    with pytest.raises(ValueError, match="time_s"):
        clock.advance_to(time_s)
    assert clock.now_s() == 2.0
