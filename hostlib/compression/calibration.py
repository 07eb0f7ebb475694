"""What encoding and decoding cost on this machine, measured once when a job starts."""

import math
import time
from collections.abc import Callable
from functools import partial

import torch

from hostlib.compression.choice import Precision
from hostlib.compression.codecs import dense, sparse
from hostlib.compression.collectives import AllGather, Ranks, synchronize
from hostlib.compression.control.cost import Linear, MeasuredCosts
from hostlib.compression.factoring import Factoring, WarmStarts
from hostlib.compression.residuals import Held, Section

_SMALL, _LARGE = 1 << 14, 1 << 20
_FEW, _MANY = 100, 10
"""One of so many elements is selected."""
_MATRIX = 1 << 18
_LOW, _HIGH = 1, 4
"""Elements and ranks of the square matrices that are factored."""
_REPETITIONS = 5
_WITHIN_S = 0.15
"""What is not measured by then has been measured once."""

_now_s = time.perf_counter


def measured_costs(ranks: Ranks, device: torch.device, *, has_low_rank: bool = False) -> MeasuredCosts:
    """Return this rank's costs, each the best of a few; all ranks call it, as they measure a hop together.

    Codecs take at most about 0.2 s. Low rank is measured only where it may be chosen.
    """
    clock = _Clock(device, _now_s() + _WITHIN_S)
    sizes = [(_SMALL, _SMALL // _FEW), (_LARGE, _LARGE // _FEW), (_LARGE, _LARGE // _MANY)]
    select, scatter = [], []
    for elements, count in sizes:
        gradient = torch.linspace(-1, 1, elements, device=device).pow_(3)
        residual = torch.zeros_like(gradient)
        payload = sparse.encode(residual, count, Precision.FP16, gradient=gradient)
        select.append(clock.best_s(partial(sparse.encode, residual, count, Precision.FP16, gradient=gradient)))
        scatter.append(clock.best_s(partial(_receive, payload, residual)))
    vectors = [torch.ones(elements, device=device) for elements in (_SMALL, _LARGE)]
    convert = [clock.best_s(partial(vector.to, torch.float16)) for vector in vectors]
    quantise = [clock.best_s(partial(dense.encode, vector, Precision.INT8)) for vector in vectors]
    return MeasuredCosts(
        linear(sizes, select),
        linear(sizes, scatter),
        linear(sizes[:2], convert),
        _hop_s(ranks, device),
        linear(sizes[:2], quantise),
        _factor_cost(device) if has_low_rank else Linear(),
    )


def _factor_cost(device: torch.device) -> Linear:
    """Return what a third of low rank's work takes, by matrices, their elements, and multiply-adds of a product."""
    sizes = [(_SMALL, _SMALL * _LOW), (_MATRIX, _MATRIX * _LOW), (_MATRIX, _MATRIX * _HIGH)]
    matrices = [torch.ones(elements, device=device) for elements, _ in sizes]
    _factor(matrices[0], _LOW)  # the first one loads libraries
    clock = _Clock(device, _now_s() + _WITHIN_S)
    times_s = [
        clock.best_s(partial(_factor, matrix, products // elements)) / 3
        for matrix, (elements, products) in zip(matrices, sizes, strict=True)
    ]
    return linear(sizes, times_s)


def slowest(costs: list[MeasuredCosts]) -> MeasuredCosts:
    """Return for each number that of the rank on which it is the largest."""

    def most(choose: Callable[[MeasuredCosts], Linear]) -> Linear:
        each = [choose(cost) for cost in costs]
        return Linear(
            max(one.fixed_s for one in each), max(one.element_s for one in each), max(one.value_s for one in each)
        )

    return MeasuredCosts(
        most(lambda cost: cost.select),
        most(lambda cost: cost.scatter),
        most(lambda cost: cost.convert),
        max(cost.hop_s for cost in costs),
        most(lambda cost: cost.quantise),
        most(lambda cost: cost.factor),
    )


def _receive(payload: torch.Tensor, into: torch.Tensor) -> None:
    """Do what is done with a bucket when its payloads have come."""
    sparse.decode_add(payload, into.zero_())
    into.mul_(0.5)


def _factor(gradient: torch.Tensor, rank: int) -> None:
    """Do all that low rank computes for one square matrix, as if there were one rank."""
    rows = math.isqrt(gradient.numel())
    section, held = Section("matrix", gradient.numel()), Held(torch.zeros_like(gradient), None)
    factoring = Factoring(gradient, [(section, (rows, rows))], held, 0.0, rank, WarmStarts())
    factoring.settle(factoring.right(factoring.left()))
    factoring.decode(factoring.others(), gradient)


def linear(sizes: list[tuple[int, int]], times_s: list[float]) -> Linear:
    """Return the costs that give these times, none of them negative.

    Args:
        sizes: Elements and values: of few elements, of many, and where values count, of as many with more values. The
            first two have the same share of values.
        times_s: In seconds, one for each.
    """
    (few, _), (many, values) = sizes[:2]
    value_s = max(0.0, times_s[2] - times_s[1]) / (sizes[2][1] - values) if len(sizes) > 2 else 0.0
    both_s = max(0.0, times_s[1] - times_s[0]) / (many - few)
    element_s = max(0.0, both_s - value_s * values / many)
    return Linear(max(0.0, times_s[0] - few * both_s), element_s, value_s)


class _Clock:
    def __init__(self, device: torch.device, until_s: float) -> None:
        self._mark = torch.zeros(1, device=device)
        self._until_s = until_s

    def best_s(self, run: Callable[[], object]) -> float:
        best_s = float("inf")
        for repetition in range(_REPETITIONS):
            if repetition and _now_s() > self._until_s:
                break
            synchronize(self._mark)
            begin_s = _now_s()
            run()
            synchronize(self._mark)
            best_s = min(best_s, _now_s() - begin_s)
        return best_s


def _hop_s(ranks: Ranks, device: torch.device) -> float:
    message = AllGather(torch.zeros(1, dtype=torch.uint8, device=device))
    best_s = float("inf")
    for _ in range(_REPETITIONS):
        begin_s = _now_s()
        message.run(ranks)
        best_s = min(best_s, _now_s() - begin_s)
    return best_s / max(1, ranks.size - 1)
