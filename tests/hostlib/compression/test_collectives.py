"""Who owns which elements, and what collectives send."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hostlib.compression.collectives import AllGather, AllReduce, Exchange, Operation, Ranks


@given(st.integers(1, 9), st.integers(0, 100))
def test_ranges_are_all_elements_once_and_of_nearly_one_size(size: int, elements: int) -> None:
    ranges = Ranks(None, 0, size, "gloo").ranges(elements)
    assert [index for each in ranges for index in each] == list(range(elements))
    assert len(ranges) == size
    assert max(map(len, ranges)) - min(map(len, ranges)) <= 1


@pytest.mark.parametrize(
    ("operation", "sent_bytes"),
    [
        (AllReduce(torch.zeros(100)), 2 * 3 * 400 // 4),
        (AllReduce(torch.zeros(100, dtype=torch.bfloat16)), 2 * 3 * 200 // 4),
        (AllGather(torch.zeros(60, dtype=torch.uint8)), 3 * 60),
        (Exchange([torch.zeros(n, dtype=torch.uint8) for n in (1, 2, 3, 4)], [2] * 4), 1 + 3 + 4),
    ],
)
def test_each_counts_what_a_rank_sends_to_others(operation: Operation, sent_bytes: int) -> None:
    assert operation.sent_bytes(Ranks(None, 1, 4, "gloo")) == sent_bytes
