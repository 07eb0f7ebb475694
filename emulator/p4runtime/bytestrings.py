"""Binary strings for values of type bit<W> (P4Runtime specification, section 8.3)."""

import grpc

from emulator.p4runtime.errors import RequestError


def decode_value(data: bytes, width_bits: int, name: str) -> int:
    """Return the value of a big-endian string, with or without leading zeros.

    Raises RequestError, OUT_OF_RANGE, if the string is empty or its value does not fit.
    """
    if not data:
        raise RequestError(grpc.StatusCode.OUT_OF_RANGE, f"{name}: the value is an empty string")
    value = int.from_bytes(data, "big")
    if value.bit_length() > width_bits:
        raise RequestError(grpc.StatusCode.OUT_OF_RANGE, f"{name}: {value:#x} does not fit in bit<{width_bits}>")
    return value


def encode_value(value: int) -> bytes:
    """Return the canonical, shortest string of a value; zero is one byte."""
    return value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")
