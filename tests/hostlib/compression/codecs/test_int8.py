"""Stochastic rounding is unbiased, repeatable, and the same compiled and by PyTorch's operations."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hostlib.compression.codecs import int8
from tests.hostlib.compression.codecs import plain
from tests.hostlib.compression.codecs.plain import FloatArray


def _coded(values: torch.Tensor, seed: int = 1, unsent: torch.Tensor | None = None) -> torch.Tensor:
    coded = torch.zeros(int8.size_bytes(len(values)), dtype=torch.uint8)
    int8.encode(values, seed, coded, unsent)
    return coded


def _decoded(coded: torch.Tensor, count: int) -> torch.Tensor:
    into = torch.zeros(count)
    int8.add(coded, into)
    return into


def test_a_scale_for_each_block_makes_its_largest_magnitude_127() -> None:
    values = torch.cat((torch.arange(-127.0, 129).clamp(max=127), torch.arange(-127.0, 1) / 1024))
    coded = _coded(values)
    assert len(coded) == len(values) + 2 * 4
    assert coded[:8].view(torch.float32).tolist() == [1, 1 / 1024]
    assert coded[8:].view(torch.int8).tolist() == [*range(-127, 128), 127, *range(-127, 1)]
    assert torch.equal(_decoded(coded, len(values)), values)


def test_the_random_numbers_are_those_of_splitmix64() -> None:
    # The first output for the seed 0, as other implementations have it.
    assert int8._uniform_of(1, 0, torch.device("cpu")).tolist() == [(0xE220A8397B1DCDAF >> 40) / 2**24]


def test_the_expected_error_is_zero() -> None:
    values = torch.tensor([127.0, 0.25, -0.25, 3.9, -100.5])
    mean = sum(_decoded(_coded(values, seed), len(values)).double() for seed in range(4000)) / 4000
    # The standard deviation of such a mean is at most 0.5 / sqrt(4000) = 0.008.
    assert torch.allclose(mean, values.double(), rtol=0, atol=0.03)


def test_each_seed_rounds_otherwise_and_the_same_one_the_same_way() -> None:
    values = torch.linspace(-1, 1, 1000)
    assert torch.equal(_coded(values, 5), _coded(values, 5))
    assert torch.equal(_coded(values, -1), _coded(values, 2**64 - 1))
    assert not torch.equal(_coded(values, 5), _coded(values, 6))


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
        # A step is the 127th part, but where floats are so small that they cannot say so.
        assert float(unsent[block].abs().max()) <= largest / 127 * (1 + 1e-5) + 128 * plain.TINY


@given(plain.vectors(600), st.integers(0, 2**64 - 1))
def test_operations_do_the_same_to_the_bit(vector: FloatArray, seed: int) -> None:
    values = torch.from_numpy(vector)
    compiled, by_operations = torch.empty_like(values), torch.empty_like(values)
    expected = _coded(values, seed, compiled)
    coded = torch.zeros_like(expected)
    int8.encode_by_operations(values, seed, int8.STEPS, *int8._parts(coded, len(values)), by_operations)
    assert torch.equal(coded, expected)
    assert torch.equal(by_operations, compiled)
    into = torch.ones(len(values))
    int8.add_by_operations(*int8._parts(coded, len(values)), into)
    expected_sum = torch.ones(len(values))
    int8.add(coded, expected_sum)
    assert torch.equal(into, expected_sum)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_block_that_is_not_finite_is_decoded_as_nan_and_others_as_they_are(value: float) -> None:
    values = torch.ones(3 * int8.BLOCK)
    values[int8.BLOCK + 5] = value
    coded = _coded(values)
    decoded = _decoded(coded, len(values)).view(3, -1)
    assert torch.equal(decoded[[0, 2]], torch.ones(2, int8.BLOCK))
    assert bool(decoded[1].isnan().all())
    again = torch.zeros_like(coded)
    int8.encode_by_operations(values, 1, int8.STEPS, *int8._parts(again, len(values)), None)
    assert torch.equal(coded, again)
