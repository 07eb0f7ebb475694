"""What a PyTorch job trains: a model in one of four parallelisms, with real or stand-in computation.

A stand-in layer sleeps for as long as a GPU would compute, so that two cores play eight GPUs. Its parameters,
gradients and activations are real, and so is all that is sent of them.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from torch.nn.parallel import DistributedDataParallel

from experiments.scenarios.real_hosts.training_plan import TrainingPlan
from experiments.scenarios.timeline import Collective, Timeline

Step = Callable[[], None]
"""Trains for one iteration."""

_FLOAT_BYTES = 4
_WIDTH = 64
"""Of activations that real layers compute."""
_ROWS = 4
"""Examples in a batch of data parallelism."""
_FORWARD = 1 / 3
"""The forward pass's share of an iteration's computation."""
_AT_ONCE_S = 0.002
"""Computations that follow each other so closely are one."""


def training(plan: TrainingPlan) -> Step:
    """Return the step of a plan, once process groups have been initialised. All ranks call it at the same time."""
    torch.manual_seed(plan.seed)
    return {"ddp": _ddp, "fsdp": _fsdp, "pipeline": _pipeline, "moe": _moe}[plan.parallelism](plan)


class Stopwatch:
    """Notes what this rank does: stand-in computations, and the collectives of DDP and of experts."""

    def __init__(self) -> None:
        self._computed: list[tuple[float, float]] = []
        self._collectives: list[Collective] = []

    def computes(self, seconds: float) -> None:
        """A stand-in computation begins."""
        begin_s = time.perf_counter()
        if self._computed and begin_s - self._computed[-1][1] < _AT_ONCE_S:
            begin_s, _ = self._computed.pop()
        self._computed.append((begin_s, time.perf_counter() + seconds))

    def sent(self, name: str, begin_s: float, size_bytes: float) -> None:
        """A collective, which has begun then, ends now."""
        self._collectives.append(Collective(name, begin_s, time.perf_counter(), size_bytes))

    def take(self, began_s: float) -> Timeline:
        """Return what was noted since the last call, as an iteration that began then."""
        computed, self._computed = self._computed, []
        collectives, self._collectives = self._collectives, []
        return Timeline(
            [(round(begin_s - began_s, 4), round(end_s - began_s, 4)) for begin_s, end_s in computed],
            [
                replace(each, begin_s=round(each.begin_s - began_s, 4), end_s=round(each.end_s - began_s, 4))
                for each in collectives
            ],
        )


STOPWATCH = Stopwatch()
"""Of this process."""


class _Sleep(torch.autograd.Function):
    """Passes its input on after the time that a GPU would take; gradients of parameters are zero."""

    @staticmethod
    def forward(ctx: Any, inputs: Any, weight: Any, forward_s: float, backward_s: float) -> Any:
        """Sleep for ``forward_s``."""
        ctx.size, ctx.backward_s = weight.shape, backward_s
        STOPWATCH.computes(forward_s)
        time.sleep(forward_s)
        return inputs.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        """Sleep for ``backward_s``."""
        STOPWATCH.computes(ctx.backward_s)
        time.sleep(ctx.backward_s)
        return gradient, gradient.new_zeros(ctx.size), None, None


class _StandInLayer(torch.nn.Module):
    """A layer that sleeps: its share of an iteration's computation."""

    def __init__(self, size: int, compute_s: float) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(size))
        self._seconds = compute_s * _FORWARD, compute_s * (1 - _FORWARD)

    def forward(self, inputs: Any) -> Any:
        """Return the input, later."""
        return _Sleep.apply(inputs, self.weight, *self._seconds)


class _Exchange(torch.autograd.Function):
    """Sends every rank its part of the input, and the parts of the gradient back."""

    @staticmethod
    def forward(_ctx: Any, inputs: Any) -> Any:
        """Return what all ranks have sent."""
        return _exchanged(inputs)

    @staticmethod
    def backward(_ctx: Any, gradient: Any) -> Any:
        """Return the gradients of what was sent."""
        return _exchanged(gradient)


