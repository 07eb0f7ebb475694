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

from workloads.models import Model
from workloads.placement import Placement
from workloads.task_graph import Done, FlowSpec, GraphBuilder, TaskGraph, compute_and_send
from workloads.traffic_patterns import flows_between, ring

GRADIENTS, PARAMETERS = "gradients", "parameters"
PUSH, PULL = "push", "pull"
ALL_GATHER, REDUCE_SCATTER, ALL_REDUCE = "all-gather", "reduce-scatter", "all-reduce"


def expand_data_parallel(model: Model, placement: Placement, buckets: int | None) -> TaskGraph:
    """Reduce gradients during the computation; the iteration waits for both.

    A ring all-reduce among H hosts sends 2 (H - 1) / H of the gradients from each host to the next. All are reduced at
    once when the model says, or in equal ``buckets`` as the backward pass proceeds.
    """
    hosts = tuple(placement.gpus)
    share_bytes = 2 * (len(hosts) - 1) / len(hosts) * model.gradient_bytes
    count = model.flows_per_pair
    if buckets is None:
        flows = tuple(ring(hosts, share_bytes, count, placement))
        return compute_and_send(GRADIENTS, model.compute_s, model.comm_start, hosts, flows)
    builder = GraphBuilder()
    computed = builder.compute("forward", hosts, model.forward_s)
    reduced: Done = ()
    for bucket in range(buckets):
        computed = builder.compute(f"backward {bucket}", hosts, model.backward_s / buckets, computed)
        flows = tuple(ring(hosts, share_bytes / buckets, count, placement))
        reduced = builder.send(f"{GRADIENTS} {bucket}", flows, computed + reduced)
    return builder.graph()


def expand_sharded_optimizer(model: Model, placement: Placement, buckets: int, *, overlap: bool) -> TaskGraph:
    """Gather the new parameters of the last iteration, compute, and scatter the gradients.

    Each of H hosts gathers and scatters (H - 1) / H of a bucket's bytes through its neighbour, one bucket after the
    other. The gathers ``overlap`` the forward pass, or it waits for all of them.
    """
    hosts = tuple(placement.gpus)
    n = buckets
    bucket_bytes = (len(hosts) - 1) / len(hosts) * model.gradient_bytes / n
    flows = tuple(ring(hosts, bucket_bytes, model.flows_per_pair, placement))
    builder = GraphBuilder()
    gathers: list[Done] = []
    for bucket in range(n):
        gathers.append(builder.send(PARAMETERS, flows, gathers[bucket - 1] if bucket else ()))
    computed: Done = ()
    for bucket in range(n):
        gathered = gathers[bucket if overlap else n - 1]
        computed = builder.compute(f"forward {bucket}", hosts, model.forward_s / n, computed + gathered)
    scattered: Done = ()
    for bucket in reversed(range(n)):
        computed = builder.compute(f"backward {bucket}", hosts, model.backward_s / n, computed)
        scattered = builder.send(f"{GRADIENTS} {bucket}", flows, computed + scattered)
    return builder.graph()


def expand_fully_sharded(
    model: Model,
    placement: Placement,
    layer_groups: int,
    *,
    prefetch: int = 1,
    replicas: int = 1,
    scatter_buffers: int = 1,
    scatter_factor: float = 1.0,
) -> TaskGraph:
    """Gather each layer group before use, forward and then backward in reverse, and scatter its gradients after.

    The gather of step u follows the previous gather and is issued when step u - prefetch begins. A scatter follows its
    step and the previous scatter. While a step computes, ``scatter_buffers`` scatters are in flight: with one, as in
    FSDP2, step u + 1 waits for the scatter of step u - 1. Replicas are equal numbers of hosts in order; the reduction
    among them follows the scatter. A host alone in its group sends nothing. A scatter sends ``scatter_factor`` times
    what it has to.
    """
    hosts = tuple(placement.gpus)
    n = layer_groups
    count = model.flows_per_pair
    size = len(hosts) // replicas
    # Every gather and scatter moves a layer group's bytes, less the host's own share, from each host to the next.
    group_bytes = model.gradient_bytes / n
    sharded = [hosts[first : first + size] for first in range(0, len(hosts), size)]

    def around(size_bytes: float) -> list[FlowSpec]:
        return [flow for shard in sharded for flow in ring(shard, size_bytes, count, placement)]

    others_bytes = (size - 1) / size * group_bytes
    gathered, scattered = around(others_bytes), around(scatter_factor * others_bytes)
    share_bytes = 2 * (replicas - 1) / replicas * group_bytes / size
    reduced = [flow for place in range(size) for flow in ring(hosts[place::size], share_bytes, count, placement)]
    builder = GraphBuilder()
    steps: list[Done] = []
    gathers: list[Done] = []
    scatters: list[Done] = []
    reduction: Done = ()

    def scattered_before(step: int) -> Done:
        last = step - n - scatter_buffers - 1
        return scatters[last] if last >= 0 else ()

    for step in range(2 * n):
        while len(gathers) <= min(step + prefetch, 2 * n - 1):
            ahead = len(gathers) - prefetch
            after = (gathers[-1] if gathers else ()) + (steps[ahead - 1] if ahead > 0 else ())
            if not scatter_buffers:  # nothing goes on beside a scatter
                after += scattered_before(ahead)
            gathers.append(builder.send(ALL_GATHER, gathered, after))
        after = (steps[-1] if steps else ()) + gathers[step] + scattered_before(step)
        if step < n:
            steps.append(builder.compute(f"forward {step}", hosts, model.forward_s / n, after))
            continue
        steps.append(builder.compute(f"backward {2 * n - 1 - step}", hosts, model.backward_s / n, after))
        scatters.append(builder.send(REDUCE_SCATTER, scattered, steps[-1] + (scatters[-1] if scatters else ())))
        reduction = builder.send(ALL_REDUCE, reduced, scatters[-1] + reduction)
    return builder.graph()


def expand_parameter_server(model: Model, placement: Placement, servers: int) -> TaskGraph:
    """Push gradients to the first hosts, the ``servers``, during the computation; pull parameters when both have ended.

    The servers' GPUs compute nothing.
    """
    hosts = tuple(placement.gpus)
    serving, workers = hosts[:servers], hosts[servers:]
    size_bytes = model.gradient_bytes / servers

    def between(source: str, destination: str) -> list[FlowSpec]:
        return list(flows_between(source, destination, size_bytes, model.flows_per_pair, placement))

    pushed = [flow for worker in workers for server in serving for flow in between(worker, server)]
    pulled = [flow for worker in workers for server in serving for flow in between(server, worker)]
    builder = GraphBuilder()
    before = builder.compute("before the push", workers, model.compute_s * model.comm_start)
    rest = builder.compute("during the push", workers, model.compute_s * (1 - model.comm_start), before)
    updated = builder.send(PUSH, pushed, before) + rest
    builder.send(PULL, pulled, updated)
    return builder.graph()
