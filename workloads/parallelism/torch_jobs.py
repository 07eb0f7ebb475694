"""PyTorch jobs, as back ends without real hosts play them: each parallelism has the task graph of its own family.

gloo keeps one connection for each two ranks, so a transfer between two hosts is one flow. All buckets of DDP share it:
they are one transfer, which begins with the first bucket, as the host library registers them. FSDP2 on a CPU waits for
each gather and scatter before it computes further, and gloo scatters by an all-reduce, which sends twice as much.

gloo sends a large message when the receiver has said that it is ready. It says so on the same connection, behind the
message that it is sending itself. So two ranks that exchange large messages send them one after the other, and a stage
gets its input when it asks for it. All-reduces send many small messages, which pass each other.
"""

import math
from collections.abc import Callable, Sequence
from itertools import count

from workloads.models import Model
from workloads.parallelism.data_parallel import ALL_GATHER, expand_data_parallel, expand_fully_sharded
from workloads.parallelism.intra_layer import expand_expert_parallel
from workloads.parallelism.pipeline import expand_pipeline
from workloads.pipeline_order import PipelineSchedule
from workloads.placement import Placement
from workloads.task_graph import Computation, Done, FlowSpec, GraphBuilder, TaskGraph
from workloads.workload import TorchParallelism, TorchWorkload

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
            graph = expand_fully_sharded(
                *(model, placement, workload.layers), prefetch=0, scatter_buffers=0, scatter_factor=2
            )
            return one_direction_at_a_time(graph, lambda group: group == ALL_GATHER)
        case TorchParallelism.PIPELINE:
            assert workload.micro_batches is not None
            schedule = PipelineSchedule.ONE_FORWARD_ONE_BACKWARD
            return expand_pipeline(
                *(model, placement, schedule),
                micro_batches=workload.micro_batches,
                chunks=1,
                rendezvous=True,
            )
        case TorchParallelism.MOE:
            assert workload.layers is not None
            return one_direction_at_a_time(expand_expert_parallel(model, placement, workload.layers), lambda _: True)


def ddp_buckets(workload: TorchWorkload) -> int:
    """Return how many buckets DDP makes of a model: each holds whole layers, at least ``BUCKET_BYTES``."""
    assert workload.layers is not None
    assert workload.parameter_bytes is not None
    layers_per_bucket = math.ceil(BUCKET_BYTES * workload.layers / workload.parameter_bytes)
    return math.ceil(workload.layers / layers_per_bucket)


def one_direction_at_a_time(graph: TaskGraph, is_exchanged: Callable[[str], bool]) -> TaskGraph:
    """Return a graph in which two hosts that send to each other in a transfer do so one after the other.

    ``is_exchanged`` returns whether the transfers of a flow group are such. Whoever is late sends first. In every other
    exchange hosts are late in their order, so the last one sends to all others at once. In the rest they take turns, so
    all send and receive all the time. Four real hosts are between the two.
    """
    flows_of = {group.name: group.flows for group in graph.flow_groups}
    builder = GraphBuilder()
    done: list[Done] = []
    exchanges = count()
    for task in graph.tasks:
        after = tuple(new for earlier in task.after for new in done[earlier])
        if isinstance(task, Computation):
            done.append(builder.compute(task.name, task.hosts, task.duration_s, after))
            continue
        flows = [flows_of[task.group][place] for place in graph.flows_of(task)]
        exchange = next(exchanges) if is_exchanged(task.group) else None
        answers = [flow for flow in flows if exchange is not None and _answers(flow, flows, exchange)]
        first = builder.send(task.group, [flow for flow in flows if flow not in answers], after)
        done.append(builder.send(task.group, answers, first))
    return builder.graph()


def _answers(flow: FlowSpec, flows: Sequence[FlowSpec], exchange: int) -> bool:
    """Return whether a flow of an exchange waits for the one in the other direction."""
    source, destination = flow.source_host, flow.destination_host
    if all((each.source_host, each.destination_host) != (destination, source) for each in flows):
        return False
    hosts = list(dict.fromkeys(each.source_host for each in flows))
    first, second = hosts.index(source), hosts.index(destination)
    return (first < second) == (exchange % 2 == 0 and (first + second) % 2 == 0)
