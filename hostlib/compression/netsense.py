"""Gradient compression that fits the network, in one line of a training script.

    model = DistributedDataParallel(model)
    NetSense().attach(model)
"""

from collections.abc import Mapping
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from hostlib.compression.collectives import Ranks
from hostlib.compression.ddp import DdpHook
from hostlib.compression.residuals import Residuals
from hostlib.compression.sensing import OpenedConnections
from hostlib.compression.steps import Controllers, Steps


class NetSense:
    def __init__(self, mode: str | Controllers = "budget", *, momentum: float = 0.0) -> None:
        self._controllers = mode
        self._residuals = Residuals(momentum)

    def attach(self, model: Any, scaler: Any = None) -> None:
        group = model.process_group
        opened = OpenedConnections()
        own = dist.new_group(dist.get_process_group_ranks(group), use_local_synchronization=True)
        dist.barrier(group=own)
        ranks = Ranks.of(own)
        self._steps = Steps(self._controllers, opened.sockets())
        self._hook = DdpHook(model, ranks, self._steps, self._residuals, scaler)
