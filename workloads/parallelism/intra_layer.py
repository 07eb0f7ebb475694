"""Intra-layer parallelism: hosts divide every layer by its tensors, its sequence or its experts.

- Tensor parallelism (Megatron-LM): attention and MLP each end in an all-reduce, forward and backward. That makes four
  coflows per layer, and the next computation waits for each.
- Context parallelism (ring attention): each host has a block of the sequence and passes keys and values round while it
  attends to a block; an EchelonFlow of coflows, spaced by the attention to one block.
- Expert parallelism (mixture of experts): dispatch and combine are all-to-all coflows. With several chunks of tokens a
  dispatch is an EchelonFlow of coflows, spaced by the computation of one chunk; the combines are needed together.
"""

from itertools import product

from workloads.models import Model
from workloads.placement import Placement
from workloads.task_graph import Done, GraphBuilder, TaskGraph
from workloads.traffic_patterns import all_to_all, ring


def expand_tensor_parallel(model: Model, placement: Placement, layers: int) -> TaskGraph:
    """Alternate computation and ring all-reduce; nothing is computed while activations are reduced.

    A ring all-reduce among H hosts sends 2 (H - 1) / H of the activations from each host to the next.
    """
    hosts = tuple(placement.gpus)
    share_bytes = 2 * (len(hosts) - 1) / len(hosts) * model.activation_bytes
    flows = tuple(ring(hosts, share_bytes, model.flows_per_pair, placement))
    halves = list(product(range(layers), ("attention", "mlp")))
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


def expand_context_parallel(model: Model, placement: Placement, layers: int) -> TaskGraph:
    """Attend to one block per host in every layer, while the next block arrives.

    A block's keys and values are twice its activations; in the backward pass their gradients travel with them.
    """
    hosts = tuple(placement.gpus)
    block_bytes = 2 * model.activation_bytes / len(hosts)
    builder = GraphBuilder()
    done: Done = ()
    for direction, duration_s, size_bytes, order in (
        ("forward", model.forward_s, block_bytes, range(layers)),
        ("backward", model.backward_s, 2 * block_bytes, reversed(range(layers))),
    ):
        flows = tuple(ring(hosts, size_bytes, model.flows_per_pair, placement))
        for layer in order:
            for block in range(len(hosts)):
                here = done
                done = builder.compute(
                    f"{direction} {layer} block {block}", hosts, duration_s / layers / len(hosts), here
                )
                if block + 1 < len(hosts):
                    done += builder.send(f"{direction} {layer}", flows, here)
    return builder.graph()


def expand_expert_parallel(model: Model, placement: Placement, layers: int, chunks: int = 1) -> TaskGraph:
    """Compute half of a layer before the dispatch and half in the experts; the backward pass likewise.

    Each host sends its activations both ways, an equal share to every host, one chunk after the other.
    """
    hosts = tuple(placement.gpus)
    flows = tuple(all_to_all(hosts, model.activation_bytes / chunks, model.flows_per_pair, placement))
    builder = GraphBuilder()

    def experts(layer: str, duration_s: float, after: Done) -> Done:
        dispatched = computed = after
        combined: Done = ()
        for chunk in range(chunks):
            dispatched = builder.send(f"dispatch {layer}", flows, dispatched)
            name = f"experts {layer}" + (f" chunk {chunk}" if chunks > 1 else "")
            computed = builder.compute(name, hosts, duration_s / chunks, computed + dispatched)
            combined = builder.send(f"combine {layer}", flows, computed + combined)
        return combined

    done: Done = ()
    half_s = model.forward_s / layers / 2
    for layer in range(layers):
        done = builder.compute(f"forward {layer}", hosts, half_s, done)
        done = experts(f"forward {layer}", half_s, done)
    half_s = model.backward_s / layers / 2
    for layer in reversed(range(layers)):
        done = experts(f"backward {layer}", half_s, done)
        done = builder.compute(f"backward {layer}", hosts, half_s, done)
    return builder.graph()
