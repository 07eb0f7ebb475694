"""Data parallelism over islands: gradients are summed inside of each island first, then across (Pathways, Figure 12).

Each island has a replica of the model on every device of its slice. The devices of an island sum their gradients by one
collective, of which each keeps its block. Only these blocks cross islands, from device to device: so what an island
sends is the size of the model, however many devices it has. Import it only where PyTorch is there.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from runtime.client.slices import VirtualSlice
from runtime.collectives import all_gather, reduce_scatter
from runtime.functions import function
from runtime.mapping import pmap

Tensors = Sequence[torch.Tensor]
Step = Callable[[Sequence[Sequence[Any]], Sequence[Any], Sequence[Any]], tuple[Any, list[list[Any]]]]


def replicas_on(
    model: Callable[[Tensors, torch.Tensor], torch.Tensor],
    loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    parameters: Sequence[Any],
    slices: Sequence[VirtualSlice],
    *,
    learning_rate: float,
) -> Step:
    """Return a step of gradient descent on the mean loss of a batch; call it in a ``program``.

    ``loss, parameters = step(parameters, inputs, targets)`` takes and returns parameters for each island, which are the
    same everywhere, bit by bit. Of inputs and targets it takes one array for each island: its part of the batch, as
    large as those of others, which is cut along the first axis into a block for each device.

    Args:
        model: Takes the parameters and an input; it must be able to travel (``sources``).
        loss: Takes what the model returns and the targets, and returns the mean over the examples, a scalar.
        parameters: What it starts from, for the shapes.
        slices: One for each island.
        learning_rate: Of plain gradient descent.

    Raises:
        ValueError: There are no slices or parameters, or slices are not all of one size.
    """
    sizes = [each.size for each in slices]
    if len(set(sizes)) != 1:
        raise ValueError(f"slices: expected some, of one size, got {', '.join(map(str, sizes)) or 'none'}")
    if not len(parameters):
        raise ValueError("parameters: expected some")
    count, is_collective, islands = len(parameters), sizes[0] > 1, len(slices)
    gradients = function(name="gradients", collective=is_collective)(_gradients(model, loss, count, sizes[0]))
    update = function(name="update", collective=is_collective)(
        _update(count, sizes[0], learning_rate, 1 / (islands * sizes[0]))
    )
    copies = [None] * count

    def step(
        parameters: Sequence[Sequence[Any]], inputs: Sequence[Any], targets: Sequence[Any]
    ) -> tuple[Any, list[list[Any]]]:
        if not len(parameters) == len(inputs) == len(targets) == islands:
            counts = f"{len(parameters)}, {len(inputs)} and {len(targets)}"
            raise ValueError(f"expected parameters, inputs and targets for each of {islands} islands, got {counts}")
        sums = [
            pmap(gradients, devices=devices, in_axes=[*copies, 0, 0])(*own, given, wanted)
            for devices, own, given, wanted in zip(slices, parameters, inputs, targets, strict=True)
        ]
        updated = []
        for devices, own in zip(slices, parameters, strict=True):
            run = pmap(update, devices=devices, in_axes=[*copies, *[0] * islands], out_axes=None)
            value, *after = run(*own, *sums)
            updated.append(after)
        return value, updated

    return step


def _gradients(
    model: Callable[..., torch.Tensor], loss: Callable[..., torch.Tensor], count: int, devices: int
) -> Callable[..., Any]:
    """Return loss and gradients of a device's examples: of the island's sum in a row, the device's block."""

    def gradients(*arrays: torch.Tensor) -> torch.Tensor:
        parameters = [each.detach().requires_grad_() for each in arrays[:count]]
        value = loss(model(parameters, arrays[count]), arrays[count + 1])
        found = torch.autograd.grad(value, parameters)
        row = torch.cat([value.detach().reshape(1), *[each.reshape(-1) for each in found]])
        if devices == 1:
            return row
        row = torch.nn.functional.pad(row, (0, -row.numel() % devices))
        block: torch.Tensor = reduce_scatter(row)
        return block

    return gradients


def _update(count: int, devices: int, learning_rate: float, share: float) -> Callable[..., Any]:
    """Return the update: descent on the mean, which is the ``share`` of the sums of all islands, added in one order."""

    def update(*arrays: torch.Tensor) -> Any:
        parameters, blocks = arrays[:count], arrays[count:]
        total = blocks[0]
        for block in blocks[1:]:
            total = total + block
        row = (all_gather(total) if devices > 1 else total) * share
        sizes = [each.numel() for each in parameters]
        value, *means = row[: 1 + sum(sizes)].split([1, *sizes])
        return value[0], *(
            each - learning_rate * mean.view_as(each) for each, mean in zip(parameters, means, strict=True)
        )

    return update
