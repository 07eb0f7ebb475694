"""Fully sharded data parallelism (FSDP, ZeRO-3): parameters gathered before use, gradients scattered after.

Two flow groups, each an EchelonFlow of coflows (EchelonFlow, section 3.2, equation 7): the all-gathers of the forward
and then the backward pass, and the reduce-scatters. The order and what waits for what are those of PyTorch's FSDP2.
"""

from workloads.flows import ring
from workloads.models import MODELS
from workloads.placement import Placement
from workloads.scenario import FullyShardedWorkload
from workloads.task_graph import Computation, FlowGroupSpec, GroupTransfer, Task, TaskGraph

ALL_GATHER = "all-gather"
REDUCE_SCATTER = "reduce-scatter"

_BUFFERS = 1
"""Reduce-scatters whose input FSDP2 keeps while the backward pass goes on."""


def expand_fully_sharded(workload: FullyShardedWorkload, placement: Placement) -> TaskGraph:
    """One iteration: forward through all layer groups and backward in reverse, each after its parameters have come.

    The gather of step u follows the one before it, and is issued when step u - prefetch begins. A scatter follows its
    step and the scatter before; step u + 1 waits for the scatter of step u - 1, whose buffer it needs. A job on one
    host computes and sends nothing.
    """
    model = MODELS[workload.model]
    hosts = tuple(placement.gpus)
    n = workload.layer_groups
    # Every gather and every scatter moves a layer group's bytes, less what a host has itself, from each to the next.
    bytes_per_host = (len(hosts) - 1) / len(hosts) * model.gradient_bytes / n
    count = workload.flows_per_pair or model.flows_per_pair
    coflow = tuple(ring(hosts, bytes_per_host, count, placement))
    tasks: list[Task] = []
    steps: list[int] = []
    gathers: list[int] = []
    scatters: list[int] = []

    def add(task: Task) -> int:
        tasks.append(task)
        return len(tasks) - 1

    def gather(step: int) -> None:
        ahead = step - workload.prefetch
        after = gathers[-1:] + (steps[ahead - 1 : ahead] if ahead > 0 else [])
        gathers.append(add(GroupTransfer(ALL_GATHER, tuple(after), _positions(step, len(coflow)))))

    for step in range(2 * n):
        forward = step < n
        if coflow:
            while len(gathers) <= min(step + workload.prefetch, 2 * n - 1):
                gather(len(gathers))
        after = steps[-1:] + gathers[step : step + 1]
        ready = step - n - _BUFFERS - 1
        if coflow and ready >= 0:
            after.append(scatters[ready])
        name = f"forward {step}" if forward else f"backward {2 * n - 1 - step}"
        duration_s = (model.forward_s if forward else model.backward_s) / n
        steps.append(add(Computation(name, hosts, duration_s, tuple(after))))
        if coflow and not forward:
            after = [steps[-1], *scatters[-1:]]
            scatters.append(add(GroupTransfer(REDUCE_SCATTER, tuple(after), _positions(step - n, len(coflow)))))
    if not coflow:
        return TaskGraph(tuple(tasks))
    groups = (FlowGroupSpec(ALL_GATHER, coflow * (2 * n)), FlowGroupSpec(REDUCE_SCATTER, coflow * n))
    return TaskGraph(tuple(tasks), groups)


def _positions(coflow: int, size: int) -> tuple[int, ...]:
    return tuple(range(coflow * size, (coflow + 1) * size))
