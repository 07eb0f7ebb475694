"""The beginning of every payload: what is in it, and in which form."""

import math
import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Self

import torch

from hostlib.compression.choice import Precision
from hostlib.compression.codecs.errors import CorruptPayloadError

ALIGNMENT_BYTES = 8
"""Payloads have a multiple of this size, and begin at a multiple of it in memory."""

_LAYOUT = struct.Struct("<IIBB?xf")
_PRECISIONS = tuple(Precision)
SIZE_BYTES = _LAYOUT.size


class Form(IntEnum):
    """Which elements a payload has."""

    DENSE = 1
    """All."""
    ELIAS_FANO = 2
    """Those of the indices in ``codecs.indices``' form."""
    PLAIN = 3
    """Those of the indices, 32 bits each."""


_FORMS = {int(form): form for form in Form}


@dataclass(frozen=True, slots=True)
class Header:
    """The first 16 bytes, little-endian."""

    form: Form
    elements: int
    """Of the whole vector."""
    count: int
    """Of the elements that are sent."""
    precision: Precision
    is_finite: bool
    """Whether the gradient was; the values of another one are not in the payload, but NaN."""
    scale: float
    """By which the values are multiplied."""

    def write(self, payload: torch.Tensor) -> None:
        """Write it to the beginning of a payload, on any device."""
        precision = _PRECISIONS.index(self.precision)
        content = (self.elements, self.count, precision, self.form, self.is_finite, self.scale)
        payload[:SIZE_BYTES].copy_(torch.frombuffer(bytearray(_LAYOUT.pack(*content)), dtype=torch.uint8))

    @classmethod
    def read(cls, payload: torch.Tensor) -> Self:
        """Return what stands at the beginning of a payload. Raises CorruptPayloadError if that is no header."""
        if payload.dtype != torch.uint8 or payload.dim() != 1 or payload.numel() < SIZE_BYTES:
            raise CorruptPayloadError(f"payload: {payload.dtype} of shape {tuple(payload.shape)}, expected bytes")
        content = _LAYOUT.unpack(payload[:SIZE_BYTES].cpu().numpy().tobytes())
        elements, count, precision, form, is_finite, scale = content
        if precision >= len(_PRECISIONS) or form not in _FORMS or count > elements or not 0 < scale < math.inf:
            raise CorruptPayloadError(f"payload: its header means nothing: {content}")
        return cls(_FORMS[form], elements, count, _PRECISIONS[precision], is_finite, scale)


def is_finite(payload: torch.Tensor) -> bool:
    """Return whether the gradient in a payload was finite. Raises CorruptPayloadError if it has no header."""
    return Header.read(payload).is_finite


def padded(size_bytes: int) -> int:
    """Return the next multiple of the alignment."""
    return -(-size_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES


def allocated(payload: torch.Tensor | None, size_bytes: int, device: torch.device) -> torch.Tensor:
    """Return the caller's tensor for a payload if it fits, or a new one.

    Raises:
        ValueError: The caller's is no aligned vector of that many bytes on that device.
    """
    if payload is None:
        return torch.empty(size_bytes, dtype=torch.uint8, device=device)
    if payload.dtype != torch.uint8 or payload.shape != (size_bytes,) or payload.device != device:
        raise ValueError(
            f"payload: expected {size_bytes} bytes on {device}, got {payload.dtype} of shape {tuple(payload.shape)} on "
            f"{payload.device}"
        )
    if not is_aligned(payload):
        raise ValueError(f"payload: expected to begin at a multiple of {ALIGNMENT_BYTES} bytes, and to have no gaps")
    return payload


def is_aligned(payload: torch.Tensor) -> bool:
    """Whether words of a payload can be read where they are."""
    return bool(payload.is_contiguous() and payload.data_ptr() % ALIGNMENT_BYTES == 0)


def check_vector(field: str, vector: torch.Tensor) -> None:
    """Raise ValueError, naming the field, unless this is a contiguous vector of fp32."""
    if vector.dtype != torch.float32 or vector.dim() != 1 or not vector.is_contiguous() or vector.requires_grad:
        raise ValueError(
            f"{field}: expected a contiguous vector of float32 without gradient, got {vector.dtype} of shape "
            f"{tuple(vector.shape)}"
        )
