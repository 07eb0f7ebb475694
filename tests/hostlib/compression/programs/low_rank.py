"""Low rank beside PyTorch's PowerSGD hook, from the same start vectors."""

from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as power_sgd
from torch.nn.parallel import DistributedDataParallel

from hostlib.compression import BudgetSettings
from hostlib.compression.choice import low_rank
from hostlib.compression.factoring import WarmStarts
from hostlib.compression.netsense import NetSense
from hostlib.compression.shapes import is_low_rank
from tests.hostlib.compression.programs.training import batches, digest, fixed, loss_of, perceptron

_CAP_MB = 0.01
_THEIR_CAP_MB = 25
"""One bucket: PyTorch's hook waits in gloo's two threads, and two buckets wait there for ever."""
_FIRST = 2
"""Steps until DDP's buckets are known to both, which are dense."""
_STEPS = 12


class _Hook:
    """PyTorch's hook, which finds our start vectors where it keeps those of the step before."""

    def __init__(self, ddp: DistributedDataParallel, rank: int) -> None:
        self.state = power_sgd.PowerSGDState(
            process_group=None, matrix_approximation_rank=rank, start_powerSGD_iter=_FIRST
        )
        self._names = {id(parameter): name for name, parameter in ddp.module.named_parameters()}
        self._rank = rank
        self.layout: dict[int, list[tuple[str, torch.Tensor]]] = {}
        ddp.register_comm_hook(self, _reduce)

    def begin(self, bucket: Any) -> None:
        index, rank = bucket.index(), self._rank
        self.layout[index] = [(self._names[id(each)], each) for each in bucket.parameters()]
        if self.state.iter < _FIRST or index in self.state.p_memory_dict:
            return
        factored = [each for each in self.layout[index] if is_low_rank(tuple(each[1].shape), rank)]
        starts = [
            WarmStarts().of(name, each[0].numel(), rank, torch.device("cpu")).t().reshape(-1) for name, each in factored
        ]
        self.state.p_memory_dict[index] = torch.zeros(rank * sum(len(each) for _, each in factored))
        self.state.q_memory_dict[index] = torch.cat(starts)

    def errors(self) -> dict[str, torch.Tensor]:
        """By parameter."""
        found = {}
        for index, error in self.state.error_dict.items():
            parts = error.split([each.numel() for _, each in self.layout[index]])
            found |= {name: part for (name, _), part in zip(self.layout[index], parts, strict=True)}
        return found


def _reduce(hook: _Hook, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    hook.begin(bucket)
    return power_sgd.powerSGD_hook(hook.state, bucket)


def beside_pytorch(rank: int, size: int) -> Any:
    """Train with both; return how far gradients, weights and what is left are from each other, over the largest."""
    found = {}
    for low in (1, 2, 4):
        models = [DistributedDataParallel(perceptron(), bucket_cap_mb=cap_mb) for cap_mb in (_THEIR_CAP_MB, _CAP_MB)]
        theirs, net = _Hook(models[0], low), NetSense(fixed(low_rank(low)))
        net.attach(models[1])
        optimizers = [torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9) for model in models]
        differences, ratios = [], []
        for batch in batches(rank, _STEPS):
            for model, optimizer in zip(models, optimizers, strict=True):
                optimizer.zero_grad()
                loss_of(model, batch).backward()
            gradients = [torch.cat([each.grad.view(-1) for each in model.parameters()]) for model in models]
            differences.append(_difference(gradients[1], gradients[0]))
            ratios.append(net.stats().ratio)
            for optimizer in optimizers:
                optimizer.step()
        errors, unsent = theirs.errors(), net.state_dict()["unsent"]
        left = []
        for name in sorted(errors):
            both = torch.stack([errors[name], unsent[name].view_as(errors[name])])
            dist.all_reduce(both)
            left.append(both / size)
        them, us = torch.cat(left, dim=1)
        found[str(low)] = {
            "gradients": differences,
            "ratios": ratios,
            "weights": max(
                _difference(ours.detach(), other.detach())
                for ours, other in zip(models[1].parameters(), models[0].parameters(), strict=True)
            ),
            "left": _difference(us, them),
            "norm": float(us.norm()),
            "own norm": float(torch.cat(list(unsent.values())).norm()),
            "their norm": float(torch.cat(list(errors.values())).norm()),
        }
    return found


def chosen(rank: int, size: int) -> Any:
    """Train under ``budget`` with ranks to choose from, and a rate at which nothing else fits; return all choices."""
    del size
    ddp = DistributedDataParallel(perceptron(256), bucket_cap_mb=_CAP_MB)
    net = NetSense(budget=BudgetSettings(lowest_ratio=0.5, start_ratio=0.5, low_rank=(4, 2, 1)))
    net.attach(ddp)
    net.direct(rate_bps=1e6 * (rank + 1), slack_s=None)
    choices, losses = [], []
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.05)
    for batch in batches(rank, 30):
        optimizer.zero_grad()
        loss = loss_of(ddp, batch)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        choices.append([(each.rank, each.ratio, each.precision, each.collective) for each in net.stats().buckets])
    return {
        "choices": choices,
        "losses": losses,
        "reason": net.stats().reason,
        "digest": digest(ddp.parameters()),
    }


def all_of_it(rank: int, size: int) -> Any:
    """Run both in one job."""
    return {function.__name__: function(rank, size) for function in (beside_pytorch, chosen)}


def _difference(one: torch.Tensor, other: torch.Tensor) -> float:
    return float((one - other).abs().max() / other.abs().max())
