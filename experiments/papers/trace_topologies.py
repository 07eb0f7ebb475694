"""The two topologies on which Crux's paper simulates its trace (section 6.1), and one with less capacity.

How many hosts there are and how fast the links, it does not say.
"""

from enum import StrEnum

from topologies.pods import DoubleSidedSpecification
from topologies.regular import ClosSpecification
from workloads.traces.assumptions import Assumptions


class TraceTopology(StrEnum):
    """``CLOS`` is the one that the assumptions have, 173 ToRs and 16 aggregation switches in those shipped.

    ``THIN_CLOS`` is not the paper's: it has a quarter of those aggregation switches, so that jobs have to share.
    """

    CLOS = "clos"
    DOUBLE_SIDED = "double-sided"
    THIN_CLOS = "thin-clos"


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


THIN_CLOS = ClosSpecification(
    kind="clos",
    tors=173,
    aggs=4,
    hosts_per_tor=2,
    gpus_per_host=8,
    nics_per_host=8,
    host_link_gbps=800,
    uplink_gbps=100,
)
"""Hosts could send a ToR four times what it can pass on; a flow can still have all that its NIC sends."""


def assumed_on(topology: TraceTopology, assumptions: Assumptions) -> Assumptions:
    """The assumptions, on one of these."""
    match topology:
        case TraceTopology.CLOS:
            return assumptions
        case TraceTopology.DOUBLE_SIDED:
            return assumptions.on(DOUBLE_SIDED)
        case TraceTopology.THIN_CLOS:
            return assumptions.on(THIN_CLOS)
