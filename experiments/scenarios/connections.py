"""The connections of a run's hosts: one 5-tuple for every flow of every job."""

from collections import Counter
from collections.abc import Sequence

from topologies.addressing import FIRST_SOURCE_PORT, FLOW_DESTINATION_PORT, UDP_PROTOCOL, Address, FiveTuple
from topologies.fabric import Fabric
from workloads.jobs import TrainingJob

GroupKey = tuple[str, str]
"""The names of a job and of one of its flow groups."""

Connections = dict[str, dict[str, tuple[FiveTuple, ...]]]
"""5-tuples by job and flow group, in the order of the group's flows."""


def open_connections(
    jobs: Sequence[TrainingJob], fabric: Fabric, opened: Counter[tuple[int, int]] | None = None
) -> Connections:
    """Return 5-tuples with RoCEv2's destination port, and source ports counted up for each pair of NICs.

    The controller would assign the same 5-tuples to the same registrations in the same order.

    Args:
        jobs: The jobs, in the order in which they open their connections.
        fabric: Has the addresses of their NICs.
        opened: How many connections each pair of addresses has opened before; it is updated.
    """
    opened = Counter() if opened is None else opened

    def connect(source: Address, destination: Address) -> FiveTuple:
        port = FIRST_SOURCE_PORT + opened[source, destination]
        opened[source, destination] += 1
        return FiveTuple(source, destination, UDP_PROTOCOL, port, FLOW_DESTINATION_PORT)

    return {
        job.name: {
            group.name: tuple(
                connect(
                    fabric.nics[flow.source_host][flow.source_nic].address,
                    fabric.nics[flow.destination_host][flow.destination_nic].address,
                )
                for flow in group.flows
            )
            for group in job.graph.flow_groups
        }
        for job in jobs
    }
