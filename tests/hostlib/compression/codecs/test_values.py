"""Each precision codes what it can hold, says what it could not, and never overflows."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hostlib.compression.choice import Precision
from hostlib.compression.codecs import values
from tests.hostlib.compression.codecs import plain
from tests.hostlib.compression.codecs.plain import FloatArray

BYTES = {Precision.FP32: 4, Precision.BF16: 2, Precision.FP16: 2, Precision.INT8: 1, Precision.INT4: 0.5}
SCALED = (Precision.INT8, Precision.INT4)
BITS = {Precision.FP32: 24, Precision.BF16: 8, Precision.FP16: 11}
MOST = float(np.finfo(np.float32).max)


def _round_trip(vector: torch.Tensor, precision: Precision) -> tuple[torch.Tensor, torch.Tensor]:
    """Return what is decoded, and what was not sent."""
    coded = torch.zeros(values.size_bytes(len(vector), precision), dtype=torch.uint8)
    unsent = torch.empty_like(vector)
    decoded = torch.zeros_like(vector)
    values.add(coded, precision, values.encode(vector, precision, 3, coded, unsent), decoded)
    return decoded, unsent


@pytest.mark.parametrize("precision", Precision)
@given(plain.vectors(600))
def test_what_is_coded_and_what_is_not_add_up(precision: Precision, vector: FloatArray) -> None:
    given_values = torch.from_numpy(vector)
    decoded, unsent = _round_trip(given_values, precision)
    assert bool(decoded.isfinite().all())
    error = (decoded.double() + unsent.double() - given_values.double()).abs()
    assert float(error.max() if len(error) else 0) <= values.largest_magnitude(given_values) * plain.ULP


@pytest.mark.parametrize("precision", BITS)
@pytest.mark.parametrize("unit", [1.0, 1e-12, 1e30, MOST / 4])
def test_a_float_keeps_as_many_bits_as_its_precision_has(precision: Precision, unit: float) -> None:
    vector = (torch.rand(1000, generator=torch.Generator().manual_seed(1)) * 3.9 + 0.01) * unit
    decoded, _ = _round_trip(vector, precision)
    assert float(((decoded - vector) / vector).abs().max()) <= 2.0 ** -BITS[precision]


@pytest.mark.parametrize("precision", Precision)
@pytest.mark.parametrize("count", [0, 1, 255, 256, 257, 200_000])
def test_the_size_is_known(precision: Precision, count: int) -> None:
    scales_bytes = 4 * -(-count // 256) if precision in SCALED else 0
    assert values.size_bytes(count, precision) == math.ceil(count * BYTES[precision]) + scales_bytes


@pytest.mark.parametrize("precision", Precision)
def test_a_vector_of_several_parts_is_coded_like_its_parts(precision: Precision) -> None:
    vector = torch.randn(2 * values._CACHED + 10, generator=torch.Generator().manual_seed(1))
    vector[[0, values._CACHED, 2 * values._CACHED]] = 8.0  # each part has the same scale
    decoded, unsent = _round_trip(vector, precision)
    assert torch.allclose(decoded + unsent, vector, rtol=0, atol=8 * plain.ULP)
    if precision not in SCALED:
        last, _ = _round_trip(vector[2 * values._CACHED :].clone(), precision)
        assert torch.equal(decoded[2 * values._CACHED :], last)


@pytest.mark.parametrize("precision", Precision)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_stays_so(precision: Precision, value: float) -> None:
    decoded, _ = _round_trip(torch.tensor([1.0, value]), precision)
    assert not decoded[1].isfinite()


@given(st.floats(0, 3.4e38))
def test_a_safe_scale_lets_values_fit_into_fp16(largest: float) -> None:
    scale = values.safe_scale(largest)
    assert np.frexp(scale)[0] == 0.5  # a power of two
    assert largest * scale < 65_504
    if 1e-30 < largest < 1e30:
        assert largest * scale >= 2**14  # and none of fp16's range is given away
