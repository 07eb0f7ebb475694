"""Levels of flows in formation: first between formations that meet on a link, then inside them.

A formation is a flow group, or several of one job that nothing else tells apart.
"""

from collections.abc import Sequence
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from policies.plan_builder import equal_classes

_SAME_OFFSET = 1e-9
"""Ideal finishes that differ by less than this share of a formation's largest offset are one: the rest is rounding."""


def stages(offsets_s: Sequence[float]) -> list[int]:
    """By flow of a formation, how many different ideal finishes come before its own."""
    offsets = np.array(offsets_s, dtype=np.float64)
    order = offsets.argsort(kind="stable")
    with np.errstate(over="ignore"):
        steps = np.diff(offsets[order]) > _SAME_OFFSET * np.abs(offsets).max(initial=0.0)
    numbers = np.zeros(len(offsets), dtype=np.int64)
    numbers[order[1:]] = np.cumsum(steps)
    found: list[int] = numbers.tolist()
    return found


def layers(links: Sequence[npt.NDArray[np.int32]], counts: npt.NDArray[np.bool_]) -> list[int]:
    """Layer of every formation, most urgent first: one behind the last of those before it that use one of its links.

    Formations of one layer never meet. ``counts``: on which links a level tells anything.
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
    """Level of every flow of every formation: a layer's are above the next one's, an early stage's above a late one's.

    With fewer layers than levels, those to spare go to the layers with most stages; with more, neighbouring layers
    share one.
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
