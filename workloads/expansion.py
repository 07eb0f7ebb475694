"""Expansion of a job's ``workload:`` into its task graph."""

from collections.abc import Iterator
from dataclasses import replace

from workloads.arrangement import arranged
from workloads.chakra.expansion import expand_chakra
from workloads.chakra_workload import ChakraWorkload
from workloads.combined.expansion import expand_combined
from workloads.combined_workload import CombinedWorkload
from workloads.described.simple_jobs import divided_layers, simple_model
from workloads.model_workload import ModelWorkload
from workloads.models import MODELS, Model, ModelName
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
    ParameterServerWorkload,
    Phases,
    PhasesWorkload,
    PipelineWorkload,
    ShardedOptimizerWorkload,
    TensorParallelWorkload,
    TorchWorkload,
    Workload,
)

ModelWorkloads = (
    DataParallelWorkload
    | ShardedOptimizerWorkload
    | ParameterServerWorkload
    | TensorParallelWorkload
    | ExpertParallelWorkload
    | ContextParallelWorkload
    | PipelineWorkload
    | FullyShardedWorkload
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
        case CombinedWorkload():
            graph = expand_combined(workload, placement)
        case ChakraWorkload():
            graph = expand_chakra(workload, placement)
        case _:
            graph = _expand_model(workload, _model(workload, placement), placement)
    return arranged(graph)


def _expand_model(workload: ModelWorkloads, model: Model, placement: Placement) -> TaskGraph:
    match workload:
        case DataParallelWorkload():
            return expand_data_parallel(model, placement, workload.buckets)
        case ShardedOptimizerWorkload():
            return expand_sharded_optimizer(model, placement, workload.buckets, overlap=workload.overlap)
        case ParameterServerWorkload():
            return expand_parameter_server(model, placement, workload.servers)
        case TensorParallelWorkload():
            return expand_tensor_parallel(model, placement, _layers(workload))
        case ExpertParallelWorkload():
            return expand_expert_parallel(model, placement, _layers(workload), workload.chunks)
        case ContextParallelWorkload():
            return expand_context_parallel(model, placement, _layers(workload))
        case PipelineWorkload():
            return expand_pipeline(
                *(model, placement, workload.schedule),
                micro_batches=workload.micro_batches,
                chunks=workload.chunks_per_host,
            )
        case FullyShardedWorkload():
            return expand_fully_sharded(
                *(model, placement, _layer_groups(workload)),
                prefetch=workload.prefetch,
                replicas=workload.replicas,
            )


def _model(workload: ModelWorkload, placement: Placement) -> Model:
    """Return the numbers of the model for this job, with the flows that the workload wants."""
    if isinstance(workload.model, ModelName):
        model = MODELS[workload.model]
    else:
        assert workload.description is not None
        assert workload.samples_per_gpu is not None
        num_gpus = sum(map(len, placement.gpus.values()))
        model = simple_model(
            *(str(getattr(workload, "type", "")), workload.description, workload.device, workload.samples_per_gpu),
            *(len(placement.gpus), num_gpus),
        )
    return replace(model, flows_per_pair=workload.flows_per_pair or model.flows_per_pair)


def _layers(workload: TensorParallelWorkload | ExpertParallelWorkload | ContextParallelWorkload) -> int:
    """Return the layers that hosts divide: the workload's, else the model's own."""
    if workload.layers is not None:
        return workload.layers
    assert workload.description is not None
    return divided_layers(workload.type, workload.description)


def _layer_groups(workload: FullyShardedWorkload) -> int:
    """Return the groups of layers that are gathered: the workload's, else the blocks of the model."""
    if workload.layer_groups is not None:
        return workload.layer_groups
    assert workload.description is not None
    return divided_layers(workload.type, workload.description)


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
