"""The communication hook of DistributedDataParallel.

Each bucket is sent as the agreed choices say, and becomes the mean over the ranks, as without a hook.
"""

from typing import Any

import torch
import torch.distributed as dist

from hostlib.compression.choice import Precision
from hostlib.compression.collectives import Ranks
from hostlib.compression.control.cost import Bucket
from hostlib.compression.lanes import Lanes
from hostlib.compression.residuals import Residuals, Section
from hostlib.compression.steps import Steps
from hostlib.compression.transmissions import PRECISIONS, Gradient, Reducer


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
        compressible = Bucket(buffer.numel() if precision else 0, self._ranks.size, precision or Precision.FP32)
        gradient = Gradient(buffer, sections, parameters, self._steps.seed(self._ranks))
        sent = self._steps.next_bucket(gradient, compressible)
        return self._lanes.carry(self._reducer.transmission(gradient, sent.choice), sent.carried, beside)


def _reduce(state: DdpHook, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """Hand over to the hook; DDP looks at the annotations of this function."""
    return state.reduce(bucket)
