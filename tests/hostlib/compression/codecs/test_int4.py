"""4 bits are 8 bits with fewer steps, two of them in a byte."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hostlib.compression.codecs import int4, int8
from tests.hostlib.compression.codecs import plain
from tests.hostlib.compression.codecs.plain import FloatArray


def _coded(values: torch.Tensor, seed: int = 1, unsent: torch.Tensor | None = None) -> torch.Tensor:
    coded = torch.zeros(int4.size_bytes(len(values)), dtype=torch.uint8)
    int4.encode(values, seed, coded, unsent)
    return coded


def _decoded(coded: torch.Tensor, count: int) -> torch.Tensor:
    into = torch.zeros(count)
    int4.add(coded, into)
    return into


def test_a_byte_has_two_steps_the_first_in_its_lower_half() -> None:
    values = torch.tensor([7.0, -7, 0, 3, -1])
    coded = _coded(values)
    assert coded[:4].view(torch.float32).tolist() == [1]
    assert coded[4:].tolist() == [0x97, 0x30, 0x0F]
    assert torch.equal(_decoded(coded, 5), values)


def test_the_expected_error_is_zero() -> None:
    values = torch.tensor([7.0, 0.25, -0.25, 3.9, -5.5])
    mean = sum(_decoded(_coded(values, seed), len(values)).double() for seed in range(4000)) / 4000
    # The standard deviation of such a mean is at most 0.5 / sqrt(4000) = 0.008.
    assert torch.allclose(mean, values.double(), rtol=0, atol=0.03)


@given(plain.vectors(600), st.integers(0, 2**64 - 1))
def test_what_is_coded_and_what_is_not_add_up(vector: FloatArray, seed: int) -> None:
    values = torch.from_numpy(vector)
    unsent = torch.empty_like(values)
    decoded = _decoded(_coded(values, seed, unsent), len(values))
    for start in range(0, len(values), int8.BLOCK):
        block = slice(start, start + int8.BLOCK)
        largest = float(values[block].abs().max())
        error = (decoded[block].double() + unsent[block].double() - values[block].double()).abs()
        assert float(error.max()) <= largest * plain.ULP
        assert float(unsent[block].abs().max()) <= largest / 7 * (1 + 1e-5) + 8 * plain.TINY


@given(plain.vectors(600), st.integers(0, 2**64 - 1))
def test_operations_make_the_same_steps(vector: FloatArray, seed: int) -> None:
    values = torch.from_numpy(vector)
    found = []
    for encode in (int8.encode_steps, int8.encode_by_operations):
        scales = torch.zeros(int8.scales_bytes(len(values)) // 4)
        steps, unsent = torch.zeros(len(values), dtype=torch.int8), torch.empty_like(values)
        encode(values, seed, int4.STEPS, scales, steps, unsent)
        found.append((scales, steps, unsent))
    for compiled, by_operations in zip(*found, strict=True):
        assert torch.equal(compiled, by_operations)


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_a_block_that_is_not_finite_is_decoded_as_nan(value: float) -> None:
    values = torch.ones(2 * int8.BLOCK)
    values[3] = value
    decoded = _decoded(_coded(values), len(values)).view(2, -1)
    assert bool(decoded[0].isnan().all())
    assert torch.equal(decoded[1], torch.ones(int8.BLOCK))


@given(plain.vectors(600), st.integers(0, 2**64 - 1))
def test_operations_pack_and_add_the_same_to_the_bit(vector: FloatArray, seed: int) -> None:
    values = torch.from_numpy(vector)
    coded, expected = _coded(values, seed), torch.ones(len(values))
    int4.add(coded, expected)
    scales, pairs = int4._parts(coded, len(values))
    steps = int4.unpack_by_operations(pairs, len(values))
    packed, into = torch.full_like(pairs, 0xFF), torch.ones(len(values))
    int4.pack_by_operations(steps.clone(), packed)
    assert torch.equal(packed, pairs)
    int8.add_by_operations(scales, steps, into)
    assert torch.equal(into, expected)
