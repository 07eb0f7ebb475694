"""What intervals cover."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from hostlib.torch.intervals import covered, union


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)).map(sorted).map(tuple), max_size=8))
def test_the_union_of_intervals_covers_what_they_cover(intervals: list[tuple[int, int]]) -> None:
    joined = union(intervals)
    units = {unit for begin, end in intervals for unit in range(int(begin), int(end))}
    assert {unit for begin, end in joined for unit in range(int(begin), int(end))} == units
    assert covered(intervals) == len(units)
    for (_, end), (begin, _) in pairwise(joined):
        assert end < begin
