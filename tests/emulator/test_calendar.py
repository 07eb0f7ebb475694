"""The calendar against a sorted list of all that is to happen."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.engine.events import FIRST_KEY, FIRST_PLACE, NEVER_PS, calendar_of, set_key

CHANGES = st.lists(st.tuples(st.integers(0, 69), st.integers(0, 20) | st.just(2 * NEVER_PS)), max_size=60)


@pytest.mark.parametrize("num_places", [1, 8, 9, 70])
@given(changes=CHANGES)
def test_earliest_comes_first_and_of_several_that_with_the_lowest_number(
    num_places: int, changes: list[tuple[int, int]]
) -> None:
    calendar = calendar_of(num_places)
    keys = [2 * NEVER_PS] * num_places
    for place, key in changes:
        keys[place % num_places] = key
        set_key(calendar, place % num_places, key)
        assert (calendar[FIRST_KEY], calendar[FIRST_PLACE]) == min((key, place) for place, key in enumerate(keys))


@given(changes=CHANGES)
def test_larger_calendar_is_as_if_it_had_always_been_larger(changes: list[tuple[int, int]]) -> None:
    small, large = calendar_of(7), calendar_of(70)
    for place, key in changes:
        set_key(small, place % 7, key)
        set_key(large, place % 7, key)
    assert np.array_equal(calendar_of(70, small), large)