class _ExpertLayer(torch.nn.Module):
    """A layer of experts, one at each rank: half of the computation is before the dispatch, half is the experts'."""

    def __init__(self, plan: TrainingPlan) -> None:
        super().__init__()
        self.before, self.expert = (_layer(plan, 1, _WIDTH, plan.layers * 2) for _ in range(2))

    def forward(self, inputs: Any) -> Any:
        """Compute, dispatch, have the experts compute, and combine."""
        return _Exchange.apply(self.expert(_Exchange.apply(self.before(inputs))))


def _layer(plan: TrainingPlan, size: int, width: int, parts: int) -> torch.nn.Module:
    """Return a layer with so many parameters, or so wide, that computes one of so many parts of an iteration."""
    if plan.is_real:
        return torch.nn.Sequential(torch.nn.Linear(width, width, bias=False), torch.nn.Tanh())
    return _StandInLayer(size, plan.compute_s / parts)


def _stack(plan: TrainingPlan) -> tuple[torch.nn.Sequential, Any]:
    """Return the layers of a model that has ``parameter_bytes``, and an input."""
    ranks = dist.get_world_size()
    size = max(1, round(plan.parameter_bytes / _FLOAT_BYTES / plan.layers / ranks)) * ranks
    width = max(1, round(size**0.5))
    layers = [_layer(plan, size, width, plan.layers) for _ in range(plan.layers)]
    return torch.nn.Sequential(*layers), torch.randn(_ROWS, width)


def _activations(plan: TrainingPlan, parts: int) -> Any:
    """Return so many equal parts that have ``activation_bytes`` altogether."""
    numbers = plan.activation_bytes / _FLOAT_BYTES / parts
    if plan.is_real:
        return torch.randn(max(1, round(numbers / _WIDTH)) * parts, _WIDTH)
    return torch.randn(parts, max(1, round(numbers)))


def _trained(model: torch.nn.Module, inputs: Any) -> Step:
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def step() -> None:
        model(inputs).sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def _ddp(plan: TrainingPlan) -> Step:
    model, inputs = _stack(plan)
    parallel = DistributedDataParallel(model, bucket_cap_mb=plan.bucket_bytes / 2**20)
    parallel.register_comm_hook(None, _reduced)
    return _trained(parallel, inputs)


def _reduced(_state: object, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """Reduce a bucket as DDP does without a hook, and note when."""
    name, gradients, begin_s = f"all-reduce {bucket.index()}", bucket.buffer(), time.perf_counter()

    def take(future: Any) -> Any:
        STOPWATCH.sent(name, begin_s, gradients.nbytes)
        return future.value()[0]

    gradients.div_(dist.get_world_size())
    return dist.all_reduce(gradients, async_op=True).get_future().then(take)


def _fsdp(plan: TrainingPlan) -> Step:
    model, inputs = _stack(plan)
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for layer in model:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return _trained(model, inputs)


def _pipeline(plan: TrainingPlan) -> Step:
    rank, ranks = dist.get_rank(), dist.get_world_size()
    module = _layer(plan, 1, _WIDTH, plan.micro_batches)
    stage = PipelineStage(module, rank, ranks, torch.device("cpu"))
    schedule = Schedule1F1B(stage, plan.micro_batches, loss_fn=torch.nn.functional.mse_loss)
    inputs = _activations(plan, plan.micro_batches)
    first = (inputs,) if rank == 0 else ()
    last = {"target": torch.zeros_like(inputs)} if rank == ranks - 1 else {}
    optimizer = torch.optim.SGD(module.parameters(), lr=1e-3)

    def step() -> None:
        schedule.step(*first, **last)
        optimizer.step()
        optimizer.zero_grad()

    return step


def _moe(plan: TrainingPlan) -> Step:
    model = torch.nn.Sequential(*(_ExpertLayer(plan) for _ in range(plan.layers)))
    return _trained(model, _activations(plan, dist.get_world_size()))


def _exchanged(sent: Any) -> Any:
    received, begin_s = torch.empty_like(sent), time.perf_counter()
    dist.all_to_all_single(received, sent.contiguous())
    STOPWATCH.sent("all-to-all", begin_s, sent.nbytes)
    return received
