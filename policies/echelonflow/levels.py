"""Levels of formations: different ones for formations that share a link first, then for stages inside them.

A formation is a flow group, or several of one job that nothing else separates. A stage is its flows of one ideal
finish.
"""

from collections.abc import Sequence
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from policies.plan_builder import equal_classes

_SAME_OFFSET = 1e-9
"""Ideal finishes that differ by less than this share of a formation's largest offset are equal up to rounding."""


def stages(offsets_s: Sequence[float]) -> list[int]:
    """Return by flow of a formation how many different ideal finishes come before its own."""
    offsets = np.array(offsets_s, dtype=np.float64)
    order = offsets.argsort(kind="stable")
    with np.errstate(over="ignore"):
        steps = np.diff(offsets[order]) > _SAME_OFFSET * np.abs(offsets).max(initial=0.0)
    numbers = np.zeros(len(offsets), dtype=np.int64)
    numbers[order[1:]] = np.cumsum(steps)
    found: list[int] = numbers.tolist()
    return found


def layers(links: Sequence[npt.NDArray[np.int32]], counts: npt.NDArray[np.bool_]) -> list[int]:
    """Return the layer of every formation: the first one after those of earlier formations that share a link with it.

    Formations of one layer share no link.

    Args:
        links: The links of each formation, most urgent formation first.
        counts: By link, whether levels have an effect there.
    """
    first_free = np.zeros(len(counts), dtype=np.int64)
    found = []
    for of_one in links:
        used = of_one[counts[of_one]]
        layer = int(first_free[used].max(initial=0))
        first_free[used] = layer + 1
        found.append(layer)
    return found


def levels(layers: Sequence[int], stages: Sequence[Sequence[int]], num_levels: int) -> list[list[int]]:
    """Return the level of every flow of every formation.

    The levels of a layer are above those of the next one, and inside a layer those of early stages are above those of
    late ones. With fewer layers than levels, spare levels go to the layers with most stages. With more, neighbouring
    layers share a level.

    Args:
        layers: By formation.
        stages: By formation, and by flow in it.
        num_levels: How many levels there are.
    """
    num_stages = [max(found, default=0) + 1 for found in stages]
    num_layers = max(layers, default=-1) + 1
    most = [0] * num_layers
    for layer, number in zip(layers, num_stages, strict=True):
        most[layer] = max(most[layer], number)
    if num_layers < num_levels:
        sizes = levels_by_layer(most, num_levels)
        tops = [num_levels - 1 - above for above in accumulate(sizes, initial=0)]
    else:
        sizes, tops = [1] * num_layers, equal_classes(num_layers, num_levels)
    return [
        [tops[layer] - stage * min(sizes[layer], number) // number for stage in found]
        for layer, found, number in zip(layers, stages, num_stages, strict=True)
    ]


def levels_by_layer(num_stages: Sequence[int], num_levels: int) -> list[int]:
    """Return how many levels each layer gets, where there are fewer layers than levels.

    Each layer gets one level. The layer with most stages for a level gets the next one, the first of those that tie. No
    layer gets more levels than it has stages.
    """
    sizes = [1] * len(num_stages)
    for _ in range(num_levels - len(num_stages)):
        wanting = [layer for layer, (stages, size) in enumerate(zip(num_stages, sizes, strict=True)) if stages > size]
        if not wanting:
            break
        sizes[max(wanting, key=lambda layer: num_stages[layer] / sizes[layer])] += 1
    return sizes
