"""The connections that the hosts of a run open: the 5-tuple of every flow of every job."""

from collections import Counter
from collections.abc import Sequence

from topologies.addressing import FIRST_SOURCE_PORT, FLOW_DESTINATION_PORT, UDP_PROTOCOL, FiveTuple
from topologies.fabric import Fabric
from workloads.jobs import TrainingJob

Connections = dict[str, dict[str, tuple[FiveTuple, ...]]]
"""5-tuples by job and flow group, in the order of the group's flows."""


def open_connections(
    jobs: Sequence[TrainingJob], fabric: Fabric, opened: Counter[tuple[int, int]] | None = None
) -> Connections:
    """RoCEv2's destination port, and source ports counted up per pair of NICs in the order of jobs and flows.

    These are the 5-tuples that the controller would assign to the same registrations in the same order. ``opened``
    counts what was opened before between the addresses of two NICs, and goes on counting.
    """
    opened = Counter() if opened is None else opened

    def connect(source: int, destination: int) -> FiveTuple:
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
