"""Indices come back as they were, in few bits; nothing else is taken for indices."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from hostlib.compression.codecs import indices
from hostlib.compression.codecs.errors import CorruptPayloadError
from tests.hostlib.compression.codecs import plain


@st.composite
def chosen(draw: st.DrawFn) -> tuple[int, list[int]]:
    """Draw a number of elements, and some ascending indices below it."""
    elements = draw(st.one_of(st.integers(0, 200), st.integers(0, 2**31 - 1)))
    found = draw(st.sets(st.integers(0, elements - 1), max_size=200)) if elements else set()
    return elements, sorted(found)


def _encoded(elements: int, found: list[int]) -> NDArray[np.uint64]:
    words = np.full(indices.size_words(elements, len(found)), 2**64 - 1, np.uint64)
    indices.encode(np.array(found, np.int32), elements, words)
    return words


@given(chosen())
def test_indices_come_back(case: tuple[int, list[int]]) -> None:
    elements, found = case
    assert indices.decode(_encoded(elements, found), len(found), elements).tolist() == found


@pytest.mark.parametrize("elements", [1, 64, 65, 1000])
def test_all_indices_come_back(elements: int) -> None:
    found = list(range(elements))
    assert indices.decode(_encoded(elements, found), elements, elements).tolist() == found


def test_half_of_the_elements_are_a_bitmap() -> None:
    assert _encoded(5, [1, 2, 4])[0] == 0b10110


def test_few_indices_have_lower_bits() -> None:
    # 3 and 70 less 0 and 1: lower five bits 3 and 5, upper bits 0 and 2, which set the bits 0 + 0 and 2 + 1.
    assert _encoded(100, [3, 70])[:2].tolist() == [0b1001, 5 << 5 | 3]


@pytest.mark.parametrize("ratio", [1e-5, 0.001, 0.01, 0.1, 0.3, 0.5])
def test_the_size_is_near_the_entropy(ratio: float) -> None:
    elements = 10_000_000
    count = int(elements * ratio)
    excess_bytes = 8 * indices.size_words(elements, count) - plain.entropy_bytes(elements, count)
    assert excess_bytes <= 0.6 * count / 8 + 16


@given(st.integers(0, 5000), st.data())
def test_fewer_indices_need_no_more_words(elements: int, data: st.DataObject) -> None:
    count = data.draw(st.integers(0, elements))
    fewer = data.draw(st.integers(0, count))
    words = np.zeros(indices.size_words(elements, count), np.uint64)
    indices.encode(np.arange(fewer, dtype=np.int32), elements, words)
    assert indices.decode(words, fewer, elements).tolist() == list(range(fewer))


@given(arrays.arrays(np.uint64, st.integers(0, 12)), st.integers(0, 100), st.integers(0, 2000))
def test_any_words_are_indices_or_refused(words: NDArray[np.uint64], count: int, elements: int) -> None:
    try:
        found = indices.decode(words, count, elements)
    except CorruptPayloadError:
        return
    assert len(found) == count
    assert (np.diff(found) > 0).all()
    assert ((found >= 0) & (found < elements)).all()


def test_damaged_words_are_refused() -> None:
    words = _encoded(1000, [5, 500, 900])
    for changed, count, elements in ((words, 2, 1000), (words, 4, 1000), (words[:1], 3, 1000), (words, 5, 4)):
        with pytest.raises(CorruptPayloadError):
            indices.decode(changed, count, elements)
    words[0] |= np.uint64(1) << np.uint64(63)
    with pytest.raises(CorruptPayloadError, match="it has no 3 ascending indices below 1000"):
        indices.decode(words, 3, 1000)


@pytest.mark.parametrize("found", [[3, 3], [4, 3], [3, 10], [-1, 3]])
def test_what_are_no_ascending_indices_is_not_encoded(found: list[int]) -> None:
    with pytest.raises(ValueError, match="ascending numbers from 0 to below 10"):
        indices.encode(np.array(found, np.int32), 10, np.zeros(9, np.uint64))


def test_too_few_words_are_not_written_to() -> None:
    words = np.zeros(1, np.uint64)
    with pytest.raises(ValueError, match="words: expected at least"):
        indices.encode(np.arange(100, dtype=np.int32), 1000, words)
    assert not words.any()
