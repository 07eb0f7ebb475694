"""How one gradient becomes its mean over all ranks, as a choice says: what is computed, and which collectives it takes.

A rank that finds NaN or an infinity in its gradient cannot tell the others before they have sent theirs as chosen. So
every payload ends with a byte that says so, and where one is set, all ranks send this gradient again, dense and as it
is. Nothing of it stays in residuals.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from hostlib.compression.choice import Choice, Collective, Precision
from hostlib.compression.collectives import AllReduce, Ranks, SparseAllReduce
from hostlib.compression.lanes import Transmission
from hostlib.compression.residuals import Residuals, Sections

PRECISIONS = {torch.float32: Precision.FP32, torch.bfloat16: Precision.BF16, torch.float16: Precision.FP16}
"""Of gradients that can be compressed; others are passed on."""
_DTYPES = {precision: dtype for dtype, precision in PRECISIONS.items()}

NOT_FINITE = "NaN or infinity"
SPARSE = "sparse gradient"
UNKNOWN_TYPE = "no fp32, bf16 or fp16"


@dataclass(slots=True)
class Gradient:
    """A flat gradient of a few parameters, which becomes the mean in place.

    Attributes:
        buffer: One dimension; or a sparse tensor.
        sections: Its parameters, in order.
        parameters: Their weights, for pruning.
        passed_on: Why it was not sent as chosen; None: it was.
    """

    buffer: torch.Tensor
    sections: Sections
    parameters: Sequence[torch.Tensor] = ()
    passed_on: str | None = field(default=None)


class Reducer:
    """Makes the transmissions of gradients between ranks that all make the same ones.

    Args:
        ranks: Between whom.
        residuals: What is not sent yet.
    """

    def __init__(self, ranks: Ranks, residuals: Residuals) -> None:
        self._ranks = ranks
        self._residuals = residuals

    def transmission(self, gradient: Gradient, choice: Choice | None) -> Transmission:
        """Return what sends a gradient as chosen; None: as it is."""
        buffer = gradient.buffer
        if buffer.is_sparse:
            return self._sparse_tensor(gradient)
        native = PRECISIONS.get(buffer.dtype)
        if native is None:
            gradient.passed_on = UNKNOWN_TYPE
            return self._as_it_is(gradient)
        if choice is None:
            choice = Choice(1, native, Collective.ALL_REDUCE)
        if choice.ratio < 1:
            return self._sparse(gradient, choice)
        if choice.precision == Precision.INT8:
            return self._int8(gradient)
        dtype = buffer.dtype if choice.precision == Precision.FP32 else _DTYPES[choice.precision]
        if dtype == buffer.dtype and self._residuals.is_empty(gradient.sections):
            return self._as_it_is(gradient)
        return self._dense(gradient, dtype)

    def _as_it_is(self, gradient: Gradient) -> Transmission:
        # DDP multiplies by the reciprocal, too, and before it sums.
        buffer = gradient.buffer.mul_(1 / self._ranks.size)
        yield AllReduce(buffer)
        return buffer

    def _sparse_tensor(self, gradient: Gradient) -> Transmission:
        gradient.passed_on = f"{SPARSE} of {', '.join(section.name for section in gradient.sections)}"
        total = yield SparseAllReduce(gradient.buffer)
        return total / self._ranks.size

    def _dense(self, gradient: Gradient, dtype: torch.dtype) -> Transmission:
        """Send all elements, and all that was not sent before, in a type that may have a smaller range.

        What exceeds the range stays in the residual. Rounding does not: an unbiased error that small needs no feedback.
        """
        buffer, size = gradient.buffer, self._ranks.size
        if not is_finite(buffer):
            gradient.passed_on = NOT_FINITE
            mean = buffer.to(dtype, copy=True).div_(size)
        else:
            total = self._residuals.taken(gradient.sections, buffer)
            most = torch.finfo(dtype).max
            if largest(total) > most:
                within = total.clamp(-most, most)
                self._residuals.held(gradient.sections, buffer.device).unsent.copy_(total.sub_(within))
                total = within
            mean = total.mul_(1 / size).to(dtype)
        yield AllReduce(mean)
        yield None
        return buffer.copy_(mean)


def largest(tensor: torch.Tensor) -> float:
    """Return the largest magnitude in a tensor, NaN where there is NaN; 0 if it is empty."""
    if not tensor.numel():
        return 0.0
    low, high = torch.aminmax(tensor)
    return max(-float(low), float(high)) if low == low else math.nan


def is_finite(tensor: torch.Tensor) -> bool:
    """Return whether there is neither NaN nor an infinity in a tensor."""
    return math.isfinite(largest(tensor))
