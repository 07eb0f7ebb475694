"""What a PyTorch function returns, found by running it on fake tensors. Import it only where PyTorch is needed."""

from collections.abc import Callable
from typing import Any

import torch
from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException, FakeTensorMode

from runtime.arrays import ArraySpec
from runtime.collectives import Reduction, within


class _FakeGroup:
    """The first of so many shards, whose tensors have no data."""

    index = 0

    def __init__(self, size: int) -> None:
        self.size = size

    def all_reduce(self, tensor: torch.Tensor, _: Reduction) -> torch.Tensor:
        return torch.empty_like(tensor)

    def all_gather(self, tensor: torch.Tensor) -> list[torch.Tensor]:
        return [torch.empty_like(tensor) for _ in range(self.size)]


def output_specs(
    name: str, call: Callable[..., Any], inputs: tuple[ArraySpec, ...], shards: int | None
) -> tuple[ArraySpec, ...]:
    """Return what ``call`` returns for inputs of these specs, as one of so many ``shards`` if it is collective.

    Raises TypeError where it does not take such inputs, where its outputs depend on data, or are no tensors.
    """
    with FakeTensorMode():
        tensors = [torch.empty(each.shape, dtype=getattr(torch, each.dtype)) for each in inputs]
        try:
            returned = within(None if shards is None else _FakeGroup(shards), call, tensors)
        except (DataDependentOutputException, DynamicOutputShapeException) as error:
            raise TypeError(f"{name}: the shapes of its outputs depend on data, so state them: {error.func}") from None
        except Exception as error:
            taken = ", ".join(map(str, inputs))
            raise TypeError(f"{name}: cannot take ({taken}): {type(error).__name__}: {error}") from error
    outputs = returned if isinstance(returned, tuple | list) else (returned,)
    for each in outputs:
        if not isinstance(each, torch.Tensor):
            raise TypeError(f"{name}: expected it to return tensors, got {type(each).__name__}")
    return tuple(ArraySpec(tuple(each.shape), str(each.dtype).removeprefix("torch.")) for each in outputs)
