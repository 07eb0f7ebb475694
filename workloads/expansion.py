"""Expansion of a job's ``workload:`` into its task graph."""

from collections.abc import Iterator
from dataclasses import replace

from workloads.arrangement import arranged
from workloads.models import MODELS, Model
from workloads.parallelism.data_parallel import (
    expand_data_parallel,
    expand_fully_sharded,
    expand_parameter_server,
    expand_sharded_optimizer,
)
from workloads.parallelism.intra_layer import expand_context_parallel, expand_expert_parallel, expand_tensor_parallel
from workloads.parallelism.pipeline import expand_pipeline
from workloads.parallelism.torch_jobs import expand_torch
from workloads.placement import Placement
from workloads.task_graph import FlowSpec, TaskGraph, compute_and_send
from workloads.traffic_patterns import flows_between, transfers
from workloads.workload import (
    CommandWorkload,
    ContextParallelWorkload,
    DataParallelWorkload,
    ExpertParallelWorkload,
    FullyShardedWorkload,
    ModelWorkload,
    ParameterServerWorkload,
    Phases,
    PhasesWorkload,
    PipelineWorkload,
    ShardedOptimizerWorkload,
    TensorParallelWorkload,
    TorchWorkload,
    Workload,
)

PHASES_GROUP = "communication"
"""Name of the flow group of a job that is described by its phases."""


def expand(workload: Workload, placement: Placement) -> TaskGraph:
    """Return the task graph of one iteration on the given GPUs, with the ideal finish of every flow."""
    match workload:
        case PhasesWorkload() | CommandWorkload():
            graph = expand_phases(workload, placement)
        case TorchWorkload():
            graph = expand_torch(workload, placement)
        case DataParallelWorkload():
            graph = expand_data_parallel(_model(workload), placement, workload.buckets)
        case ShardedOptimizerWorkload():
            graph = expand_sharded_optimizer(_model(workload), placement, workload.buckets, overlap=workload.overlap)
        case ParameterServerWorkload():
            graph = expand_parameter_server(_model(workload), placement, workload.servers)
        case TensorParallelWorkload():
            graph = expand_tensor_parallel(_model(workload), placement, workload.layers)
        case ExpertParallelWorkload():
            graph = expand_expert_parallel(_model(workload), placement, workload.layers, workload.chunks)
        case ContextParallelWorkload():
            graph = expand_context_parallel(_model(workload), placement, workload.layers)
        case PipelineWorkload():
            graph = expand_pipeline(
                *(_model(workload), placement, workload.schedule),
                micro_batches=workload.micro_batches,
                chunks=workload.chunks_per_host,
            )
        case FullyShardedWorkload():
            graph = expand_fully_sharded(
                *(_model(workload), placement, workload.layer_groups),
                prefetch=workload.prefetch,
                replicas=workload.replicas,
            )
    return arranged(graph)


def _model(workload: ModelWorkload) -> Model:
    """Return the model of the table, with the flows that the workload wants."""
    model = MODELS[workload.model]
    return replace(model, flows_per_pair=workload.flows_per_pair or model.flows_per_pair)


def expand_phases(workload: Phases, placement: Placement) -> TaskGraph:
    """Expand phases: one compute phase, and one flow group that starts somewhere inside it."""
    hosts = tuple(placement.gpus)
    flows = tuple(_flows(workload, hosts, placement))
    return compute_and_send(PHASES_GROUP, workload.compute_s, workload.comm_start, hosts, flows)


def _flows(workload: Phases, hosts: tuple[str, ...], placement: Placement) -> Iterator[FlowSpec]:
    for transfer in transfers(workload, hosts):
        yield from flows_between(
            transfer.source, transfer.destination, transfer.bytes, workload.flows_per_pair, placement
        )
