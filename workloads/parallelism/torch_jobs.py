"""PyTorch jobs, as back ends without real hosts play them: each parallelism has the task graph of its own family.

gloo keeps one connection for each two ranks, so a transfer between two hosts is one flow. All buckets of DDP share it:
they are one transfer, which begins with the first bucket, as the host library registers them. FSDP2 on a CPU waits for
each gather and scatter before it computes further, and gloo scatters by an all-reduce, which sends twice as much.
"""

import math

from workloads.models import Model
from workloads.parallelism.data_parallel import expand_data_parallel, expand_fully_sharded
from workloads.parallelism.intra_layer import expand_expert_parallel
from workloads.parallelism.pipeline import expand_pipeline
from workloads.placement import Placement
from workloads.task_graph import TaskGraph
from workloads.workload import PipelineSchedule, TorchParallelism, TorchWorkload

BUCKET_BYTES = 25 * 2**20
"""DDP reduces gradients as soon as so many bytes of them are there (``bucket_cap_mb``)."""
_FORWARD, _BACKWARD = 1 / 3, 2 / 3
"""Shares of an iteration's computation."""


def expand_torch(workload: TorchWorkload, placement: Placement) -> TaskGraph:
    """Return the task graph of DDP, FSDP2, 1F1B or a mixture of experts."""
    is_ddp = workload.parallelism is TorchParallelism.DDP
    model = Model(
        workload.compute_s,
        comm_start=_FORWARD + (_BACKWARD / ddp_buckets(workload) if is_ddp else 0.0),
        gradient_bytes=workload.parameter_bytes or 0.0,
        activation_bytes=workload.activation_bytes or 0.0,
        flows_per_pair=1,
    )
    match workload.parallelism:
        case TorchParallelism.DDP:
            return expand_data_parallel(model, placement, buckets=None)
        case TorchParallelism.FSDP:
            assert workload.layers is not None
            return expand_fully_sharded(
                *(model, placement, workload.layers), prefetch=0, scatter_buffers=0, scatter_factor=2
            )
        case TorchParallelism.PIPELINE:
            assert workload.micro_batches is not None
            schedule = PipelineSchedule.ONE_FORWARD_ONE_BACKWARD
            return expand_pipeline(model, placement, schedule, micro_batches=workload.micro_batches, chunks=1)
        case TorchParallelism.MOE:
            assert workload.layers is not None
            return expand_expert_parallel(model, placement, workload.layers)


def ddp_buckets(workload: TorchWorkload) -> int:
    """Return how many buckets DDP makes of a model: each holds whole layers, at least ``BUCKET_BYTES``."""
    assert workload.layers is not None
    assert workload.parameter_bytes is not None
    layers_per_bucket = math.ceil(BUCKET_BYTES * workload.layers / workload.parameter_bytes)
    return math.ceil(workload.layers / layers_per_bucket)
