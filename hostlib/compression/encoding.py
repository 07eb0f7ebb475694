"""The payloads of one gradient: encoded with what was not sent before, and taken back where nobody may use them."""

import math
from collections.abc import Sequence

import torch

from hostlib.compression.choice import Choice
from hostlib.compression.codecs import dense, sparse
from hostlib.compression.codecs.payload import is_finite as was_finite
from hostlib.compression.control.cost import values_sent
from hostlib.compression.residuals import Held

_SAMPLES = 1 << 16
"""Weights that are looked at for the limit of pruning."""


class Encoding:
    """Encodes ranges of one gradient as chosen. What is not sent stays in the residual.

    A gradient that is not finite changes nothing, and its payloads say so.

    Args:
        gradient: Flat, of any floating type. It is not changed.
        held: What was not sent before, of the same elements.
        momentum: Of the momentum correction.
        choice: A ratio below 1, or the precision of a dense payload.
        seed: Of stochastic rounding; another one for each rank, step and bucket.

    Attributes:
        elements: Of the gradient.
    """

    def __init__(self, gradient: torch.Tensor, held: Held, momentum: float, choice: Choice, seed: int) -> None:
        self.elements = gradient.numel()
        self._is_finite = is_finite(gradient)
        self._values = gradient.to(torch.float32, copy=bool(choice.prune_share))
        self._held = held
        self._momentum = momentum
        self._velocity_before = None if held.velocity is None else held.velocity.clone()
        self._choice = choice
        self._seed = seed
        self._sent: list[tuple[range, torch.Tensor]] = []

    def wire_bytes(self, elements: int) -> int:
        """Return the size of the payload of so many elements, the same on every rank."""
        choice = self._choice
        if choice.ratio >= 1:
            return dense.wire_bytes(elements, choice.precision)
        form = sparse.form_for(self._values.device)
        return sparse.wire_bytes(elements, values_sent(choice, elements), choice.precision, form)

    def encode(self, ranges: Sequence[range], weights: Sequence[torch.Tensor] = ()) -> list[torch.Tensor]:
        """Return the payloads of ranges that do not overlap.

        Args:
            ranges: Of the gradient's elements.
            weights: The parameters whose gradient it is, for a choice that prunes.
        """
        if not self._is_finite:
            return [self._of_nothing(len(each)) for each in ranges]
        pruned = self._set_aside(weights) if self._choice.prune_share else None
        for each in ranges:
            self._sent.append((each, self._encode(each)))
        if pruned is not None:
            self._put_back(*pruned)
        return [payload for _, payload in self._sent]

    def encode_again(self, total: torch.Tensor, is_usable: bool) -> torch.Tensor:
        """Return the payload of the sum of all ranks' payloads of one range; what it leaves out stays in ``total``.

        Args:
            total: The sum.
            is_usable: Whether all that was summed was finite; if not, the payload says so.
        """
        if not is_usable:
            return self._of_nothing(len(total))
        choice, seed = self._choice, ~self._seed
        if choice.ratio >= 1:
            return dense.encode(total, choice.precision, seed=seed, unsent=total)
        return sparse.encode(total, values_sent(choice, len(total)), choice.precision, seed=seed)

    def add(self, payload: torch.Tensor, into: torch.Tensor) -> None:
        """Add a payload to as many elements as it was made of."""
        (dense if self._choice.ratio >= 1 else sparse).decode_add(payload, into)

    def take_back(self) -> None:
        """Have the residual as if the gradient had never been encoded, but for rounding."""
        held = self._held
        for elements, payload in self._sent:
            if was_finite(payload):
                self.add(payload, held.unsent[elements.start : elements.stop])
        if not self._sent:
            return
        held.unsent.sub_(self._values)
        if held.velocity is not None and self._velocity_before is not None:
            held.unsent.sub_(self._velocity_before, alpha=self._momentum)
            held.velocity.copy_(self._velocity_before)

    def _encode(self, elements: range) -> torch.Tensor:
        choice, part = self._choice, slice(elements.start, elements.stop)
        unsent, values = self._held.unsent[part], self._values[part]
        velocity = None if self._held.velocity is None else self._held.velocity[part]
        if choice.ratio < 1:
            return sparse.encode(
                unsent,
                values_sent(choice, len(elements)),
                choice.precision,
                gradient=values,
                velocity=velocity,
                momentum=self._momentum,
                seed=self._seed,
            )
        unsent.add_(values if velocity is None else velocity.mul_(self._momentum).add_(values))
        return dense.encode(unsent, choice.precision, seed=self._seed, unsent=unsent)

    def _of_nothing(self, elements: int) -> torch.Tensor:
        choice, unusable = self._choice, torch.full((elements,), math.nan, device=self._values.device)
        if choice.ratio >= 1:
            return dense.encode(unusable, choice.precision)
        return sparse.encode(unusable, values_sent(choice, elements), choice.precision)

    def _set_aside(self, weights: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Take what belongs to the smallest weights out of this transmission (NetSenseML, Algorithm 2, step 2).

        Where there are very many, a sample of them tells the limit. Of equal weights at the limit none is pruned.
        """
        magnitudes = torch.cat([weight.detach().reshape(-1).abs() for weight in weights])
        sample = magnitudes[:: -(-self.elements // _SAMPLES)].contiguous()
        limit = sample.kthvalue(int(self._choice.prune_share * len(sample)) + 1).values
        is_pruned, is_kept = magnitudes < limit, magnitudes >= limit
        vectors = [self._held.unsent, self._values, *([] if self._held.velocity is None else [self._held.velocity])]
        aside = [vector * is_pruned for vector in vectors]
        for vector in vectors:
            vector.mul_(is_kept)
        return aside

    def _put_back(self, unsent: torch.Tensor, values: torch.Tensor, velocity: torch.Tensor | None = None) -> None:
        """Add what was set aside to zeros, and let it wait."""
        self._values.add_(values)
        if self._held.velocity is not None and velocity is not None:
            values = velocity.mul_(self._momentum).add_(values)
            self._held.velocity.add_(values)
        self._held.unsent.add_(unsent).add_(values)


def largest_magnitude(tensor: torch.Tensor) -> float:
    """Return the largest magnitude in a tensor, NaN where there is one; 0 if it is empty."""
    if not tensor.numel():
        return 0.0
    least, most = (float(each) for each in torch.aminmax(tensor))
    return max(-least, most) if most == most else math.nan


def is_finite(tensor: torch.Tensor) -> bool:
    """Return whether there is neither NaN nor an infinity in a tensor."""
    return math.isfinite(largest_magnitude(tensor))
