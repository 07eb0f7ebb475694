"""The stand-in is to DDP what the real model's shapes are to virtual time: the same buckets, as late."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from experiments.compression.real.stand_in import stand_in, step
from experiments.compression.real_models import MODELS, RESNET18
from experiments.compression.timeline import FORWARD_SHARE

COMPUTE_S = 0.3
_REBUILT_STEPS = 3


@pytest.fixture(autouse=True)
def _one_rank(tmp_path: Path) -> Iterator[None]:
    dist.init_process_group("gloo", store=dist.FileStore(str(tmp_path / "store"), 1), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


class _Watched:
    """Notes the buckets that DDP hands over in the last step, and when."""

    def __init__(self, model: str, compute_s: float) -> None:
        self.elements: list[int] = []
        self.ready_s: list[float] = []
        self._parallel = DistributedDataParallel(stand_in(MODELS[model], compute_s))
        self._parallel.register_comm_hook(None, self._handed_over)
        for _ in range(_REBUILT_STEPS):
            self.elements, self.ready_s, self._began_s = [], [], time.perf_counter()
            step(self._parallel)
        self.step_s = time.perf_counter() - self._began_s

    def _handed_over(self, _state: Any, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
        self.elements.append(bucket.buffer().numel())
        self.ready_s.append(time.perf_counter() - self._began_s)
        future: torch.futures.Future[torch.Tensor] = torch.futures.Future()
        future.set_result(bucket.buffer())
        return future


def test_ddp_makes_the_buckets_of_virtual_time() -> None:
    assert _Watched("ResNet18", 0.0).elements == [bucket.elements for bucket in RESNET18.buckets]


def test_buckets_are_ready_no_earlier_than_in_virtual_time() -> None:
    watched = _Watched("ResNet18", COMPUTE_S)
    backward_at_s, backward_s = FORWARD_SHARE * COMPUTE_S, (1 - FORWARD_SHARE) * COMPUTE_S
    for ready_s, bucket in zip(watched.ready_s, RESNET18.buckets, strict=True):
        assert ready_s >= backward_at_s + bucket.ready_share * backward_s
    assert watched.ready_s[0] < watched.ready_s[-1] - 0.2 * backward_s, "they do not all wait for the last layer"


def test_gradients_are_those_of_each_rank() -> None:
    torch.manual_seed(1)
    first = stand_in(RESNET18, 0.0)
    first(torch.zeros(1, requires_grad=True)).sum().backward()
    gradients = torch.cat([parameter.grad.flatten() for parameter in first.parameters() if parameter.grad is not None])
    assert gradients.numel() == RESNET18.elements
    assert gradients.std().item() == pytest.approx(1, abs=0.01)
