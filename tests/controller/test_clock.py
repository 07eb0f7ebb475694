"""The controller's clock takes the date once, and then goes on however the date is changed."""

import time

import pytest

from controller.clock import WallClock


@pytest.mark.parametrize("step_s", [3.2e7, -3.2e7])
def test_a_step_of_the_date_is_no_step_of_the_clock(monkeypatch: pytest.MonkeyPatch, step_s: float) -> None:
    monotonic_s = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: monotonic_s)
    clock = WallClock()
    before_s, date_s = clock.now_s(), time.time()
    monkeypatch.setattr(time, "time", lambda: date_s + step_s)
    monkeypatch.setattr(time, "monotonic", lambda: monotonic_s + 2.0)
    assert clock.now_s() == pytest.approx(before_s + 2.0)
