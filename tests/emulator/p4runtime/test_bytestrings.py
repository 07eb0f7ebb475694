"""Binary strings: the specification's tables of valid and invalid ones."""

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.p4runtime.bytestrings import decode_value, encode_value
from emulator.p4runtime.errors import RequestError


@pytest.mark.parametrize(
    ("data", "width_bits", "value"),
    [(b"\x63", 8, 99), (b"\0\x63", 16, 99), (b"\x30\x64", 16, 12388), (b"\0\0\x63", 12, 99), (b"\0", 1, 0)],
)
def test_leading_zeros_are_accepted(data: bytes, width_bits: int, value: int) -> None:
    assert decode_value(data, width_bits, "x") == value


@pytest.mark.parametrize(
    ("data", "width_bits"),
    [(b"\x01\x63", 8), (b"", 8), (b"\x01\0\x63", 16), (b"\x10\x63", 12), (b"\0\x40\x63", 12)],
)
def test_what_does_not_fit_or_is_empty_is_out_of_range(data: bytes, width_bits: int) -> None:
    with pytest.raises(RequestError, match="level") as error:
        decode_value(data, width_bits, "level")
    assert error.value.code is grpc.StatusCode.OUT_OF_RANGE


@given(st.integers(0, 2**128 - 1))
def test_canonical_strings_are_shortest_and_read_back(value: int) -> None:
    data = encode_value(value)
    assert decode_value(data, 128, "x") == value
    assert data == b"\0" or data[0] != 0
