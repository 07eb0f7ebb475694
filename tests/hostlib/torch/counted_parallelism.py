"""Program of one of two ranks: counts collectives of every parallelism, by the recorder and by PyTorch's debug mode."""

from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from torch.distributed.tensor.debug import CommDebugMode
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel

from hostlib.torch.events import Issue
from hostlib.torch.recorder import Recorder

_OPERATIONS = {
    "all_reduce": "allreduce_",
    "all_gather_into_tensor": "allgather_into_tensor_coalesced_",
    "reduce_scatter_tensor": "reduce_scatter_tensor_coalesced_",
    "all_to_all_single": "alltoall_base_",
    "broadcast": "broadcast_",
}
"""What the debug mode calls functional collectives, as operations of c10d."""
_NOT_COUNTED = ("1F1B", "compiled")
"""Which PyTorch does not run in its debug mode."""
_WIDTH, _MICRO_BATCHES = 8, 4


def main(rank: int) -> dict[str, Any]:
    """Return for each parallelism what the recorder has seen and what the debug mode has counted."""
    torch.manual_seed(1)
    recorder = Recorder()
    mesh = init_device_mesh("cpu", (2,))
    results = {}
    for name, prepare in _CASES.items():
        run = prepare(rank, mesh)
        for _ in range(2):  # what is set up at first is not counted
            run()
        recorder.take()
        counting = CommDebugMode()
        with nullcontext() if name in _NOT_COUNTED else counting:
            run()
        events = recorder.take()
        seen = Counter(event.operation for event in events if isinstance(event, Issue))
        counted: Counter[str] = Counter()
        for operation, count in counting.get_comm_counts().items():
            plain = str(operation).split(".")[-1]
            counted[_OPERATIONS.get(plain, plain)] += count
        results[name] = {"seen": seen, "counted": counted}
    assert recorder.failure is None
    recorder.close()
    return results


def _model() -> torch.nn.Sequential:
    return torch.nn.Sequential(torch.nn.Linear(_WIDTH, _WIDTH), torch.nn.ReLU(), torch.nn.Linear(_WIDTH, _WIDTH))


def _training(model: torch.nn.Module) -> Callable[[], object]:
    def run() -> None:
        model(torch.randn(4, _WIDTH)).sum().backward()

    return run


def _ddp(_rank: int, _mesh: DeviceMesh) -> Callable[[], object]:
    return _training(DistributedDataParallel(_model(), bucket_cap_mb=0.0001))


def _fsdp(_rank: int, mesh: DeviceMesh) -> Callable[[], object]:
    model = _model()
    for layer in (model[0], model[2], model):
        fully_shard(layer, mesh=mesh)
    return _training(model)


def _tensor(_rank: int, mesh: DeviceMesh) -> Callable[[], object]:
    return _training(parallelize_module(_model(), mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()}))


def _pipeline(rank: int, mesh: DeviceMesh) -> Callable[[], object]:
    stage = PipelineStage(torch.nn.Linear(_WIDTH, _WIDTH), rank, 2, torch.device("cpu"), group=mesh.get_group())
    schedule = Schedule1F1B(stage, _MICRO_BATCHES, loss_fn=lambda output, target: (output - target).square().sum())
    rows = torch.randn(_MICRO_BATCHES * 2, _WIDTH)
    return lambda: schedule.step(rows) if rank == 0 else schedule.step(target=rows)


def _all_to_all(_rank: int, _mesh: DeviceMesh) -> Callable[[], object]:
    def run() -> None:
        dist.all_to_all_single(torch.empty(4), torch.ones(4))
        dist.all_to_all([torch.empty(2), torch.empty(2)], [torch.ones(2), torch.ones(2)])

    return run


def _functional(_rank: int, mesh: DeviceMesh) -> Callable[[], object]:
    def run() -> None:
        rows = torch.ones(4, 4)
        functional.wait_tensor(functional.all_reduce(rows, "sum", mesh))
        functional.wait_tensor(functional.all_gather_tensor(rows, 0, mesh))
        functional.wait_tensor(functional.reduce_scatter_tensor(rows, "sum", 0, mesh))
        functional.wait_tensor(functional.all_to_all_single(rows, None, None, mesh))

    return run


def _compiled(_rank: int, mesh: DeviceMesh) -> Callable[[], object]:
    def double(rows: torch.Tensor) -> torch.Tensor:
        return functional.all_reduce(rows * 2, "sum", mesh) + 1

    compiled = torch.compile(double, backend="aot_eager", fullgraph=True)

    def run() -> None:
        assert torch.equal(compiled(torch.ones(4)), torch.full((4,), 5.0))

    return run


def _others(_rank: int, _mesh: DeviceMesh) -> Callable[[], object]:
    def run() -> None:
        whole, part = torch.ones(4), torch.ones(2)
        dist.all_reduce(whole)
        dist.broadcast(whole, 0)
        dist.reduce(whole, 0)
        dist.all_gather_into_tensor(whole, part)
        dist.all_gather([torch.empty(2), torch.empty(2)], part)
        dist.reduce_scatter_tensor(part, whole)
        dist.barrier()

    return run


_CASES = {
    "DDP": _ddp,
    "FSDP2": _fsdp,
    "tensor": _tensor,
    "1F1B": _pipeline,
    "all-to-all": _all_to_all,
    "functional": _functional,
    "compiled": _compiled,
    "others": _others,
}
