"""Windowed extremes against all samples of the window."""

from hypothesis import given
from hypothesis import strategies as st

from hostlib.compression.control.filters import WindowedMaximum, WindowedMinimum


@given(st.lists(st.tuples(st.sampled_from([0.0, 0.5, 1.0, 4.0]), st.integers(0, 9)), max_size=50))
def test_the_extremes_are_those_of_the_window(samples: list[tuple[float, int]]) -> None:
    largest, least, at = WindowedMaximum(3), WindowedMinimum(3), 0.0
    assert largest.value is None
    seen: list[tuple[float, int]] = []
    for later, value in samples:
        at += later
        seen.append((at, value))
        largest, least = largest.update(at, value), least.update(at, value)
        window = [value for when, value in seen if when > at - 3]
        assert (largest.value, least.value) == (max(window), min(window))
