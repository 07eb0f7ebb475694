"""The code that the benchmark compares with says what indices it was given."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import golomb_rice


@given(st.sets(st.integers(0, 5000), min_size=1), st.integers(0, 12))
def test_indices_come_back(found: set[int], bits: int) -> None:
    indices = np.array(sorted(found), np.int32)
    words = np.zeros(golomb_rice.words_at_worst(5001, len(indices), bits), np.uint64)
    used_bits = golomb_rice.encode(indices, bits, words)
    gaps = np.diff(indices, prepend=-1) - 1
    assert used_bits == sum(int(gap >> bits) + 1 + bits for gap in gaps)
    decoded = np.empty_like(indices)
    assert golomb_rice.decode(words, bits, 5001, decoded)
    assert decoded.tolist() == indices.tolist()


@pytest.mark.parametrize(("elements", "count", "bits"), [(1000, 500, 0), (1000, 100, 3), (11_689_512, 116_895, 6)])
def test_the_best_bits_are_about_those_of_the_mean_gap(elements: int, count: int, bits: int) -> None:
    assert golomb_rice.best_bits(elements, count) == bits
