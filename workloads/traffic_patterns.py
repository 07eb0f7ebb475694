"""Traffic patterns among the hosts of a job: point-to-point, ring and all-to-all."""

from collections.abc import Iterator, Sequence

from workloads.placement import Placement
from workloads.task_graph import FlowSpec
from workloads.workload import Pattern, Phases, Transfer


def flows_between(
    source: str, destination: str, size_bytes: float, count: int | None, placement: Placement
) -> Iterator[FlowSpec]:
    """Split the bytes evenly over ``count`` flows (None: one per NIC of the job at the source).

    At both ends the flows take the job's NICs in turn.
    """
    source_nics, destination_nics = placement.nics[source], placement.nics[destination]
    count = count or len(source_nics)
    for number in range(count):
        yield FlowSpec(
            source,
            source_nics[number % len(source_nics)],
            destination,
            destination_nics[number % len(destination_nics)],
            size_bytes / count,
        )


def ring(hosts: Sequence[str], bytes_per_host: float, count: int | None, placement: Placement) -> Iterator[FlowSpec]:
    """Each host sends to the next, and the last to the first; a single host sends nothing."""
    if len(hosts) > 1:
        for source, destination in zip(hosts, (*hosts[1:], hosts[0]), strict=True):
            yield from flows_between(source, destination, bytes_per_host, count, placement)


def all_to_all(
    hosts: Sequence[str], bytes_per_host: float, count: int | None, placement: Placement
) -> Iterator[FlowSpec]:
    """Each host sends an equal share to every other host; its own share is not sent."""
    for place, source in enumerate(hosts):
        for destination in (*hosts[place + 1 :], *hosts[:place]):
            yield from flows_between(source, destination, bytes_per_host / len(hosts), count, placement)


def transfers(workload: Phases, hosts: tuple[str, ...]) -> tuple[Transfer, ...]:
    """Return the transfers of a ``phases`` workload, host to host."""
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
