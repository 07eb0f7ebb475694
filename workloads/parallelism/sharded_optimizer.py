"""Sharded optimizers (ZeRO-1, ZeRO-2): each host updates a share of the parameters, from a share of the gradients.

The gradients of each bucket of layers are a coflow, which the optimizer waits for. The new parameters are an
EchelonFlow of coflows, gathered in the order in which the forward pass needs them.
"""

from workloads.flows import ring
from workloads.graph_builder import Done, GraphBuilder
from workloads.models import MODELS
from workloads.placement import Placement
from workloads.task_graph import TaskGraph
from workloads.workload import ShardedOptimizerWorkload

PARAMETERS, GRADIENTS = "parameters", "gradients"


def expand_sharded_optimizer(workload: ShardedOptimizerWorkload, placement: Placement) -> TaskGraph:
    """One iteration, from the gathering of what the optimizer made to the scattering of what it gets.

    Each of H hosts gathers and scatters (H - 1) / H of a bucket's bytes by way of the next, buckets one by one.
    """
    model = MODELS[workload.model]
    hosts = tuple(placement.gpus)
    n = workload.buckets
    flows = tuple(
        ring(
            hosts,
            (len(hosts) - 1) / len(hosts) * model.gradient_bytes / n,
            workload.flows_per_pair or model.flows_per_pair,
            placement,
        )
    )
    builder = GraphBuilder()
    gathers: list[Done] = []
    for bucket in range(n):
        gathers.append(builder.send(PARAMETERS, flows, gathers[bucket - 1] if bucket else ()))
    computed: Done = ()
    for bucket in range(n):
        gathered = gathers[bucket if workload.overlap else n - 1]
        computed = builder.compute(f"forward {bucket}", hosts, model.forward_s / n, computed + gathered)
    scattered: Done = ()
    for bucket in reversed(range(n)):
        computed = builder.compute(f"backward {bucket}", hosts, model.backward_s / n, computed)
        scattered = builder.send(f"{GRADIENTS} {bucket}", flows, computed + scattered)
    return builder.graph()
