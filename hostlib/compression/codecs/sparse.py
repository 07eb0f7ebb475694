"""Sparse payloads: the largest elements of a gradient with what was not sent before; the rest waits.

A payload is one vector of bytes: a header of 16, the indices, the values. Its size depends on elements, count and
precision alone, so that all ranks' payloads of a bucket have one size, whatever is in them. What rounding takes from a
value stays in the residual, so that nothing is lost: the decoded payload and the residual add up to the input.

A gradient with NaN or an infinity is in no state to be added to anything. Its payload has the first such elements,
each decoded as NaN, as a dense all-reduce would have them. The residual and the velocity stay as they were.

On CPUs the loops are compiled. On other devices operations of PyTorch do the same, and indices have 32 bits each.
"""

import torch

from hostlib.compression.choice import Precision
from hostlib.compression.codecs import indices as elias_fano
from hostlib.compression.codecs import operations, payload, selection, values
from hostlib.compression.codecs.errors import CorruptPayloadError, NonFiniteError
from hostlib.compression.codecs.machine_code import compiled
from hostlib.compression.codecs.payload import Form, Header
from hostlib.compression.codecs.selection import FloatArray, IndexArray

_INDEX_BYTES = 4
_WORD_BYTES = 8


def wire_bytes(elements: int, count: int, precision: Precision, form: Form = Form.ELIAS_FANO) -> int:
    """Return the size of a payload of ``count`` of ``elements``: exact, the same on every rank."""
    return payload.padded(_values_start(elements, count, form) + values.size_bytes(count, precision))


def form_for(device: torch.device) -> Form:
    """Return the form of the indices of payloads from a device."""
    return Form.ELIAS_FANO if device.type == "cpu" else Form.PLAIN


