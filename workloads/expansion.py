"""From the ``workload:`` of a job to its task graph."""

from workloads.arrangement import arranged
from workloads.data_parallel import expand_data_parallel
from workloads.fully_sharded import expand_fully_sharded
from workloads.phases import expand_phases
from workloads.pipeline import expand_pipeline
from workloads.placement import Placement
from workloads.scenario import (
    DataParallelWorkload,
    FullyShardedWorkload,
    PhasesWorkload,
    PipelineWorkload,
    Workload,
)
from workloads.task_graph import TaskGraph


def expand(workload: Workload, placement: Placement) -> TaskGraph:
    """What one iteration computes and sends on the GPUs given, every flow with its ideal finish."""
    match workload:
        case PhasesWorkload():
            graph = expand_phases(workload, placement)
        case DataParallelWorkload():
            graph = expand_data_parallel(workload, placement)
        case PipelineWorkload():
            graph = expand_pipeline(workload, placement)
        case FullyShardedWorkload():
            graph = expand_fully_sharded(workload, placement)
    return arranged(graph)
