"""PowerSGD on a small model: gradients as products of two thin matrices (Vogels et al. 2019, Algorithms 1 and 2).

As in PyTorch's hook: error feedback, a warm start, orthogonalisation of P alone. Every product is linear in the
gradients, so the mean of all ranks' P, Q and errors is that of the mean gradient, and is computed from it.
"""

from collections.abc import Sequence

import torch

from experiments.compression.real_models import Shape
from experiments.compression.sending import is_low_rank

_SEED = 0


class PowerSgd:
    """The state for parameters that lie one after the other in a flat gradient."""

    def __init__(self, shapes: Sequence[Shape], rank: int) -> None:
        self._error = torch.zeros(sum(torch.Size(shape).numel() for shape in shapes))
        generator = torch.Generator().manual_seed(_SEED)
        self._factors: list[tuple[slice, int, torch.Tensor]] = []
        start = 0
        for shape in shapes:
            size, rows = torch.Size(shape).numel(), shape[0]
            if is_low_rank(shape, rank):
                right = torch.randn(size // rows, rank, generator=generator)
                self._factors.append((slice(start, start + size), rows, right))
            start += size

    def approximate(self, gradient: torch.Tensor) -> torch.Tensor:
        """Return the mean gradient that the ranks decode; matrices become products, the rest stays as it is."""
        wanted = gradient + self._error
        decoded = wanted.clone()
        for part, rows, right in self._factors:
            matrix = wanted[part].view(rows, -1)
            left, _ = torch.linalg.qr(matrix @ right)
            torch.mm(matrix.t(), left, out=right)
            decoded[part] = (left @ right.t()).view(-1)
        torch.sub(wanted, decoded, out=self._error)
        return decoded
