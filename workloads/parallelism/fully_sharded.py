"""Fully sharded data parallelism (FSDP, ZeRO-3): parameters gathered before use, gradients scattered after.

Two flow groups, each an EchelonFlow of coflows (EchelonFlow, section 3.2, equation 7): the all-gathers of the forward
and then the backward pass, and the reduce-scatters. With replicas (HSDP) a third: what was scattered is reduced among
them, which only the optimizer waits for. The order and what waits for what are those of PyTorch's FSDP2.
"""

from workloads.flows import ring
from workloads.graph_builder import Done, GraphBuilder
from workloads.models import MODELS
from workloads.placement import Placement
from workloads.task_graph import TaskGraph
from workloads.workload import FullyShardedWorkload

ALL_GATHER = "all-gather"
REDUCE_SCATTER = "reduce-scatter"
ALL_REDUCE = "all-reduce"

_BUFFERS = 1
"""Reduce-scatters whose input FSDP2 keeps while the backward pass goes on."""


def expand_fully_sharded(workload: FullyShardedWorkload, placement: Placement) -> TaskGraph:
    """One iteration: forward through all layer groups and backward in reverse, each after its parameters have come.

    The gather of step u follows the one before it, and is issued when step u - prefetch begins. A scatter follows its
    step and the scatter before; step u + 1 waits for the scatter of step u - 1, whose buffer it needs. Replicas are
    equal numbers of hosts in their order, and a reduction follows its scatter. Hosts that stand alone send nothing.
    """
    model = MODELS[workload.model]
    hosts = tuple(placement.gpus)
    n = workload.layer_groups
    count = workload.flows_per_pair or model.flows_per_pair
    size = len(hosts) // workload.replicas
    # Every gather and every scatter moves a layer group's bytes, less what a host has itself, from each to the next.
    group_bytes = model.gradient_bytes / n
    sharded = [hosts[first : first + size] for first in range(0, len(hosts), size)]
    coflow = [flow for shard in sharded for flow in ring(shard, (size - 1) / size * group_bytes, count, placement)]
    share_bytes = 2 * (workload.replicas - 1) / workload.replicas * group_bytes / size
    reduced = [flow for place in range(size) for flow in ring(hosts[place::size], share_bytes, count, placement)]
    builder = GraphBuilder()
    steps: list[Done] = []
    gathers: list[Done] = []
    scatters: list[Done] = []
    reduction: Done = ()
    for step in range(2 * n):
        while len(gathers) <= min(step + workload.prefetch, 2 * n - 1):
            ahead = len(gathers) - workload.prefetch
            after = (gathers[-1] if gathers else ()) + (steps[ahead - 1] if ahead > 0 else ())
            gathers.append(builder.send(ALL_GATHER, coflow, after))
        ready = step - n - _BUFFERS - 1
        after = (steps[-1] if steps else ()) + gathers[step] + (scatters[ready] if ready >= 0 else ())
        if step < n:
            steps.append(builder.compute(f"forward {step}", hosts, model.forward_s / n, after))
            continue
        steps.append(builder.compute(f"backward {2 * n - 1 - step}", hosts, model.backward_s / n, after))
        scatters.append(builder.send(REDUCE_SCATTER, coflow, steps[-1] + (scatters[-1] if scatters else ())))
        reduction = builder.send(ALL_REDUCE, reduced, scatters[-1] + reduction)
    return builder.graph()
