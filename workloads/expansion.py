"""From the ``workload:`` of a job to its task graph."""

from workloads.arrangement import arranged
from workloads.parallelism.context_parallel import expand_context_parallel
from workloads.parallelism.data_parallel import expand_data_parallel
from workloads.parallelism.expert_parallel import expand_expert_parallel
from workloads.parallelism.fully_sharded import expand_fully_sharded
from workloads.parallelism.parameter_server import expand_parameter_server
from workloads.parallelism.pipeline import expand_pipeline
from workloads.parallelism.sharded_optimizer import expand_sharded_optimizer
from workloads.parallelism.tensor_parallel import expand_tensor_parallel
from workloads.phases import expand_phases
from workloads.placement import Placement
from workloads.task_graph import TaskGraph
from workloads.workload import (
    ContextParallelWorkload,
    DataParallelWorkload,
    ExpertParallelWorkload,
    FullyShardedWorkload,
    ParameterServerWorkload,
    PhasesWorkload,
    PipelineWorkload,
    ShardedOptimizerWorkload,
    TensorParallelWorkload,
    Workload,
)


def expand(workload: Workload, placement: Placement) -> TaskGraph:
    """What one iteration computes and sends on the GPUs given, every flow with its ideal finish."""
    match workload:
        case PhasesWorkload():
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
