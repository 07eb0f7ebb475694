"""Data parallelism: every host computes on its own share of the batch, gradients are reduced in a ring of hosts."""

from workloads.flows import ring
from workloads.graph_builder import Done, GraphBuilder
from workloads.models import MODELS
from workloads.phases import compute_and_send
from workloads.placement import Placement
from workloads.task_graph import TaskGraph
from workloads.workload import DataParallelWorkload

GROUP = "gradients"
"""Name of the flow group: a coflow, as the optimizer needs all gradients."""


def expand_data_parallel(workload: DataParallelWorkload, placement: Placement) -> TaskGraph:
    """One iteration: the reduction begins inside the computation, as the model says, and the iteration waits for both.

    A ring all-reduce among H hosts sends 2 (H - 1) / H of the gradients from each host to the next.
    """
    model = MODELS[workload.model]
    hosts = tuple(placement.gpus)
    share_bytes = 2 * (len(hosts) - 1) / len(hosts) * model.gradient_bytes
    count = workload.flows_per_pair or model.flows_per_pair
    if workload.buckets is None:
        flows = tuple(ring(hosts, share_bytes, count, placement))
        return compute_and_send(GROUP, model.compute_s, model.comm_start, hosts, flows)
    builder = GraphBuilder()
    computed = builder.compute("forward", hosts, model.forward_s)
    reduced: Done = ()
    for bucket in range(workload.buckets):
        computed = builder.compute(f"backward {bucket}", hosts, model.backward_s / workload.buckets, computed)
        flows = tuple(ring(hosts, share_bytes / workload.buckets, count, placement))
        reduced = builder.send(f"{GROUP} {bucket}", flows, computed + reduced)
    return builder.graph()
