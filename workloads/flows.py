"""The flows that a transfer between two hosts consists of."""

from collections.abc import Iterator, Sequence

from workloads.placement import Placement
from workloads.task_graph import FlowSpec


def flows_between(
    source: str, destination: str, size_bytes: float, count: int | None, placement: Placement
) -> Iterator[FlowSpec]:
    """``count`` flows (None: one per NIC that the job uses at the source) share the bytes evenly.

    They take the job's NICs in turn, at either end.
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
    """Each host sends so many bytes to the next, the last to the first; one host sends nothing."""
    if len(hosts) > 1:
        for source, destination in zip(hosts, (*hosts[1:], hosts[0]), strict=True):
            yield from flows_between(source, destination, bytes_per_host, count, placement)


def all_to_all(
    hosts: Sequence[str], bytes_per_host: float, count: int | None, placement: Placement
) -> Iterator[FlowSpec]:
    """Each host sends so many bytes altogether, an equal share to every host; its own share stays with it."""
    for place, source in enumerate(hosts):
        for destination in (*hosts[place + 1 :], *hosts[:place]):
            yield from flows_between(source, destination, bytes_per_host / len(hosts), count, placement)
