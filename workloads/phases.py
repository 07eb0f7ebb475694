"""The ``phases`` workload: one compute phase, one flow group that starts somewhere inside it."""

from collections.abc import Iterator

from workloads.placement import Placement
from workloads.scenario import JobSpecification, Pattern, PhasesWorkload, Transfer
from workloads.task_graph import Computation, FlowGroupSpec, FlowSpec, GroupTransfer, Task, TaskGraph

GROUP = "communication"
"""Name of the flow group of a ``phases`` job."""


def expand(job: JobSpecification, placement: Placement) -> TaskGraph:
    """One iteration: compute up to ``comm_start``; then the rest of the computation and the group side by side.

    A job without traffic has one computation and no group.
    """
    workload = job.workload
    flows = tuple(_flows(workload, job.hosts, placement))
    before_s = workload.compute_s * (workload.comm_start if flows else 1.0)
    tasks: list[Task] = []
    if before_s > 0:
        tasks.append(Computation("before communication", job.hosts, before_s))
    after = tuple(range(len(tasks)))
    if before_s < workload.compute_s:
        tasks.append(Computation("during communication", job.hosts, workload.compute_s - before_s, after))
    if not flows:
        return TaskGraph(tuple(tasks))
    tasks.append(GroupTransfer(GROUP, after))
    return TaskGraph(tuple(tasks), (FlowGroupSpec(GROUP, flows),))


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
        source_nics, destination_nics = placement.nics[transfer.source], placement.nics[transfer.destination]
        count = workload.flows_per_pair or len(source_nics)
        for number in range(count):
            yield FlowSpec(
                transfer.source,
                source_nics[number % len(source_nics)],
                transfer.destination,
                destination_nics[number % len(destination_nics)],
                transfer.bytes / count,
            )
