"""The two topologies on which Crux's paper simulates its trace (section 6.1).

How many hosts there are and how fast the links, it does not say.
"""

from enum import StrEnum

from topologies.pods import DoubleSidedSpecification
from workloads.traces.assumptions import Assumptions


class TraceTopology(StrEnum):
    """``CLOS`` is the one that the assumptions have, 173 ToRs and 16 aggregation switches in those shipped."""

    CLOS = "clos"
    DOUBLE_SIDED = "double-sided"


DOUBLE_SIDED = DoubleSidedSpecification(
    kind="double_sided",
    pods=3,
    tors=6,
    aggs=12,
    cores=32,
    hosts_per_pair=116,
    gpus_per_host=8,
    nics_per_host=8,
    host_link_gbps=800,
    uplink_gbps=100,
    uplinks_per_pair=8,
    core_link_gbps=100,
)
"""Two hosts more than the Clos has, and cables of 100 Gbit/s as there: as many between a ToR and an aggregation switch
as a ToR has ports for, so that hosts could send a ToR 14 times what it can pass on."""


def assumed_on(topology: TraceTopology, assumptions: Assumptions) -> Assumptions:
    """The assumptions, on one of the two."""
    return assumptions if topology is TraceTopology.CLOS else assumptions.on(DOUBLE_SIDED)
