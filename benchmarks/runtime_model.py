"""A small transformer that is trained with data parallelism, for Table 1 of ``benchmarks/runtime_peers.py``."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
import torch.nn.functional as nn

VOCABULARY, LENGTH, WIDTH, HEADS, BATCH = 64, 64, 64, 4, 16
LEARNING_RATE = 0.1

Array = np.ndarray[Any, Any]


def initial_parameters() -> list[Array]:
    """Return embedding, positions, four matrices of a block, and the head."""
    numbers = np.random.default_rng(0)
    shapes = [(VOCABULARY, WIDTH), (LENGTH, WIDTH), (WIDTH, 3 * WIDTH), (WIDTH, WIDTH), (WIDTH, 4 * WIDTH)]
    shapes += [(4 * WIDTH, WIDTH), (WIDTH, VOCABULARY)]
    return [(numbers.standard_normal(shape) / math.sqrt(shape[0])).astype(np.float32) for shape in shapes]


def batches(size: int, steps: int) -> Iterator[tuple[Array, Array]]:
    """Yield inputs and targets of so many ranks together, for so many steps."""
    numbers = np.random.default_rng(1)
    for _ in range(steps):
        tokens = (numbers.integers(VOCABULARY, size=(size * BATCH, 1)) + np.arange(LENGTH + 1)) % VOCABULARY
        yield tokens[:, :-1].copy(), tokens[:, 1:].copy()


def training_step(mean: Callable[[torch.Tensor], torch.Tensor], *arrays: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Return the loss and the new parameters, from parameters, inputs and targets; ``mean`` is over the ranks."""
    parameters = [each.detach().requires_grad_() for each in arrays[:-2]]
    tokens, targets = arrays[-2:]
    loss = nn.cross_entropy(_scores(parameters, tokens).reshape(-1, VOCABULARY), targets.reshape(-1))
    gradients = torch.autograd.grad(loss, parameters)
    together = mean(torch.cat([loss.detach().reshape(1), *(each.reshape(-1) for each in gradients)]))
    updated, offset = [], 1
    for parameter in parameters:
        gradient = together[offset : offset + parameter.numel()].view(parameter.shape)
        updated.append(parameter.detach() - LEARNING_RATE * gradient)
        offset += parameter.numel()
    return together[:1], *updated


def _scores(parameters: list[torch.Tensor], tokens: torch.Tensor) -> torch.Tensor:
    embedding, position, into, out, up, down, head = parameters
    x = embedding[tokens] + position
    batch, length, width = x.shape
    normed = nn.layer_norm(x, (width,))
    query, key, value = (normed @ into).view(batch, length, 3, HEADS, width // HEADS).permute(2, 0, 3, 1, 4)
    attended = nn.scaled_dot_product_attention(query, key, value, is_causal=True)
    x = x + attended.transpose(1, 2).reshape(batch, length, width) @ out
    x = x + nn.gelu(nn.layer_norm(x, (width,)) @ up) @ down
    return nn.layer_norm(x, (width,)) @ head
