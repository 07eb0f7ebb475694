"""Dense payloads have every element, and what rounding takes is known."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hostlib.compression.choice import Precision
from hostlib.compression.codecs import dense, payload, sparse
from hostlib.compression.codecs.errors import CorruptPayloadError
from tests.hostlib.compression.codecs import plain
from tests.hostlib.compression.codecs.plain import FloatArray

each_precision = pytest.mark.parametrize("precision", Precision)


@each_precision
@given(plain.vectors(600), st.integers(0, 2**64 - 1))
def test_decoded_and_unsent_add_up(precision: Precision, vector: FloatArray, seed: int) -> None:
    values = torch.from_numpy(vector.copy())
    unsent = torch.empty_like(values)
    sent = dense.encode(values, precision, seed=seed, unsent=unsent)
    assert values.tolist() == vector.tolist()
    assert len(sent) == dense.wire_bytes(len(vector), precision)
    decoded = torch.zeros(len(vector))
    dense.decode_add(sent, decoded)
    error = np.abs(decoded.double().numpy() + unsent.double().numpy() - vector)
    assert error.max(initial=0) <= np.abs(vector.astype(np.float64)).max(initial=0) * plain.ULP
    again = dense.encode(values, precision, seed=seed, unsent=values)
    assert torch.equal(again, sent)
    assert values.tolist() == unsent.tolist()


@each_precision
@given(st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=8), st.integers(1, 600))
def test_the_decoded_sum_of_ranks_is_that_of_a_reference(precision: Precision, seeds: list[int], elements: int) -> None:
    total, expected, allowed = torch.zeros(elements), np.zeros(elements), 0.0
    for rank, seed in enumerate(seeds):
        vector = np.random.default_rng(seed).standard_normal(elements).astype(np.float32)
        dense.decode_add(dense.encode(torch.from_numpy(vector), precision, seed=rank), total)
        expected += vector
        allowed += float(np.abs(vector).max()) * plain.ROUNDING[precision]
    assert np.abs(total.double().numpy() - expected).max() <= allowed + len(seeds) ** 2 * 8 * plain.ULP


@each_precision
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_is_sent_and_not_kept(precision: Precision, value: float) -> None:
    vector = torch.tensor([1.0, value, 2.0])
    unsent = torch.ones(3)
    sent = dense.encode(vector, precision, unsent=unsent)
    assert not payload.is_finite(sent)
    assert not unsent.any()
    into = torch.zeros(3)
    dense.decode_add(sent, into)
    assert not into[1].isfinite()


@each_precision
def test_an_unaligned_payload_is_read(precision: Precision) -> None:
    vector = torch.linspace(-1, 1, 1000)
    sent = dense.encode(vector, precision)
    shifted = torch.cat((torch.zeros(1, dtype=torch.uint8), sent))[1:]
    into, expected = torch.zeros(1000), torch.zeros(1000)
    dense.decode_add(shifted, into)
    dense.decode_add(sent, expected)
    assert torch.equal(into, expected)


def test_what_is_no_dense_payload_of_the_vector_is_refused_and_nothing_is_added() -> None:
    sent = dense.encode(torch.ones(100), Precision.FP16)
    into = torch.zeros(100)
    with pytest.raises(CorruptPayloadError, match="expected a dense one of 99"):
        dense.decode_add(sent, torch.zeros(99))
    with pytest.raises(CorruptPayloadError, match="elias_fano, of 100 elements"):
        dense.decode_add(sparse.encode(torch.ones(100), 100, Precision.FP16), into)
    with pytest.raises(CorruptPayloadError, match="bytes, expected at least 216"):
        dense.decode_add(sent[:200], into)
    assert not into.any()
    with pytest.raises(ValueError, match="unsent: expected 100 elements"):
        dense.encode(torch.ones(100), Precision.FP16, unsent=torch.ones(99))
    with pytest.raises(ValueError, match="vector: expected a contiguous vector of float32"):
        dense.encode(torch.ones(100, dtype=torch.float64), Precision.FP16)
