"""Data parallelism: plain, sharded (ZeRO-1 to ZeRO-3, FSDP, HSDP), and with parameter servers.

Every host computes on its share of the batch. The variants differ in how gradients and parameters travel:

- Plain: gradients are reduced in a ring of hosts; a coflow, because the optimizer needs all of them.
- Sharded optimizer (ZeRO-1, ZeRO-2): gradients are scattered bucket by bucket, each bucket a coflow. New parameters
  are gathered in the order in which the forward pass needs them: an EchelonFlow of coflows.
- Fully sharded (FSDP, ZeRO-3): the all-gathers of both passes are one EchelonFlow of coflows, the reduce-scatters
  another (EchelonFlow, section 3.2, equation 7). With replicas (HSDP) there is a third, which reduces the scattered
  gradients among replicas for the optimizer. Order and dependences are those of PyTorch's FSDP2.
- Parameter servers (EchelonFlow, section 4, case I): pushes and pulls are coflows. A server updates when it has all
  gradients, and an iteration begins when all parameters have arrived.
"""

from workloads.models import MODELS
from workloads.placement import Placement
from workloads.task_graph import Done, FlowSpec, GraphBuilder, TaskGraph, compute_and_send
from workloads.traffic_patterns import flows_between, ring
from workloads.workload import (
    DataParallelWorkload,
    FullyShardedWorkload,
    ParameterServerWorkload,
    ShardedOptimizerWorkload,
)

GRADIENTS, PARAMETERS = "gradients", "parameters"
PUSH, PULL = "push", "pull"
ALL_GATHER, REDUCE_SCATTER, ALL_REDUCE = "all-gather", "reduce-scatter", "all-reduce"

_REDUCE_SCATTER_BUFFERS = 1
"""Reduce-scatters whose input FSDP2 keeps while the backward pass goes on."""


def expand_data_parallel(workload: DataParallelWorkload, placement: Placement) -> TaskGraph:
    """Reduce gradients during the computation; the iteration waits for both.

    A ring all-reduce among H hosts sends 2 (H - 1) / H of the gradients from each host to the next.
    """
    model = MODELS[workload.model]
    hosts = tuple(placement.gpus)
    share_bytes = 2 * (len(hosts) - 1) / len(hosts) * model.gradient_bytes
    count = workload.flows_per_pair or model.flows_per_pair
    if workload.buckets is None:
        flows = tuple(ring(hosts, share_bytes, count, placement))
        return compute_and_send(GRADIENTS, model.compute_s, model.comm_start, hosts, flows)
    builder = GraphBuilder()
    computed = builder.compute("forward", hosts, model.forward_s)
    reduced: Done = ()
    for bucket in range(workload.buckets):
        computed = builder.compute(f"backward {bucket}", hosts, model.backward_s / workload.buckets, computed)
        flows = tuple(ring(hosts, share_bytes / workload.buckets, count, placement))
        reduced = builder.send(f"{GRADIENTS} {bucket}", flows, computed + reduced)
    return builder.graph()


def expand_sharded_optimizer(workload: ShardedOptimizerWorkload, placement: Placement) -> TaskGraph:
    """Gather the new parameters of the last iteration, compute, and scatter the gradients.

    Each of H hosts gathers and scatters (H - 1) / H of a bucket's bytes through its neighbour, one bucket after the
    other.
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


def expand_fully_sharded(workload: FullyShardedWorkload, placement: Placement) -> TaskGraph:
    """Gather each layer group before use, forward and then backward in reverse, and scatter its gradients after.

    The gather of step u follows the previous gather and is issued when step u - prefetch begins. A scatter follows its
    step and the previous scatter. Step u + 1 waits for the scatter of step u - 1, whose buffer it needs. Replicas are
    equal numbers of hosts in order; the reduction among them follows the scatter. A host alone in its group sends
    nothing.
    """
    model = MODELS[workload.model]
    hosts = tuple(placement.gpus)
    n = workload.layer_groups
    count = workload.flows_per_pair or model.flows_per_pair
    size = len(hosts) // workload.replicas
    # Every gather and scatter moves a layer group's bytes, less the host's own share, from each host to the next.
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
        ready = step - n - _REDUCE_SCATTER_BUFFERS - 1
        after = (steps[-1] if steps else ()) + gathers[step] + (scatters[ready] if ready >= 0 else ())
        if step < n:
            steps.append(builder.compute(f"forward {step}", hosts, model.forward_s / n, after))
            continue
        steps.append(builder.compute(f"backward {2 * n - 1 - step}", hosts, model.backward_s / n, after))
        scatters.append(builder.send(REDUCE_SCATTER, coflow, steps[-1] + (scatters[-1] if scatters else ())))
        reduction = builder.send(ALL_REDUCE, reduced, scatters[-1] + reduction)
    return builder.graph()


def expand_parameter_server(workload: ParameterServerWorkload, placement: Placement) -> TaskGraph:
    """Push gradients during the computation; pull parameters when both have ended."""
    model = MODELS[workload.model]
    hosts = tuple(placement.gpus)
    servers, workers = hosts[: workload.servers], hosts[workload.servers :]
    count = workload.flows_per_pair or model.flows_per_pair
    size_bytes = model.gradient_bytes / len(servers)

    def between(source: str, destination: str) -> list[FlowSpec]:
        return list(flows_between(source, destination, size_bytes, count, placement))

    pushed = [flow for worker in workers for server in servers for flow in between(worker, server)]
    pulled = [flow for worker in workers for server in servers for flow in between(server, worker)]
    builder = GraphBuilder()
    before = builder.compute("before the push", workers, model.compute_s * model.comm_start)
    rest = builder.compute("during the push", workers, model.compute_s * (1 - model.comm_start), before)
    updated = builder.send(PUSH, pushed, before) + rest
    builder.send(PULL, pulled, updated)
    return builder.graph()
