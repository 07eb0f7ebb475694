"""Mixture of experts: the tokens of every layer go to the hosts of their experts and come back.

Dispatch and combine are all-to-all coflows. In several chunks of tokens a dispatch is an EchelonFlow of coflows, one
for each time the experts take to compute one; the combined tokens of all chunks are needed together.
"""

from workloads.flows import all_to_all
from workloads.graph_builder import Done, GraphBuilder
from workloads.models import MODELS
from workloads.placement import Placement
from workloads.task_graph import TaskGraph
from workloads.workload import ExpertParallelWorkload


def expand_expert_parallel(workload: ExpertParallelWorkload, placement: Placement) -> TaskGraph:
    """One iteration: half of a layer's computation is before the dispatch, half is the experts'; backward likewise.

    Each host sends its activations either way, an equal share to every host, one chunk after the other.
    """
    model = MODELS[workload.model]
    hosts = tuple(placement.gpus)
    count = workload.flows_per_pair or model.flows_per_pair
    flows = tuple(all_to_all(hosts, model.activation_bytes / workload.chunks, count, placement))
    builder = GraphBuilder()

    def experts(layer: str, duration_s: float, after: Done) -> Done:
        dispatched = computed = after
        combined: Done = ()
        for chunk in range(workload.chunks):
            dispatched = builder.send(f"dispatch {layer}", flows, dispatched)
            name = f"experts {layer}" + (f" chunk {chunk}" if workload.chunks > 1 else "")
            computed = builder.compute(name, hosts, duration_s / workload.chunks, computed + dispatched)
            combined = builder.send(f"combine {layer}", flows, computed + combined)
        return combined

    done: Done = ()
    half_s = model.forward_s / workload.layers / 2
    for layer in range(workload.layers):
        done = builder.compute(f"forward {layer}", hosts, half_s, done)
        done = experts(f"forward {layer}", half_s, done)
    half_s = model.backward_s / workload.layers / 2
    for layer in reversed(range(workload.layers)):
        done = experts(f"backward {layer}", half_s, done)
        done = builder.compute(f"backward {layer}", hosts, half_s, done)
    return builder.graph()
