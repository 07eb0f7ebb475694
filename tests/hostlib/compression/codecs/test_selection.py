"""Selection chooses exactly what sorting would, whatever the sample says."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostlib.compression.codecs import selection
from hostlib.compression.codecs.errors import NonFiniteError
from tests.hostlib.compression.codecs import plain
from tests.hostlib.compression.codecs.plain import FloatArray

SIZE = 70_000
LARGE = plain.large_vectors(SIZE)


@given(plain.pairs())
def test_it_chooses_what_sorting_would(pair: tuple[FloatArray, int]) -> None:
    vector, count = pair
    before = vector.copy()
    assert selection.largest(vector, count).tolist() == plain.largest(vector, count).tolist()
    assert (vector == before).all()


@pytest.mark.parametrize("count", [0, 1, 7, SIZE // 100, SIZE // 3, SIZE - 1, SIZE])
@pytest.mark.parametrize("name", LARGE)
def test_it_chooses_what_sorting_would_where_it_samples(name: str, count: int) -> None:
    np.testing.assert_array_equal(selection.largest(LARGE[name], count), plain.largest(LARGE[name], count))


@pytest.mark.parametrize(("sampled", "others"), [(2, 1), (1, 2)])
def test_a_sample_that_misleads_changes_nothing(sampled: float, others: float) -> None:
    # With 2, the threshold is one that too few reach, with 1 one that all do.
    vector = np.full(SIZE, others, np.float32)
    vector[[((number * selection._GOLDEN) % 2**32 * SIZE) >> 32 for number in range(selection._SAMPLES)]] = sampled
    vector += np.linspace(0, 0.5, SIZE, dtype=np.float32)
    count = SIZE // 4
    np.testing.assert_array_equal(selection.largest(vector, count), plain.largest(vector, count))


@given(plain.pairs(60), st.one_of(st.none(), st.floats(0, 0.984375, width=32)), st.data())
def test_it_accumulates_and_takes_as_the_reference_does(
    pair: tuple[FloatArray, int], momentum: float | None, data: st.DataObject
) -> None:
    gradient, count = pair
    same = st.lists(plain.FINITE, min_size=len(gradient), max_size=len(gradient))
    residual = np.array(data.draw(same), np.float32)
    velocity = None if momentum is None else np.array(data.draw(same), np.float32)

    moving = None if velocity is None else velocity.copy()
    expected = plain.accumulated(residual, gradient, moving, momentum or 0)
    chosen = plain.largest(expected, count)
    values = expected[chosen]
    expected[chosen] = 0

    indices = selection.accumulate(residual, gradient, count, velocity, momentum or 0)
    assert indices.tolist() == chosen.tolist()
    assert selection.take(residual, indices, velocity).tolist() == values.tolist()
    assert residual.tolist() == expected.tolist()
    if velocity is not None and moving is not None:
        moving[chosen] = 0
        assert velocity.tolist() == moving.tolist()


@pytest.mark.parametrize("momentum", [None, 0.9])
def test_a_large_vector_accumulates_over_steps(momentum: float | None) -> None:
    count = SIZE // 50
    residual = np.zeros(SIZE, np.float32)
    velocity = None if momentum is None else np.zeros(SIZE, np.float32)
    expected, moving = residual.copy(), None if velocity is None else velocity.copy()
    for name in ("normal", "heavy tails", "few values", "mostly zero"):
        expected = plain.accumulated(expected, LARGE[name], moving, momentum or 0)
        chosen = plain.largest(expected, count)
        expected[chosen] = 0
        if moving is not None:
            moving[chosen] = 0
        selection.take(residual, selection.accumulate(residual, LARGE[name], count, velocity, momentum or 0), velocity)
        np.testing.assert_array_equal(residual, expected)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_refused_and_changes_nothing(value: float) -> None:
    gradient, residual, velocity = (np.ones(SIZE, np.float32) for _ in range(3))
    gradient[[SIZE // 2, SIZE - 1]] = value
    with pytest.raises(NonFiniteError, match="gradient"):
        selection.accumulate(residual, gradient, 10, velocity, 0.9)
    with pytest.raises(NonFiniteError):
        selection.largest(gradient, 10)
    assert (residual == 1).all()
    assert (velocity == 1).all()


def test_sums_that_overflow_stay_finite() -> None:
    most = np.finfo(np.float32).max
    residual, velocity = np.full(3, most), np.full(3, -most)
    selection.accumulate(residual, np.array([most, -most, 0], np.float32), 0, velocity, 0.5)
    assert velocity.tolist() == [most / 2, -most, -most / 2]
    assert residual.tolist() == [most, 0, most / 2]


def test_lengths_that_differ_and_counts_out_of_range_are_refused() -> None:
    three, two = np.ones(3, np.float32), np.ones(2, np.float32)
    with pytest.raises(ValueError, match="expected 3 elements as in the residual, got 2"):
        selection.accumulate(three, two, 1)
    with pytest.raises(ValueError, match="got 3 and 2"):
        selection.accumulate(three, three, 1, two)
    for count in (-1, 4):
        with pytest.raises(ValueError, match="count: must lie between 0 and 3"):
            selection.largest(three, count)
    assert (three == 1).all()
