"""The communication hook of DistributedDataParallel.

Each bucket is sent as the agreed choices say, and becomes the mean over the ranks, as without a hook. What the last one
leaves out can travel during the next forward pass; it is added to the next mean of the same bucket.
"""

from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist

from hostlib.compression.choice import Precision
from hostlib.compression.collectives import Ranks
from hostlib.compression.control.cost import Bucket
from hostlib.compression.lanes import Lanes, Transmission
from hostlib.compression.residuals import Residuals, Section, Sections
from hostlib.compression.steps import Steps
from hostlib.compression.transmissions import NOT_FINITE, PRECISIONS, Gradient, Reducer


@dataclass(frozen=True, slots=True)
class _Remainder:
    """On its way: the parameters it is of, and the future of its mean."""

    sections: Sections
    mean: Any


class DdpHook:
    """Reduces the buckets of one DDP module, from now on.

    Args:
        module: A DistributedDataParallel that has no communication hook.
        ranks: In a process group on which nobody else sends.
        steps: The agreement.
        residuals: What is not sent yet.
        scaler: The ``torch.amp.GradScaler`` that scales the loss; None: none does.
    """

    def __init__(self, module: Any, ranks: Ranks, steps: Steps, residuals: Residuals, scaler: Any = None) -> None:
        self._ranks = ranks
        self._steps = steps
        self._residuals = residuals
        self._scaler = scaler
        self._reducer = Reducer(ranks, residuals)
        self._lanes = Lanes(ranks, next(module.parameters()).device)
        self._names = {id(parameter): name for name, parameter in module.module.named_parameters()}
        self._module = module
        self._remainder: _Remainder | None = None
        module.register_forward_pre_hook(lambda *_: self._begin_forward())
        module.register_forward_hook(lambda *_: steps.clock.forward_ended())
        module.register_comm_hook(self, _reduce)

    def reduce(self, bucket: Any) -> Any:
        """Begin to send a bucket; return the future of its mean."""
        beside = None
        if bucket.index() == 0:
            beside = self._steps.begin()
            if self._scaler is not None:
                self._residuals.rescale(self._scaler.get_scale())
        buffer, parameters = bucket.buffer(), bucket.parameters()
        sections = tuple(Section(self._names[id(parameter)], parameter.numel()) for parameter in parameters)
        precision = None if buffer.is_sparse else PRECISIONS.get(buffer.dtype)
        compressible = Bucket(
            buffer.numel() if precision else 0,
            self._ranks.size,
            precision or Precision.FP32,
            has_remainder=bucket.is_last() and not self._residuals.momentum,
            shapes=tuple(tuple(parameter.shape) for parameter in parameters),
        )
        gradient = Gradient(buffer, sections, parameters, self._steps.seed(self._ranks))
        sent = self._steps.next_bucket(gradient, compressible)
        transmission = self._reducer.transmission(gradient, sent.choice)
        if bucket.is_last() and self._remainder is not None:
            if self._remainder.sections == sections:
                transmission = self._with_remainder(transmission, gradient, self._remainder.mean.wait())
                self._remainder = None
            else:
                self.settle()
        return self._lanes.carry(transmission, sent.carried, beside)

    def settle(self) -> None:
        """Wait for a remainder that no bucket has been given yet, and have its mean sent again as a part of later ones.

        Every rank keeps the whole mean, so the mean of what all keep is that.
        """
        if self._remainder is not None:
            self._keep(self._remainder.sections, self._remainder.mean.wait())
            self._remainder = None

    def _begin_forward(self) -> None:
        """Begin to send a remainder, if a backward pass that reduces gradients will follow; DDP asks the same.

        With ``join``, ranks without inputs have no forward pass, so there are no remainders.
        """
        if not (torch.is_grad_enabled() and self._module.require_backward_grad_sync):
            return
        self.settle()
        if self._module._join_config.enable:
            return
        if self._scaler is not None:
            self._residuals.rescale(self._scaler.get_scale())
        sent = self._steps.next_remainder(self._ranks)
        if sent is not None:
            transmission = self._reducer.transmission(sent.gradient, sent.choice)
            self._remainder = _Remainder(sent.gradient.sections, self._lanes.carry(transmission, sent.carried))

    def _with_remainder(self, transmission: Transmission, gradient: Gradient, late: torch.Tensor) -> Transmission:
        mean = yield from transmission
        if gradient.passed_on == NOT_FINITE:  # the step will be skipped
            self._keep(gradient.sections, late)
            return mean
        return mean.add_(late)

    def _keep(self, sections: Sections, mean: torch.Tensor) -> None:
        self._residuals.held(sections, mean.device).unsent.add_(mean)


def _reduce(state: DdpHook, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """Hand over to the hook; DDP looks at the annotations of this function."""
    return state.reduce(bucket)
