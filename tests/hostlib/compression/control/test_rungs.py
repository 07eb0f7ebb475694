"""The order of choices, and the error model behind it."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostlib.compression.choice import Choice, Collective, Precision
from hostlib.compression.control.cost import Bucket, MeasuredCosts
from hostlib.compression.control.rungs import LOW_RANK_WORTH, lost_energy, rungs


def test_the_error_of_an_all_gather() -> None:
    """The largest 1 % hold 0.01^(1/4) of the energy, of which rounding to int8 takes a thousandth."""
    assert lost_energy(Choice(0.01, Precision.FP32, Collective.ALL_GATHER), 8) == pytest.approx(1 - 0.01**0.25)
    assert lost_energy(Choice(0.01, Precision.INT8, Collective.ALL_GATHER), 8) == pytest.approx(1 - 0.999 * 0.01**0.25)
    assert lost_energy(Choice(1, Precision.FP32, Collective.ALL_REDUCE), 8) == 0


@given(st.floats(0.001, 0.999), st.integers(2, 1000))
def test_selecting_again_delivers_less_and_never_less_than_without_overlap(ratio: float, ranks: int) -> None:
    again = lost_energy(Choice(ratio, Precision.FP16, Collective.REDUCE_SCATTER), ranks)
    assert lost_energy(Choice(ratio, Precision.FP16, Collective.ALL_GATHER), ranks) <= again
    assert again <= lost_energy(Choice(ratio / ranks, Precision.FP16, Collective.ALL_GATHER), ranks)


@pytest.mark.parametrize("precision", [Precision.FP32, Precision.BF16, Precision.FP16])
@pytest.mark.parametrize("ranks", [1, 2, 8, 1000])
def test_dense_comes_first_and_errors_rise(precision: Precision, ranks: int) -> None:
    found = rungs([Bucket(1_000_000, ranks, precision), Bucket(0, ranks, precision)], MeasuredCosts(), 0.001)
    assert found[0].choice == Choice(1, precision, Collective.ALL_REDUCE)
    errors = [rung.error for rung in found[1:]]
    assert errors == sorted(errors)
    assert min(rung.choice.ratio for rung in found) == 0.001
    assert all(rung.choice.precision != Precision.FP32 for rung in found[1:])
    assert len({rung.choice for rung in found}) == len(found)


def test_where_nothing_may_be_left_out_there_is_no_int4() -> None:
    found = [rung.choice for rung in rungs([Bucket(1_000_000, 8)], MeasuredCosts(), 1.0)]
    assert [(choice.ratio, choice.precision) for choice in found] == [(1, "fp32"), (1, "fp16"), (1, "int8")]


def test_low_rank_stands_where_half_its_bytes_of_sparse_int4_do() -> None:
    buckets = [Bucket(4_001_000, 8, shapes=((2000, 2000), (1000,))), Bucket(600, 8, shapes=((600,),))]
    found = rungs(buckets, MeasuredCosts(), 0.001, (1, 2, 4))
    assert [rung.choice.rank for rung in found if rung.choice.rank] == [4, 2, 1]
    int4 = [
        rung
        for rung in found
        if rung.choice.rank
        or ((rung.choice.precision, rung.choice.collective) == ("int4", "reduce-scatter") and rung.choice.ratio < 1)
    ]
    sizes_bytes = [rung.link_bytes * (LOW_RANK_WORTH if rung.choice.rank else 1) for rung in int4]
    assert sizes_bytes == sorted(sizes_bytes, reverse=True)
    assert [rung for rung in found if not rung.choice.rank] == list(rungs(buckets, MeasuredCosts(), 0.001))


@given(
    st.lists(st.tuples(st.integers(1, 300), st.integers(1, 300)), min_size=1, max_size=4),
    st.integers(1, 1000),
    st.integers(1, 9),
)
def test_low_rank_of_any_shapes_has_an_error(shapes: list[tuple[int, int]], ranks: int, rank: int) -> None:
    buckets = [Bucket(rows * columns, ranks, shapes=((rows, columns),)) for rows, columns in shapes]
    (found,) = (rung for rung in rungs(buckets, MeasuredCosts(), 1.0, (rank,)) if rung.choice.rank)
    assert 0 < found.error < 1


def test_neighbours_differ_by_a_sixth_in_bytes() -> None:
    """So what is left over of a budget is at most that share of it."""
    found = rungs([Bucket(10_000_000, 8)], MeasuredCosts(), 0.001)
    sparse = [
        rung.link_bytes
        for rung in found
        if rung.choice.ratio < 1 and (rung.choice.precision, rung.choice.collective) == ("int8", "reduce-scatter")
    ]
    assert all(after / before > 0.83 for before, after in pairwise(sparse))
