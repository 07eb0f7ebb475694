"""Tensor parallelism (Megatron-LM): all hosts compute their share of every layer, then add up what comes out.

Attention and the layers behind it end in an all-reduce each, and so do their gradients: four coflows a layer, each of
which the next computation waits for.
"""

from itertools import product

from workloads.flows import ring
from workloads.graph_builder import Done, GraphBuilder
from workloads.models import MODELS
from workloads.placement import Placement
from workloads.task_graph import TaskGraph
from workloads.workload import TensorParallelWorkload


def expand_tensor_parallel(workload: TensorParallelWorkload, placement: Placement) -> TaskGraph:
    """One iteration: nothing is computed while activations are reduced, in a ring of hosts.

    A ring all-reduce among H hosts sends 2 (H - 1) / H of the activations from each host to the next.
    """
    model = MODELS[workload.model]
    hosts = tuple(placement.gpus)
    share_bytes = 2 * (len(hosts) - 1) / len(hosts) * model.activation_bytes
    flows = tuple(ring(hosts, share_bytes, workload.flows_per_pair or model.flows_per_pair, placement))
    halves = list(product(range(workload.layers), ("attention", "mlp")))
    builder = GraphBuilder()
    done: Done = ()
    for direction, seconds, order in (
        ("forward", model.forward_s, halves),
        ("backward", model.backward_s, list(reversed(halves))),
    ):
        for layer, half in order:
            name = f"{direction} {half} {layer}"
            done = builder.send(name, flows, builder.compute(name, hosts, seconds / len(halves), done))
    return builder.graph()
