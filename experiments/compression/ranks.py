"""Eight ranks in one process: the product's transmissions of all ranks, with the collectives carried out here."""

from collections.abc import Sequence
from typing import Any

import torch

from experiments.compression.star import HOSTS
from hostlib.compression.choice import Choice, low_rank
from hostlib.compression.collectives import AllGather, AllReduce, Exchange, Ranks
from hostlib.compression.lanes import Transmission
from hostlib.compression.residuals import Residuals, Section, Sections
from hostlib.compression.transmissions import Gradient, Reducer


class VirtualRanks:
    """Reduces gradients of 8 ranks, each with residuals and momentum of its own.

    Args:
        momentum: Of the momentum correction; 0: the ranks have none.
    """

    def __init__(self, momentum: float) -> None:
        self.residuals = [Residuals(momentum) for _ in range(HOSTS)]
        self._reducers = [
            Reducer(Ranks(None, rank, HOSTS, "gloo"), residuals) for rank, residuals in enumerate(self.residuals)
        ]
        self._reductions = 0

    def mean(
        self, bucket: int, gradients: Sequence[torch.Tensor], weights: torch.Tensor, choice: Choice
    ) -> torch.Tensor:
        """Return the mean of one bucket's gradients, by rank, as the first rank decodes it.

        Args:
            bucket: Its number.
            gradients: Flat; they are changed.
            weights: Of the bucket, flat.
            choice: What it is sent as.
        """
        return self._reduced(gradients, (Section(f"bucket {bucket}", len(weights)),), [weights], choice)

    def low_rank_mean(
        self, gradients: Sequence[torch.Tensor], parameters: Sequence[torch.Tensor], rank: int
    ) -> torch.Tensor:
        """Return the mean of whole gradients that are sent as low rank, likewise.

        Args:
            gradients: Flat; they are changed.
            parameters: Theirs, in order.
            rank: Of the matrices that are sent.
        """
        sections = tuple(Section(f"parameter {number}", each.numel()) for number, each in enumerate(parameters))
        return self._reduced(gradients, sections, parameters, low_rank(rank))

    def remainder(self, bucket: int, weights: torch.Tensor, choice: Choice) -> torch.Tensor:
        """Return the mean of what one bucket left out before, likewise."""
        return self.mean(bucket, [torch.zeros_like(weights) for _ in self.residuals], weights, choice).clone()

    def _reduced(
        self,
        gradients: Sequence[torch.Tensor],
        sections: Sections,
        parameters: Sequence[torch.Tensor],
        choice: Choice,
    ) -> torch.Tensor:
        transmissions = []
        for rank, (reducer, gradient) in enumerate(zip(self._reducers, gradients, strict=True)):
            self._reductions += 1
            # Any two ranks, steps and buckets have seeds that are no neighbours.
            seed = self._reductions * 0x9E3779B1 + rank
            transmissions.append(reducer.transmission(Gradient(gradient, sections, parameters, seed), choice))
        return reduced(transmissions)


def reduced(transmissions: Sequence[Transmission]) -> torch.Tensor:
    """Advance the transmissions of all ranks together; return what the first rank's has become.

    Once they need the network no more, the first alone computes on: all would compute the same.
    """
    operations = [next(transmission) for transmission in transmissions]
    while True:
        try:
            if operations[0] is None:
                next(transmissions[0])
            else:
                received = carried(operations)
                operations = [
                    transmission.send(each) for transmission, each in zip(transmissions, received, strict=True)
                ]
        except StopIteration as stop:
            mean: torch.Tensor = stop.value
            return mean


def carried(operations: Sequence[Any]) -> list[Any]:
    """Carry out one collective of all ranks; return what each receives. Raises TypeError for an unknown one."""
    match operations[0]:
        case AllReduce(tensor):
            total = tensor.clone()
            for operation in operations[1:]:
                total += operation.tensor
            for operation in operations:
                operation.tensor.copy_(total)
            return [operation.tensor for operation in operations]
        case AllGather():
            gathered = [operation.payload for operation in operations]
            return [gathered] * len(operations)
        case Exchange():
            return [[operation.parts[rank] for operation in operations] for rank in range(len(operations))]
    raise TypeError(f"no collective of 8 ranks: {operations[0]!r:.100}")
