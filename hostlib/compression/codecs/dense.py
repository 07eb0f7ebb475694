"""Dense payloads: every element in a precision, for collectives that gather or exchange payloads."""

import math

import torch

from hostlib.compression.choice import Precision
from hostlib.compression.codecs import payload, values
from hostlib.compression.codecs.errors import CorruptPayloadError
from hostlib.compression.codecs.payload import Form, Header


def wire_bytes(elements: int, precision: Precision) -> int:
    """Return the size of a payload: exact, the same on every rank."""
    return payload.padded(payload.SIZE_BYTES + values.size_bytes(elements, precision))


def encode(
    vector: torch.Tensor,
    precision: Precision,
    *,
    seed: int = 0,
    unsent: torch.Tensor | None = None,
    into: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return a payload of a vector.

    Args:
        vector: Contiguous, of fp32. NaN and infinities are sent as NaN or infinities.
        precision: Of the values.
        seed: Of the stochastic rounding of ``int8`` and ``int4``; ranks and steps need different ones.
        unsent: Like the vector, may be the same: it gets what rounding took, and 0 if the vector is not finite.
        into: An aligned vector of ``wire_bytes`` bytes for the payload; None: a new one.

    Raises:
        ValueError: A tensor is of another type, length or device.
    """
    payload.check_vector("vector", vector)
    if unsent is not None:
        payload.check_vector("unsent", unsent)
        if unsent.shape != vector.shape or unsent.device != vector.device:
            raise ValueError(f"unsent: expected {len(vector)} elements on {vector.device}, as the vector has")
    out = payload.allocated(into, wire_bytes(len(vector), precision), vector.device)
    is_finite = math.isfinite(values.largest_magnitude(vector))
    stop = payload.SIZE_BYTES + values.size_bytes(len(vector), precision)
    scale = values.encode(vector, precision, seed, out[payload.SIZE_BYTES : stop], unsent)
    if unsent is not None and not is_finite:
        unsent.zero_()
    out[stop:] = 0
    Header(Form.DENSE, len(vector), len(vector), precision, is_finite, scale).write(out)
    return out


def decode_add(received: torch.Tensor, into: torch.Tensor) -> None:
    """Add a payload to a vector of fp32 on the same device. An unaligned payload is copied first.

    Raises:
        CorruptPayloadError: It is no dense payload of a vector of this length. Nothing is added then.
        ValueError: The vector is not contiguous or of another type.
    """
    payload.check_vector("into", into)
    header = Header.read(received)
    stop = payload.SIZE_BYTES + values.size_bytes(header.elements, header.precision)
    if header.form is not Form.DENSE or header.count != len(into) or header.elements != len(into):
        raise CorruptPayloadError(
            f"payload: {header.form.name.lower()}, of {header.elements} elements; expected a dense one of {len(into)}"
        )
    if len(received) < stop:
        raise CorruptPayloadError(f"payload: {len(received)} bytes, expected at least {stop}")
    if not payload.is_aligned(received):
        received = received.contiguous().clone()
    values.add(received[payload.SIZE_BYTES : stop], header.precision, header.scale, into)
