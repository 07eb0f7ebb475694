"""Context parallelism by ring attention: a sequence lies in blocks on the hosts, keys and values go round.

While a host attends to one block it passes it on, and gets the next: an EchelonFlow of coflows, as far apart as
attention to a block takes.
"""

from workloads.flows import ring
from workloads.graph_builder import Done, GraphBuilder
from workloads.models import MODELS
from workloads.placement import Placement
from workloads.task_graph import TaskGraph
from workloads.workload import ContextParallelWorkload


def expand_context_parallel(workload: ContextParallelWorkload, placement: Placement) -> TaskGraph:
    """One iteration: for every layer each host attends to as many blocks as there are hosts.

    A block's keys and values are twice its activations; backward their gradients go with them.
    """
    model = MODELS[workload.model]
    hosts = tuple(placement.gpus)
    count = workload.flows_per_pair or model.flows_per_pair
    block_bytes = 2 * model.activation_bytes / len(hosts)
    builder = GraphBuilder()
    done: Done = ()
    for direction, duration_s, size_bytes, order in (
        ("forward", model.forward_s, block_bytes, range(workload.layers)),
        ("backward", model.backward_s, 2 * block_bytes, reversed(range(workload.layers))),
    ):
        flows = tuple(ring(hosts, size_bytes, count, placement))
        for layer in order:
            for block in range(len(hosts)):
                here = done
                done = builder.compute(
                    f"{direction} {layer} block {block}", hosts, duration_s / workload.layers / len(hosts), here
                )
                if block + 1 < len(hosts):
                    done += builder.send(f"{direction} {layer}", flows, here)
    return builder.graph()