def encode(
    residual: torch.Tensor,
    count: int,
    precision: Precision,
    *,
    gradient: torch.Tensor | None = None,
    velocity: torch.Tensor | None = None,
    momentum: float = 0.0,
    seed: int = 0,
    form: Form | None = None,
    into: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return a payload of the largest elements, which leave the residual and the velocity.

    Each tensor is a contiguous vector of fp32 of the same length, on the same device.

    Args:
        residual: What is to be sent. Afterwards it has what was not sent, rounding errors included.
        count: How many elements. If fewer are not zero, the payload has those, and the same size.
        precision: Of the values.
        gradient: Added to the residual first. None: the residual is the input as it is.
        velocity: Of the momentum correction: velocity = momentum x velocity + gradient is added instead. Without a
            gradient it only loses the elements that are sent.
        momentum: 0 to below 1.
        seed: Of the stochastic rounding of ``int8`` and ``int4``; ranks and steps need different ones.
        form: Of the indices; None: what suits the device.
        into: An aligned vector of ``wire_bytes`` bytes for the payload; None: a new one.

    Raises:
        ValueError: A tensor is of another type, length or device, or the count is out of range. Nothing is changed.
    """
    elements = len(residual)
    form = form_for(residual.device) if form is None else form
    if not _suits(form, residual.device):
        raise ValueError(f"form: {form.name.lower()} does not suit indices on {residual.device}")
    for field, vector in (("residual", residual), ("gradient", gradient), ("velocity", velocity)):
        if vector is not None:
            payload.check_vector(field, vector)
            if len(vector) != elements or vector.device != residual.device:
                raise ValueError(f"{field}: expected {elements} elements on {residual.device}, as the residual has")
    if not 0 <= count <= elements:
        raise ValueError(f"count: must lie between 0 and {elements}, not {count}")
    out = payload.allocated(into, wire_bytes(elements, count, precision, form), residual.device)
    choose = _by_kernels if form is Form.ELIAS_FANO else _by_operations
    is_finite = True
    try:
        chosen, sent = choose(residual, gradient, count, velocity, momentum)
    except NonFiniteError:
        is_finite = False
        source = residual if gradient is None else gradient
        chosen = operations.non_finite(source, count)
        sent = torch.full((len(chosen),), torch.nan, device=source.device)
    start = _values_start(elements, len(chosen), form)
    stop = start + values.size_bytes(len(chosen), precision)
    scale = values.encode(sent, precision, seed, out[start:stop], sent)
    if is_finite and precision is not Precision.FP32:
        _add_at(residual, chosen, sent, form)
    _write_indices(out, chosen, elements, form)
    out[stop:] = 0
    Header(form, elements, len(chosen), precision, is_finite, scale).write(out)
    return out


def decode_add(received: torch.Tensor, into: torch.Tensor) -> None:
    """Add a payload to a vector of fp32 on the same device. An unaligned payload is copied first.

    Raises:
        CorruptPayloadError: It is no sparse payload of a vector of this length. Nothing is added then.
        ValueError: The vector is not contiguous or of another type.
    """
    payload.check_vector("into", into)
    header = Header.read(received)
    if not _suits(header.form, received.device) or header.elements != len(into):
        raise CorruptPayloadError(
            f"payload: {header.form.name.lower()}, of {header.elements} elements; expected a sparse one of {len(into)}"
        )
    start = _values_start(header.elements, header.count, header.form)
    stop = start + values.size_bytes(header.count, header.precision)
    if len(received) < stop:
        raise CorruptPayloadError(f"payload: {len(received)} bytes, expected at least {stop}")
    if not payload.is_aligned(received):
        received = received.contiguous().clone()
    chosen = _read_indices(received, header)
    sent = torch.zeros(header.count, device=into.device)
    values.add(received[start:stop], header.precision, header.scale, sent)
    _add_at(into, chosen, sent, header.form)


def _suits(form: Form, device: torch.device) -> bool:
    return form is Form.PLAIN or (form is Form.ELIAS_FANO and device.type == "cpu")


def _values_start(elements: int, count: int, form: Form) -> int:
    words = elias_fano.size_words(elements, count) * _WORD_BYTES
    return payload.SIZE_BYTES + (words if form is Form.ELIAS_FANO else payload.padded(count * _INDEX_BYTES))


def _by_kernels(
    residual: torch.Tensor, gradient: torch.Tensor | None, count: int, velocity: torch.Tensor | None, momentum: float
) -> tuple[torch.Tensor, torch.Tensor]:
    vector = residual.numpy()
    moving = None if velocity is None else velocity.numpy()
    if gradient is None:
        chosen = selection.largest(vector, count)
    else:
        chosen = selection.accumulate(vector, gradient.numpy(), count, moving, momentum)
    return torch.from_numpy(chosen), torch.from_numpy(selection.take(vector, chosen, moving))


def _by_operations(
    residual: torch.Tensor, gradient: torch.Tensor | None, count: int, velocity: torch.Tensor | None, momentum: float
) -> tuple[torch.Tensor, torch.Tensor]:
    if gradient is None:
        chosen = operations.largest(residual, count)
    else:
        chosen = operations.accumulate(residual, gradient, count, velocity, momentum)
    return chosen, operations.take(residual, chosen, velocity)


def _write_indices(out: torch.Tensor, chosen: torch.Tensor, elements: int, form: Form) -> None:
    stop = _values_start(elements, len(chosen), form)
    region = out[payload.SIZE_BYTES : stop]
    if form is Form.ELIAS_FANO:
        elias_fano.encode(chosen.to(torch.int32).numpy(), elements, region.numpy().view("uint64"))
    else:
        plain = region.view(torch.int32)
        plain[: len(chosen)] = chosen
        plain[len(chosen) :] = 0


def _read_indices(received: torch.Tensor, header: Header) -> torch.Tensor:
    region = received[payload.SIZE_BYTES : _values_start(header.elements, header.count, header.form)]
    if header.form is Form.ELIAS_FANO:
        words = region.numpy().view("uint64")
        return torch.from_numpy(elias_fano.decode(words, header.count, header.elements))
    chosen = region.view(torch.int32)[: header.count]
    if header.count and (int(chosen.min()) < 0 or int(chosen.max()) >= header.elements):
        raise CorruptPayloadError(f"payload: it has indices outside of {header.elements} elements")
    return chosen


def _add_at(into: torch.Tensor, indices: torch.Tensor, added: torch.Tensor, form: Form) -> None:
    """Add values to the elements of indices that lie in the vector."""
    if form is Form.ELIAS_FANO:
        _add_at_indices(into.numpy(), indices.to(torch.int32).numpy(), added.numpy())
    else:
        into.index_add_(0, indices, added)


@compiled("void(float32[::1], int32[::1], float32[::1])")
def _add_at_indices(into: FloatArray, indices: IndexArray, added: FloatArray) -> None:
    for position in range(len(indices)):
        into[indices[position]] += added[position]
