"""How one gradient becomes its mean over all ranks, as a choice says: what is computed, and which collectives it takes.

A rank that finds NaN or an infinity in its gradient cannot tell the others before they have sent theirs as chosen, but
its payloads say so. Then all ranks send that gradient again, dense and as it is, and take back what they had sent.
Nothing of it stays in residuals, as a scaler or a script that looks for such numbers skips that step.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from hostlib.compression.choice import Choice, Collective, Precision
from hostlib.compression.codecs.payload import is_finite as was_finite
from hostlib.compression.codecs.values import largest_magnitude
from hostlib.compression.collectives import AllGather, AllReduce, Exchange, Ranks, SparseAllReduce, synchronize
from hostlib.compression.encoding import Encoding, is_finite
from hostlib.compression.factoring import Factoring, WarmStarts
from hostlib.compression.lanes import Transmission
from hostlib.compression.residuals import Residuals, Sections
from hostlib.compression.shapes import Shape, is_low_rank

PRECISIONS = {torch.float32: Precision.FP32, torch.bfloat16: Precision.BF16, torch.float16: Precision.FP16}
"""Of gradients that can be compressed; others are passed on."""
_DTYPES = {precision: dtype for dtype, precision in PRECISIONS.items()}

NOT_FINITE = "NaN or infinity"


@dataclass(slots=True)
class Gradient:
    """A flat gradient of a few parameters, which becomes the mean in place.

    Attributes:
        buffer: One dimension; or a sparse tensor.
        sections: Its parameters, in order.
        parameters: Their weights.
        seed: Of stochastic rounding; another one for each rank, step and bucket.
        passed_on: Why it was not sent as chosen; None: it was.
    """

    buffer: torch.Tensor
    sections: Sections
    parameters: Sequence[torch.Tensor]
    seed: int
    passed_on: str | None = None

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """Of its parameters."""
        return tuple(tuple(parameter.shape) for parameter in self.parameters)


class Reducer:
    """Makes transmissions between ranks that all make the same ones.

    Args:
        ranks: Between whom.
        residuals: What is not sent yet.
    """

    def __init__(self, ranks: Ranks, residuals: Residuals) -> None:
        self._ranks = ranks
        self._residuals = residuals
        self._starts = WarmStarts()

    def transmission(self, gradient: Gradient, choice: Choice | None) -> Transmission:
        """Return what sends a gradient as chosen; None: as it is."""
        buffer = gradient.buffer
        native = PRECISIONS.get(buffer.dtype)
        if buffer.is_sparse:
            return self._sparse_tensor(gradient)
        if not buffer.numel():
            return _nothing(gradient)
        if native is None:
            gradient.passed_on = f"{buffer.dtype}"
            return self._as_it_is(gradient)
        if choice is None:
            choice = Choice(1, native, Collective.ALL_REDUCE)
        if choice.rank and any(is_low_rank(shape, choice.rank) for shape in gradient.shapes):
            return self._factored(gradient, choice.rank)
        if choice.ratio < 1 and choice.collective == Collective.REDUCE_SCATTER:
            return self._scattered(gradient, choice)
        if choice.ratio < 1:
            return self._gathered(gradient, choice)
        if choice.precision in (Precision.INT8, Precision.INT4):
            return self._scattered(gradient, choice)
        dtype = buffer.dtype if choice.precision == Precision.FP32 else _DTYPES[choice.precision]
        if dtype == buffer.dtype and self._residuals.is_empty(gradient.sections):
            return self._as_it_is(gradient)
        return self._dense(gradient, dtype)

    def _as_it_is(self, gradient: Gradient) -> Transmission:
        # DDP, too, multiplies by the reciprocal before it sums.
        buffer = gradient.buffer.mul_(1 / self._ranks.size)
        yield AllReduce(buffer)
        return buffer

    def _sparse_tensor(self, gradient: Gradient) -> Transmission:
        gradient.passed_on = f"sparse gradient of {', '.join(section.name for section in gradient.sections)}"
        total = yield SparseAllReduce(gradient.buffer)
        return total / self._ranks.size

    def _dense(self, gradient: Gradient, dtype: torch.dtype) -> Transmission:
        """Send all elements, and all that was not sent before. Errors of rounding do not stay in the residual."""
        buffer, size = gradient.buffer, self._ranks.size
        if not is_finite(buffer):
            gradient.passed_on = NOT_FINITE
            mean = buffer.to(dtype, copy=True).mul_(1 / size)
        else:
            mean = with_unsent(gradient, self._residuals, dtype).mul_(1 / size).to(dtype)
        yield AllReduce(mean)
        yield None
        return buffer.copy_(mean)

    def _gathered(self, gradient: Gradient, choice: Choice) -> Transmission:
        """Every rank selects, and all ranks' selections go to all."""
        buffer = gradient.buffer
        encoding = self._encoding(gradient, choice)
        (own,) = encoding.encode([range(buffer.numel())], gradient.parameters)
        payloads = yield AllGather(own)
        if not all(map(was_finite, payloads)):
            return (yield from self._passed_on(gradient, encoding))
        yield None
        total = _emptied(buffer)
        for payload in payloads:
            encoding.add(payload, total)
        return _mean(total, buffer, self._ranks.size)

    def _scattered(self, gradient: Gradient, choice: Choice) -> Transmission:
        """Every rank selects in each range; the range's owner sums and selects again; these selections go to all.

        What its owner leaves out of a sum is the owner's to send later.
        """
        buffer, ranks = gradient.buffer, self._ranks
        ranges = ranks.ranges(buffer.numel())
        own = ranges[ranks.rank]
        encoding = self._encoding(gradient, choice)
        parts = encoding.encode(ranges, gradient.parameters)
        received = yield Exchange(parts, [encoding.wire_bytes(len(own))] * ranks.size)
        total = torch.zeros(len(own), device=buffer.device)
        for part in received:
            encoding.add(part, total)
        sizes = [encoding.wire_bytes(len(each)) for each in ranges]
        padded = torch.zeros(max(sizes), dtype=torch.uint8, device=buffer.device)
        padded[: sizes[ranks.rank]] = encoding.encode_again(total, all(map(was_finite, received)))
        payloads = yield AllGather(padded)
        if not all(map(was_finite, payloads)):
            return (yield from self._passed_on(gradient, encoding))
        self._residuals.held(gradient.sections, buffer.device).unsent[own.start : own.stop] += total
        yield None
        total = _emptied(buffer)
        for each, size_bytes, payload in zip(ranges, sizes, payloads, strict=True):
            encoding.add(payload[:size_bytes], total[each.start : each.stop])
        return _mean(total, buffer, ranks.size)

    def _factored(self, gradient: Gradient, rank: int) -> Transmission:
        """Send matrices as P and Q, the rest as it is. P goes first, as it tells whether all gradients are finite."""
        buffer, size = gradient.buffer, self._ranks.size
        held = self._residuals.held(gradient.sections, buffer.device)
        matrices = zip(gradient.sections, gradient.shapes, strict=True)
        factoring = Factoring(buffer, matrices, held, self._residuals.momentum, rank, self._starts)
        left = yield AllReduce(factoring.left())
        if not is_finite(left):
            return (yield from self._passed_on(gradient, factoring))
        others = factoring.others().mul_(1 / size).to(buffer.dtype)
        if others.numel():
            yield AllReduce(others)
        right = (yield AllReduce(factoring.right(left))).mul_(1 / size)
        if not is_finite(right):
            return (yield from self._passed_on(gradient, factoring))
        factoring.settle(right)
        synchronize(buffer)  # another thread decodes, on a stream of its own
        yield None
        return factoring.decode(others, buffer)

    def _encoding(self, gradient: Gradient, choice: Choice) -> Encoding:
        held = self._residuals.held(gradient.sections, gradient.buffer.device)
        return Encoding(gradient.buffer, held, self._residuals.momentum, choice, gradient.seed)

    def _passed_on(self, gradient: Gradient, encoded: Encoding | Factoring) -> Transmission:
        gradient.passed_on = NOT_FINITE
        encoded.take_back()
        return (yield from self._as_it_is(gradient))


def with_unsent(gradient: Gradient, residuals: Residuals, dtype: torch.dtype) -> torch.Tensor:
    """Return a gradient with all that was not sent before, in fp32; what exceeds the range of a type stays unsent."""
    total = residuals.taken(gradient.sections, gradient.buffer)
    most = torch.finfo(dtype).max
    if largest_magnitude(total) <= most:
        return total
    within = total.clamp(-most, most)
    residuals.held(gradient.sections, gradient.buffer.device).unsent.copy_(total.sub_(within))
    return within


def _emptied(buffer: torch.Tensor) -> torch.Tensor:
    """Return zeros in fp32 to add payloads to: the buffer itself if it can be."""
    return buffer.zero_() if buffer.dtype == torch.float32 else torch.zeros(buffer.numel(), device=buffer.device)


def _mean(total: torch.Tensor, buffer: torch.Tensor, size: int) -> torch.Tensor:
    """Put a sum over so many ranks into the buffer as the mean."""
    total.mul_(1 / size)
    return buffer if total is buffer else buffer.copy_(total)


def _nothing(gradient: Gradient) -> Transmission:
    yield from ()
    return gradient.buffer
