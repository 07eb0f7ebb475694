"""One gradient as products of thin matrices: PowerSGD (Vogels et al. 2019, Algorithms 1 and 2).

Each matrix M of a rank's gradient, with what was not sent before, becomes P = M Q with the orthonormal Q of the step
before. All ranks' P are added up and made orthonormal; then Q = M^T P, and all ranks' Q are added up. Their mean gives
P Q^T, which every rank has. What a rank keeps is M less the product with its own Q, as in Algorithm 2. PyTorch's hook
keeps M less the product with the mean of all Q, so what ranks keep drifts apart there; its mean is the same in both.

P and Q are kept transposed, one row for each column: products with M are several times quicker so on CPUs.
"""

import binascii
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch

from hostlib.compression.encoding import is_finite
from hostlib.compression.residuals import Held, Section
from hostlib.compression.shapes import Shape, is_low_rank


class WarmStarts:
    """Q of the last step, by parameter and rank; at first random, from the parameter's name.

    It is the same on all ranks, as all add up the same. So it is in no checkpoint: a rank that had another one would
    send what nobody can use.
    """

    def __init__(self) -> None:
        self._last: dict[tuple[str, int], torch.Tensor] = {}

    def of(self, name: str, columns: int, rank: int, device: torch.device) -> torch.Tensor:
        """Return Q of a parameter, rank x columns."""
        last = self._last.get((name, rank))
        if last is not None and last.shape[1] == columns:
            return last.to(device)
        generator = torch.Generator().manual_seed(binascii.crc32(name.encode()))
        return torch.randn(rank, columns, generator=generator).to(device)

    def keep(self, name: str, right: torch.Tensor) -> None:
        """Keep the mean of all ranks' Q of a parameter for the next step of the same rank."""
        self._last[name, len(right)] = right


@dataclass(frozen=True, slots=True)
class _Matrix:
    """A parameter that is factored: its name, its part of the flat gradient, and of that the rows and columns."""

    name: str
    part: slice
    rows: int
    columns: int

    def of(self, flat: torch.Tensor) -> torch.Tensor:
        return flat[self.part].view(self.rows, self.columns)


class Factoring:
    """Factors one gradient, step by step in the order of the methods. What is not sent stays in the residual.

    A gradient that is not finite changes nothing, and its P is NaN.

    Args:
        gradient: Flat, of any floating type. It is not changed.
        parameters: Its sections and their shapes, in order.
        held: What was not sent before, of the same elements.
        momentum: Of the momentum correction.
        rank: Columns of P and Q.
        starts: Of this process.
    """

    def __init__(
        self,
        gradient: torch.Tensor,
        parameters: Iterable[tuple[Section, Shape]],
        held: Held,
        momentum: float,
        rank: int,
        starts: WarmStarts,
    ) -> None:
        self._held = held
        self._rank = rank
        self._starts = starts
        self._most = torch.finfo(gradient.dtype).max
        self._matrices: list[_Matrix] = []
        self._others: list[slice] = []
        begin = 0
        for section, shape in parameters:
            part = slice(begin, begin + section.size)
            begin = part.stop
            if is_low_rank(shape, rank):
                self._matrices.append(_Matrix(section.name, part, shape[0], section.size // shape[0]))
            else:
                self._others.append(part)
        self._lefts: list[torch.Tensor] = []
        self._rights: list[torch.Tensor] = []
        self._velocity_before = None if held.velocity is None else held.velocity.clone()
        self._added: torch.Tensor | None = None
        if is_finite(gradient):
            self._added = gradient if held.velocity is None else held.velocity.mul_(momentum).add_(gradient)
            held.unsent.add_(self._added)

    def left(self) -> torch.Tensor:
        """Return this rank's P of all matrices, flat."""
        if self._added is None:
            count = self._rank * sum(matrix.rows for matrix in self._matrices)
            return self._held.unsent.new_full((count,), math.nan)
        return _flat([orthonormal(self._start(matrix)) @ matrix.of(self._held.unsent).t() for matrix in self._matrices])

    def others(self) -> torch.Tensor:
        """Return all that is not factored, flat and in fp32, as far as it is in the range of the gradient's type."""
        empty = self._held.unsent[:0]
        return torch.cat([empty, *(self._held.unsent[part] for part in self._others)]).clamp_(-self._most, self._most)

    def right(self, left: torch.Tensor) -> torch.Tensor:
        """Return this rank's Q of all matrices, flat.

        Args:
            left: The sum of all ranks' P.
        """
        parts = left.split([self._rank * matrix.rows for matrix in self._matrices])
        self._lefts = [orthonormal(part.view(self._rank, -1)) for part in parts]
        self._rights = [
            left @ matrix.of(self._held.unsent) for matrix, left in zip(self._matrices, self._lefts, strict=True)
        ]
        return _flat(self._rights)

    def settle(self, right: torch.Tensor) -> None:
        """Keep what this rank has not sent, and what the next step begins with.

        Args:
            right: The mean of all ranks' Q.
        """
        for part in self._others:
            unsent = self._held.unsent[part]
            unsent.sub_(unsent.clamp(-self._most, self._most))
        for matrix, left, own in zip(self._matrices, self._lefts, self._rights, strict=True):
            matrix.of(self._held.unsent).addmm_(left.t(), own, alpha=-1)
        self._rights = list(_columns(right, self._matrices, self._rank))
        for matrix, mean in zip(self._matrices, self._rights, strict=True):
            self._starts.keep(matrix.name, mean)

    def decode(self, others: torch.Tensor, into: torch.Tensor) -> torch.Tensor:
        """Write the mean gradient of all ranks, and return it.

        Args:
            others: The mean of what is not factored.
            into: Flat, of the gradient's type.
        """
        parts = others.split([part.stop - part.start for part in self._others])
        for part, mean in zip(self._others, parts, strict=True):
            into[part] = mean
        for matrix, left, right in zip(self._matrices, self._lefts, self._rights, strict=True):
            into[matrix.part] = (left.t() @ right).view(-1)
        return into

    def take_back(self) -> None:
        """Have the residual as if the gradient had never been factored, but for rounding."""
        if self._added is None:
            return
        self._held.unsent.sub_(self._added)
        if self._held.velocity is not None and self._velocity_before is not None:
            self._held.velocity.copy_(self._velocity_before)

    def _start(self, matrix: _Matrix) -> torch.Tensor:
        return self._starts.of(matrix.name, matrix.columns, self._rank, self._held.unsent.device)


def orthonormal(matrix: torch.Tensor) -> torch.Tensor:
    """Return orthonormal rows that span those of a wide matrix, and any others where these are dependent."""
    return torch.linalg.qr(matrix.t()).Q.t().contiguous()


def _flat(matrices: Sequence[torch.Tensor]) -> torch.Tensor:
    return torch.cat([matrix.reshape(-1) for matrix in matrices])


def _columns(flat: torch.Tensor, matrices: Sequence[_Matrix], rank: int) -> Sequence[torch.Tensor]:
    return [part.view(rank, -1) for part in flat.split([rank * matrix.columns for matrix in matrices])]
