"""Numbers in any order, compared with a reference that remembers all of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostlib.wire.sequence_window import MAX_JUMP, SIZE, Arrival, SequenceWindow


def test_what_is_missing_is_what_has_not_come() -> None:
    window = SequenceWindow()
    arrivals = [window.note(number) for number in (5, 6, 9, 9, 7, 4)]
    assert arrivals == [Arrival.NEW, Arrival.NEW, Arrival.NEW, Arrival.DUPLICATE, Arrival.LATE, Arrival.LATE]
    assert (window.received, window.missing, window.late, window.duplicates) == (5, 1, 2, 1)
    assert window.recent_loss == pytest.approx(1 / 6)


def test_far_behind_and_far_ahead_are_not_believed() -> None:
    window = SequenceWindow()
    for number in (0, MAX_JUMP, SIZE):
        assert window.note(number) is Arrival.NEW
    assert window.note(0) is Arrival.TOO_OLD
    assert window.note(SIZE + MAX_JUMP + 1) is Arrival.JUMP
    assert window.note(SIZE + MAX_JUMP) is Arrival.NEW
    assert window.recent_loss == 1 - 2 / SIZE


@given(st.lists(st.integers(0, 3 * SIZE), min_size=1))
def test_every_number_counts_once(numbers: list[int]) -> None:
    window, seen, newest, first = SequenceWindow(), set[int](), numbers[0], numbers[0]
    for number in numbers:
        arrival = window.note(number)
        expected = number not in seen and -MAX_JUMP <= newest - number < SIZE
        assert arrival.is_new == expected
        if expected:
            seen.add(number)
            newest, first = max(newest, number), min(first, number)
    assert window.received == len(seen)
    assert window.missing == newest - first + 1 - len(seen)
    recent = range(max(first, newest - SIZE + 1), newest + 1)
    assert abs(window.recent_loss - sum(number not in seen for number in recent) / len(recent)) < 1e-12
