"""What choices cost, by hand and by the exact formulas."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostlib.compression.choice import Choice, Collective, Precision, low_rank
from hostlib.compression.control.cost import (
    HEADER_BYTES,
    VALUE_BITS,
    Bucket,
    Cost,
    Linear,
    MeasuredCosts,
    binary_entropy,
    log2,
    payload_bytes,
    share_sent,
    transmission_cost,
    values_sent,
)

COSTS = MeasuredCosts(
    select=Linear(1e-3, 1e-9, 1e-8),
    scatter=Linear(2e-3, 2e-9, 2e-8),
    convert=Linear(3e-3, 3e-9),
    hop_s=1e-5,
    quantise=Linear(4e-3, 4e-9),
    factor=Linear(5e-3, 5e-9, 6e-9),
)
DENSE = Choice(1, Precision.FP32, Collective.ALL_REDUCE)


@given(st.floats(1e-300, 1e300))
def test_the_logarithm_is_the_logarithm(number: float) -> None:
    assert log2(number) == pytest.approx(math.log2(number), rel=1e-14, abs=1e-15)


def test_the_binary_entropy_of_known_shares() -> None:
    assert [binary_entropy(share) for share in (0.0, 0.5, 1.0)] == [0.0, 1.0, 0.0]
    assert binary_entropy(0.25) == pytest.approx(2 - 0.75 * math.log2(3))


@given(
    st.integers(10_000, 10_000_000),
    st.floats(0.001, 0.9),
    st.sampled_from([Precision.FP32, Precision.FP16, Precision.INT8]),
)
def test_a_sparse_payload_is_little_above_the_information_in_it(
    elements: int, ratio: float, precision: Precision
) -> None:
    choice = Choice(ratio, precision, Collective.ALL_GATHER)
    values = values_sent(choice, elements)
    indices_bits = (
        math.lgamma(elements + 1) - math.lgamma(values + 1) - math.lgamma(elements - values + 1)
    ) / math.log(2)
    least_bytes = (indices_bits + values * VALUE_BITS[precision]) / 8
    assert least_bytes <= payload_bytes(choice, elements) <= 1.05 * least_bytes + HEADER_BYTES


def test_a_dense_all_reduce_is_a_ring() -> None:
    """46.2 MB over 8 workers move 80.85 MB through each link: netsenseml.md's check of the paper's Table 1."""
    assert transmission_cost(DENSE, Bucket(11_550_000, 8), COSTS) == Cost(80_850_000, 80_850_000, 14, 0, 0)


def test_half_precision_halves_the_bytes_and_converts_twice() -> None:
    price = transmission_cost(Choice(1, Precision.FP16, Collective.ALL_REDUCE), Bucket(1_000_000, 4), COSTS)
    assert (price.link_bytes, price.hops) == (3_000_000, 6)
    assert price.encode_s == price.decode_s == pytest.approx(6e-3)


def test_eight_bits_are_written_twice_and_read_by_all() -> None:
    price = transmission_cost(Choice(1, Precision.INT8, Collective.REDUCE_SCATTER), Bucket(1_000_000, 4), COSTS)
    assert (price.link_bytes, price.hops) == (1_500_000, 6)
    assert (price.encode_s, price.decode_s) == (pytest.approx(8e-3), pytest.approx(16e-3))


def test_gradients_of_half_precision_need_no_conversion() -> None:
    bucket = Bucket(1_000_000, 4, Precision.BF16)
    assert transmission_cost(bucket.dense_choice, bucket, COSTS) == Cost(3_000_000, 3_000_000, 6, 0, 0)


def test_an_all_gather_brings_every_other_ranks_payload() -> None:
    choice = Choice(0.01, Precision.FP16, Collective.ALL_GATHER)
    price = transmission_cost(choice, Bucket(1_000_000, 8), COSTS)
    assert price.in_bytes == price.out_bytes == 7 * payload_bytes(choice, 1_000_000)
    assert price.hops == 7
    assert price.encode_s == pytest.approx(1e-3 + 1e-3 + 1e-4)
    assert price.decode_s == pytest.approx(2e-3 + 2e-3 + 80_000 * 2e-8)


def test_a_sparse_reduce_scatter_scales_with_the_payload_and_not_with_the_ranks() -> None:
    choice = Choice(0.01, Precision.INT8, Collective.REDUCE_SCATTER)
    price = transmission_cost(choice, Bucket(1_000_000, 1000), COSTS)
    assert price.link_bytes == pytest.approx(2 * 0.999 * payload_bytes(choice, 1_000_000))
    assert price.hops == 1998
    assert price.decode_s == pytest.approx(
        (1e-3 + 1000 * 1e-9 + 10 * 1e-8) + (2e-3 + 1000 * 2e-9 + 10_000 * 2e-8) + (2e-3 + 1e6 * 2e-9 + 10_000 * 2e-8)
    )


def test_low_rank_is_three_rings_of_what_its_shapes_give() -> None:
    """A matrix of 1000 x 2000 at rank 4 is 4,000 and 8,000 values; the vector of 500 travels in its own type."""
    bucket = Bucket(2_000_500, 4, Precision.BF16, shapes=((1000, 2000), (500,)))
    price = transmission_cost(low_rank(4), bucket, COSTS)
    assert price.in_bytes == price.out_bytes == 2 * 3 / 4 * (2 * 500 + 4 * 4_000 + 4 * 8_000)
    assert price.hops == 3 * 6
    third_s = 5e-3 + 2e6 * (5e-9 + 4 * 6e-9)
    assert (price.encode_s, price.decode_s) == (pytest.approx(third_s), pytest.approx(2 * third_s))
    assert share_sent(low_rank(4), bucket) == 12_500 / 2_000_500


def test_low_rank_of_vectors_is_one_ring() -> None:
    bucket = Bucket(500, 4, shapes=((500,),))
    assert transmission_cost(low_rank(4), bucket, COSTS) == transmission_cost(DENSE, bucket, COSTS)
    assert share_sent(low_rank(4), bucket) == 1
    assert share_sent(Choice(0.1, Precision.FP16, Collective.ALL_GATHER), bucket) == 0.1


@pytest.mark.parametrize("bucket", [Bucket(0, 8), Bucket(1_000_000, 1)])
@pytest.mark.parametrize("choice", [DENSE, Choice(0.01, Precision.INT8, Collective.ALL_GATHER), low_rank(2)])
def test_an_empty_bucket_and_a_world_of_one_cost_nothing(bucket: Bucket, choice: Choice) -> None:
    assert transmission_cost(choice, bucket, COSTS) == Cost(0, 0, 0, 0, 0)
