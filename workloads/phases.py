"""The ``phases`` workload: one compute phase, one flow group that starts somewhere inside it."""

from collections.abc import Iterator

from workloads.flows import flows_between
from workloads.placement import Placement
from workloads.task_graph import Computation, FlowGroupSpec, FlowSpec, GroupTransfer, Task, TaskGraph
from workloads.workload import Pattern, PhasesWorkload, Transfer

GROUP = "communication"
"""Name of the flow group of a ``phases`` job."""


def expand_phases(workload: PhasesWorkload, placement: Placement) -> TaskGraph:
    """One iteration as the workload describes it."""
    hosts = tuple(placement.gpus)
    flows = tuple(_flows(workload, hosts, placement))
    return compute_and_send(GROUP, workload.compute_s, workload.comm_start, hosts, flows)


def compute_and_send(
    group: str, compute_s: float, comm_start: float, hosts: tuple[str, ...], flows: tuple[FlowSpec, ...]
) -> TaskGraph:
    """Compute up to the fraction ``comm_start``; then the rest of the computation and the group side by side.

    Without flows there is one computation and no group.
    """
    before_s = compute_s * (comm_start if flows else 1.0)
    tasks: list[Task] = []
    if before_s > 0:
        tasks.append(Computation("before communication", hosts, before_s))
    after = tuple(range(len(tasks)))
    if before_s < compute_s:
        tasks.append(Computation("during communication", hosts, compute_s - before_s, after))
    if not flows:
        return TaskGraph(tuple(tasks))
    tasks.append(GroupTransfer(group, after))
    return TaskGraph(tuple(tasks), (FlowGroupSpec(group, flows),))


def transfers(workload: PhasesWorkload, hosts: tuple[str, ...]) -> tuple[Transfer, ...]:
    """What the hosts of a job send one another in an iteration, host to host."""
    if workload.flows is not None:
        return workload.flows
    if not workload.bytes:
        return ()
    peers = {source: _peers(workload.pattern, position, hosts) for position, source in enumerate(hosts)}
    return tuple(
        Transfer(source=source, destination=destination, bytes=workload.bytes / len(destinations))
        for source, destinations in peers.items()
        for destination in destinations
    )


def _peers(pattern: Pattern | None, position: int, hosts: tuple[str, ...]) -> tuple[str, ...]:
    others = hosts[position + 1 :] + hosts[:position]
    match pattern:
        case Pattern.RING:
            return others[:1]
        case Pattern.ALL_TO_ALL:
            return others
        case Pattern.PAIRS:
            return others[:1] if position % 2 == 0 else ()
    raise ValueError("a workload that gives bytes needs a pattern")


def _flows(workload: PhasesWorkload, hosts: tuple[str, ...], placement: Placement) -> Iterator[FlowSpec]:
    for transfer in transfers(workload, hosts):
        yield from flows_between(
            transfer.source, transfer.destination, transfer.bytes, workload.flows_per_pair, placement
        )
