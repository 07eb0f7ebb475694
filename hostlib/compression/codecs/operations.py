"""Selection by operations of PyTorch, for any device: what ``codecs.selection`` does by compiled loops on CPUs.

It chooses the same elements, and updates the same vectors in the same way.
"""

import torch

from hostlib.compression.codecs.errors import NonFiniteError

_LARGEST = torch.finfo(torch.float32).max


def accumulate(
    residual: torch.Tensor, gradient: torch.Tensor, count: int, velocity: torch.Tensor | None, momentum: float
) -> torch.Tensor:
    """See ``selection.accumulate``."""
    check_finite(gradient)
    if velocity is None:
        residual.add_(gradient)
    else:
        velocity.mul_(momentum).add_(gradient).clamp_(-_LARGEST, _LARGEST)
        residual.add_(velocity)
    residual.clamp_(-_LARGEST, _LARGEST)
    return _chosen(residual, count)


def largest(vector: torch.Tensor, count: int) -> torch.Tensor:
    """See ``selection.largest``."""
    check_finite(vector)
    return _chosen(vector, count)


def take(vector: torch.Tensor, indices: torch.Tensor, velocity: torch.Tensor | None) -> torch.Tensor:
    """See ``selection.take``."""
    values = vector[indices]
    vector[indices] = 0
    if velocity is not None:
        velocity[indices] = 0
    return values


def non_finite(vector: torch.Tensor, count: int) -> torch.Tensor:
    """Return the ascending indices of the first elements that are NaN or infinite, at most so many."""
    return vector.isfinite().logical_not_().nonzero().view(-1)[:count]


def check_finite(vector: torch.Tensor) -> None:
    """Raise NonFiniteError if there is NaN or an infinity."""
    if not bool(vector.isfinite().all()):
        raise NonFiniteError("gradient: there is NaN or an infinity in it")


def _chosen(vector: torch.Tensor, count: int) -> torch.Tensor:
    magnitudes = vector.abs()
    if count == 0:
        return magnitudes.nonzero().view(-1)[:0]
    threshold = torch.topk(magnitudes, count, sorted=False).values.min()
    above = (magnitudes > threshold).nonzero().view(-1)
    if not threshold:
        return above
    equal = (magnitudes == threshold).nonzero().view(-1)[: count - len(above)]
    return torch.cat((above, equal)).sort().values
