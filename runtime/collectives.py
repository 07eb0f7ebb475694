"""Collectives inside functions: what the shards of one call do together.

A function that uses them is made with ``function(collective=True)``. All shards of a call must use the same collectives
in the same order, on arrays of the same shape. ::

    @rt.function(collective=True)
    def step(x, parameters):
        return rt.all_reduce(gradient(x, parameters)) / rt.num_shards()
"""

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, Literal, Protocol, TypeVar

T = TypeVar("T")

Reduction = Literal["sum", "product", "min", "max"]


class Group(Protocol):
    """The shards of a call, as one of them sees them."""

    @property
    def index(self) -> int: ...  # noqa: D102
    @property
    def size(self) -> int: ...  # noqa: D102
    def all_reduce(self, tensor: Any, reduction: Reduction) -> Any: ...  # noqa: D102
    def all_gather(self, tensor: Any) -> list[Any]: ...  # noqa: D102


_group: ContextVar[Group | None] = ContextVar("runtime_group", default=None)


def within(group: Group | None, call: Callable[..., T], inputs: Sequence[Any]) -> T:
    """Call a function for which the functions of this module mean ``group``."""
    token = _group.set(group)
    try:
        return call(*inputs)
    finally:
        _group.reset(token)


def shard_index() -> int:
    """Return the number of this shard, from 0. While shapes are found out it is 0."""
    return _present().index


def num_shards() -> int:
    """Return how many shards the call has."""
    return _present().size


def all_reduce(tensor: Any, reduction: Reduction = "sum") -> Any:
    """Return the sum, or another reduction, of the tensors of all shards. The argument stays as it is.

    Raises ValueError for a reduction that does not exist.
    """
    if reduction not in ("sum", "product", "min", "max"):
        raise ValueError(f"reduction: expected sum, product, min or max, got {reduction!r:.50}")
    return _present().all_reduce(tensor, reduction)


def all_gather(tensor: Any, axis: int = 0) -> Any:
    """Return the tensors of all shards, joined along an axis in the order of the shards."""
    import torch

    return torch.cat(_present().all_gather(tensor), dim=axis)


def reduce_scatter(tensor: Any, axis: int = 0) -> Any:
    """Return this shard's block of the sum of all shards' tensors, cut along an axis.

    Raises ValueError where the axis cannot be cut into equal blocks.
    """
    group = _present()
    if tensor.shape[axis] % group.size:
        raise ValueError(f"axis {axis} of {tuple(tensor.shape)} cannot be cut into {group.size} equal blocks")
    block = tensor.shape[axis] // group.size
    return group.all_reduce(tensor, "sum").narrow(axis, group.index * block, block)


def _present() -> Group:
    group = _group.get()
    if group is None:
        raise TypeError("collectives work inside functions that are made with function(collective=True)")
    return group
