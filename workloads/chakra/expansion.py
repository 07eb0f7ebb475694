"""The task graph of a job that plays a trace: ranks fill its hosts in order, and what leaves a host is flows."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise

from workloads.chakra.folders import read_trace
from workloads.chakra.joining import Trace, TraceCollective, TraceComputation
from workloads.chakra.rank_trace import Unit
from workloads.chakra.wire import CollectiveType
from workloads.chakra_workload import ChakraWorkload
from workloads.combined.nccl import Collective, local_s
from workloads.placement import Placement
from workloads.task_graph import Done, FlowSpec, GraphBuilder, TaskGraph
from workloads.traffic_patterns import flows_between

LEAST_COMPUTATION_S = 1e-9
"""What an iteration computes at least."""

_LOCAL = {
    CollectiveType.ALL_REDUCE: Collective.ALL_REDUCE,
    CollectiveType.ALL_GATHER: Collective.ALL_GATHER,
    CollectiveType.ALL_TO_ALL: Collective.ALL_TO_ALL,
    CollectiveType.REDUCE_SCATTER: Collective.REDUCE_SCATTER,
    CollectiveType.REDUCE_SCATTER_BLOCK: Collective.REDUCE_SCATTER,
}
_ROOTED = (CollectiveType.REDUCE, CollectiveType.BROADCAST, CollectiveType.GATHER, CollectiveType.SCATTER)

Sent = Iterator[tuple[tuple[str, str], float]]


def trace_of(workload: ChakraWorkload) -> Trace:
    """Return the trace that a workload names. Raises ChakraError where it cannot be used."""
    return read_trace(workload.folder, workload.reading, workload.groups_file)


def expand_chakra(workload: ChakraWorkload, placement: Placement) -> TaskGraph:
    """Return the task graph of an iteration. ``workloads.chakra.fitting`` says which jobs it takes."""
    trace = trace_of(workload)
    return expand_trace(trace, placement, workload.nvlink_gbps, workload.flows_per_pair, workload.step_latency_s)


def expand_trace(
    trace: Trace,
    placement: Placement,
    nvlink_gbps: float | None = None,
    flows_per_pair: int | None = None,
    step_latency_s: float = 0.0,
) -> TaskGraph:
    """Return the task graph of a trace, with ranks on the GPUs of a placement in order."""
    host_of = [host for host, gpus in placement.gpus.items() for _ in gpus]
    bytes_per_s = (nvlink_gbps or 0.0) * 1e9 / 8
    builder = GraphBuilder()
    done: list[Done] = []
    for task in trace.tasks:
        after: Done = tuple(number for earlier in task.after for number in done[earlier])
        if isinstance(task, TraceComputation):
            host = host_of[task.rank]
            share = 1 / len(placement.gpus[host]) if task.unit is Unit.GPU else 0.0
            name = f"rank {task.rank} {task.unit.value}"
            done.append(builder.compute(name, (host,), task.duration_s, after, share=share))
            continue
        at = Counter(host_of[rank] for rank in task.ranks)
        name = "sends" if task.type is None else task.type.name.lower().replace("_", "-")
        if len(at) == 1:
            duration_s = _local_s(task, bytes_per_s)
            done.append(builder.compute(f"{name} inside a host", tuple(at), duration_s, after, share=0.0))
            continue
        sent: defaultdict[tuple[str, str], float] = defaultdict(float)
        for pair, size_bytes in _between_hosts(task, at, host_of):
            sent[pair] += size_bytes
        flows = _flows(sent, flows_per_pair, placement)
        arrived = builder.send(name, flows, after)
        latency_s = step_latency_s * _steps(task.type, len(at))
        if latency_s:
            arrived = builder.compute(f"steps of {name}", tuple(at), latency_s, arrived, share=0.0)
        done.append(arrived)
    if not any(isinstance(task, TraceComputation) for task in trace.tasks):
        builder.compute("nothing", tuple(placement.gpus), LEAST_COMPUTATION_S, share=0.0)
    return builder.graph()


def _steps(kind: CollectiveType | None, num_hosts: int) -> int:
    """Return how many steps follow each other: of a ring, or of a chain; what is sent directly takes one."""
    if kind in (None, CollectiveType.ALL_TO_ALL, CollectiveType.GATHER, CollectiveType.SCATTER):
        return 1
    return (2 if kind is CollectiveType.ALL_REDUCE else 1) * (num_hosts - 1)


def stays_inside_a_host(trace: Trace, gpus_per_host: int) -> bool:
    """Return whether some communication does, on hosts with so many ranks each."""
    return any(
        isinstance(task, TraceCollective) and len({rank // gpus_per_host for rank in task.ranks}) == 1
        for task in trace.tasks
    )


def _flows(sent: dict[tuple[str, str], float], flows_per_pair: int | None, placement: Placement) -> Iterator[FlowSpec]:
    for (source, destination), size_bytes in sent.items():
        yield from flows_between(source, destination, size_bytes, flows_per_pair, placement)


def _local_s(task: TraceCollective, bytes_per_s: float) -> float:
    """Return how long communication takes inside a host: NCCL's time, or that of the bytes where there is one root."""
    assert bytes_per_s > 0
    if task.type is None or task.type in _ROOTED:
        times = len(task.ranks) - 1 if task.type in (CollectiveType.GATHER, CollectiveType.SCATTER) else 1
        return max(times * task.size_bytes / bytes_per_s, LEAST_COMPUTATION_S)
    return local_s(_LOCAL[task.type], len(task.ranks), _whole_bytes(task), bytes_per_s)


def _whole_bytes(task: TraceCollective) -> float:
    """Return the bytes that are gathered or reduced in all: a gather's nodes give the part of one rank."""
    return task.size_bytes * (len(task.ranks) if task.type is CollectiveType.ALL_GATHER else 1)


def _between_hosts(task: TraceCollective, at: Counter[str], host_of: Sequence[str]) -> Sent:
    """Yield what goes from host to host."""
    n = len(task.ranks)
    size_bytes = _whole_bytes(task)
    hosts = tuple(at)
    match task.type:
        case None:
            yield (host_of[task.ranks[0]], host_of[task.ranks[1]]), size_bytes
        case CollectiveType.ALL_TO_ALL:
            given = task.given_bytes or (size_bytes,) * n
            for source in at:
                sent = sum(each for rank, each in zip(task.ranks, given, strict=True) if host_of[rank] == source)
                for destination, receivers in at.items():
                    if source != destination:
                        yield (source, destination), sent * receivers / n
        case CollectiveType.GATHER | CollectiveType.SCATTER:
            root = host_of[task.root]
            share = 1.0 if task.type is CollectiveType.GATHER else 1 / n
            for host, members in at.items():
                if host != root:
                    pair = (host, root) if task.type is CollectiveType.GATHER else (root, host)
                    yield pair, members * size_bytes * share
        case CollectiveType.BROADCAST | CollectiveType.REDUCE:
            first = hosts.index(host_of[task.root])
            chain = hosts[first:] + hosts[:first]
            for source, destination in pairwise(chain):
                pair = (source, destination) if task.type is CollectiveType.BROADCAST else (destination, source)
                yield pair, size_bytes
        case _:
            passes = 2 if task.type is CollectiveType.ALL_REDUCE else 1
            for source, destination in zip(hosts, (*hosts[1:], hosts[0]), strict=True):
                yield (source, destination), passes * (n - 1) / n * size_bytes
