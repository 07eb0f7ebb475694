"""Trains a small model with what a job in virtual time sent at each step, on 8 ranks in one process.

Each rank has its own part of every batch. The flat gradient, last parameters first as DDP has it, is cut in the same
proportions as the real model's buckets. The mean that the ranks decode updates the model once. A remainder adds to the
last bucket's mean what the step before had left out of it.
"""

import math
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import nn

from experiments.compression.outcomes import FoldCurve
from experiments.compression.ranks import VirtualRanks
from experiments.compression.real_models import RealModel
from experiments.compression.sending import StepPlan
from experiments.compression.star import HOSTS
from experiments.compression.tasks import Examples, Task
from experiments.compression.timeline import Planned

MOMENTUM = 0.9
IMAGES_PER_RANK = 16
EVALUATIONS = 20
"""How often a training is tested, at equal distances, the last time at its end."""
_TESTED_AT_ONCE = 1000
"""Of more examples, a model's layers would not stay in a core's cache."""


class FlatModel:
    """A model whose parameters are views of one vector, the last first."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.parameters = list(reversed(list(model.parameters())))
        self.weights = torch.cat([parameter.detach().reshape(-1) for parameter in self.parameters])
        for parameter, view in zip(self.parameters, self._views(self.weights), strict=True):
            parameter.data = view

    def gradient(self, examples: Examples, chosen: torch.Tensor, into: torch.Tensor) -> None:
        """Write the gradient of the mean loss of these examples."""
        into.zero_()
        for parameter, view in zip(self.parameters, self._views(into), strict=True):
            parameter.grad = view
        loss = nn.functional.cross_entropy(self.model(examples.inputs[chosen]), examples.classes[chosen])
        loss.backward()

    def correct(self, examples: Examples, chosen: torch.Tensor) -> int:
        """Return how many of these examples it gets right."""
        with torch.no_grad():
            guessed = [self.model(examples.inputs[part]).argmax(dim=1) for part in chosen.split(_TESTED_AT_ONCE)]
        return int((torch.cat(guessed) == examples.classes[chosen]).sum())

    def _views(self, flat: torch.Tensor) -> list[torch.Tensor]:
        parts = flat.split([parameter.numel() for parameter in self.parameters])
        return [part.view(parameter.shape) for part, parameter in zip(parts, self.parameters, strict=True)]


def bucket_ranges(elements: int, model: RealModel) -> list[slice]:
    """Cut so many elements in the proportions of a real model's buckets, each with one element at least."""
    starts, sent = [0], 0
    for bucket in model.buckets:
        sent += bucket.elements
        starts.append(max(round(elements * sent / model.elements), starts[-1] + 1))
    starts[-1] = elements
    return [slice(start, stop) for start, stop in pairwise(starts)]


def order_of(training: torch.Tensor, fold: int, steps: int) -> torch.Tensor:
    """Return the examples that each step and rank takes: whole epochs, each in a random order of its own."""
    generator = torch.Generator().manual_seed(fold)
    needed = steps * HOSTS * IMAGES_PER_RANK
    epochs = [training[torch.randperm(len(training), generator=generator)] for _ in range(-(-needed // len(training)))]
    return torch.cat(epochs)[:needed].view(steps, HOSTS, IMAGES_PER_RANK)


def _rank_of_all(plan: StepPlan) -> int:
    """Return the rank of a step's low rank. Raises ValueError where buckets differ, as they cut the matrices."""
    if len(set(plan)) > 1:
        raise ValueError(f"plan: low rank is of all buckets alike, got {plan}")
    return plan[0].rank


def train(task: Task, fold: int, plans: Sequence[Planned], real: RealModel, *, corrects_momentum: bool) -> FoldCurve:
    """Train on all folds but one, a step for each plan, and test on that one."""
    torch.set_num_threads(1)
    torch.manual_seed(fold)
    flat = FlatModel(task.model())
    examples = task.examples()
    is_tested = examples.folds == fold
    tested = is_tested.nonzero().view(-1)
    order = order_of((~is_tested).nonzero().view(-1), fold, len(plans))
    ranks = VirtualRanks(MOMENTUM if corrects_momentum else 0.0)
    ranges = bucket_ranges(len(flat.weights), real)
    gradients = torch.zeros(HOSTS, len(flat.weights))
    velocity = torch.zeros_like(flat.weights)
    tests = {round((number + 1) * len(plans) / EVALUATIONS): 0 for number in range(EVALUATIONS)}
    for step, (plan, remainder) in enumerate(plans):
        for rank in range(HOSTS):
            flat.gradient(examples, order[step, rank], gradients[rank])
        with torch.no_grad():
            if any(choice.rank for choice in plan):
                mean = ranks.low_rank_mean(list(gradients), flat.parameters, _rank_of_all(plan))
            else:
                last, late = len(ranges) - 1, None
                if remainder is not None:
                    late = ranks.remainder(last, flat.weights[ranges[-1]], remainder)
                mean = torch.cat(
                    [
                        ranks.mean(bucket, [gradient[part] for gradient in gradients], flat.weights[part], choice)
                        for bucket, (part, choice) in enumerate(zip(ranges, plan, strict=True))
                    ]
                )
                if late is not None:
                    mean[ranges[-1]] += late
        if not corrects_momentum:
            mean = velocity.mul_(MOMENTUM).add_(mean)
        rate = task.learning_rate * (1 + math.cos(math.pi * step / len(plans))) / 2
        flat.weights.add_(mean, alpha=-rate)
        if step + 1 in tests:
            tests[step + 1] = flat.correct(examples, tested)
    return FoldCurve(tuple(tests), tuple(tests.values()), len(tested))
