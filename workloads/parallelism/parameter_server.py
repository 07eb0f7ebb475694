"""Parameter servers: workers push gradients to them and pull the new parameters (EchelonFlow, section 4, case I).

Both are coflows: a server updates when it has all gradients, an iteration begins when all parameters are there.
"""

from workloads.flows import flows_between
from workloads.graph_builder import GraphBuilder
from workloads.models import MODELS
from workloads.placement import Placement
from workloads.task_graph import FlowSpec, TaskGraph
from workloads.workload import ParameterServerWorkload

PUSH, PULL = "push", "pull"


def expand_parameter_server(workload: ParameterServerWorkload, placement: Placement) -> TaskGraph:
    """One iteration: the push begins inside the computation, as the model says; the pull when both have ended."""
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
