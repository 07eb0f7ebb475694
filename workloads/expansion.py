"""Expansion of a job's ``workload:`` into its task graph."""

from collections.abc import Iterator

from workloads.arrangement import arranged
from workloads.parallelism.data_parallel import (
    expand_data_parallel,
    expand_fully_sharded,
    expand_parameter_server,
    expand_sharded_optimizer,
)
from workloads.parallelism.intra_layer import expand_context_parallel, expand_expert_parallel, expand_tensor_parallel
from workloads.parallelism.pipeline import expand_pipeline
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
    Workload,
)

PHASES_GROUP = "communication"
"""Name of the flow group of a job that is described by its phases."""


def expand(workload: Workload, placement: Placement) -> TaskGraph:
    """Return the task graph of one iteration on the given GPUs, with the ideal finish of every flow."""
    match workload:
        case PhasesWorkload() | CommandWorkload():
            graph = expand_phases(workload, placement)
        case DataParallelWorkload():
            graph = expand_data_parallel(workload, placement)
        case ShardedOptimizerWorkload():
            graph = expand_sharded_optimizer(workload, placement)
        case ParameterServerWorkload():
            graph = expand_parameter_server(workload, placement)
        case TensorParallelWorkload():
            graph = expand_tensor_parallel(workload, placement)
        case ExpertParallelWorkload():
            graph = expand_expert_parallel(workload, placement)
        case ContextParallelWorkload():
            graph = expand_context_parallel(workload, placement)
        case PipelineWorkload():
            graph = expand_pipeline(workload, placement)
        case FullyShardedWorkload():
            graph = expand_fully_sharded(workload, placement)
    return arranged(graph)


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
