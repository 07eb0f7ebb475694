"""From a Plan to how each flow travels in a fluid run: its links, its level, and whom it goes before."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from experiments.scenarios.host_order import HOST_QUEUES, queues_of
from policies.enforcement import Tiers
from policies.flows import Flow, FlowKey
from policies.plan import FlowPlan, Plan
from policies.rates.network import IntArray
from policies.snapshot import Snapshot
from topologies.fabric import Path

_HIGHEST_LEVEL = 7
LAST_TIER = 1 << 31
"""Of flow groups that nobody has ranked yet."""


@dataclass(frozen=True, slots=True)
class Way:
    """A flow's links, those inside its hosts at the end; its level; and its tier, of which a smaller one goes first.

    ``is_lost``: nothing gets through there, or no acknowledgement comes back.
    """

    path: Path
    level: int
    tier: int
    is_lost: bool = False


def undecided_tier(tiers: Tiers) -> int:
    """The tier of flows that nobody has decided on yet: switches serve them on level 0, as all that no rule is for."""
    return _HIGHEST_LEVEL * HOST_QUEUES if tiers is Tiers.LEVELS else LAST_TIER


def ways_of(snapshot: Snapshot, plan: Plan, tiers: Tiers) -> dict[FlowKey, Way]:
    """The ways of all flows under a Plan for the jobs of a Snapshot.

    Tiers of levels are those of the switches, level by level, and inside a level the order that hosts keep where flows
    meet at one of them. Tiers of jobs are the Plan's ranks. Those of flow groups the caller sets as groups come and go.
    """
    flows = [flow for job in snapshot.jobs for flow in job.flows]
    plans = plan.flows
    match tiers:
        case Tiers.LEVELS:
            of_flows = [plans[flow.key] for flow in flows]
            senders = np.array([_way_out(flow) for flow in flows], dtype=np.int64)
            tier_of = tiers_of_levels(of_flows, senders).tolist()
        case Tiers.JOBS:
            ranks = {job.name: job.rank for job in plan.jobs}
            tier_of = [ranks[flow.key.job] for flow in flows]
        case Tiers.GROUPS:
            tier_of = [LAST_TIER] * len(flows)
    return {
        flow.key: Way((*(plans[flow.key].path or flow.hashed_path), *flow.host_links), plans[flow.key].level, tier)
        for flow, tier in zip(flows, tier_of, strict=True)
    }


def tiers_of_levels(plans: Sequence[FlowPlan], ways_out: IntArray) -> IntArray:
    """The tiers of flows by level and, inside a level, by their order among those that leave by the same link."""
    levels = np.array([plan.level for plan in plans], dtype=np.int64)
    orders = np.array([plan.order for plan in plans], dtype=np.int64)
    return (_HIGHEST_LEVEL + 1 - levels) * HOST_QUEUES - 1 - queues_of(orders, ways_out)


def _way_out(flow: Flow) -> int:
    """The link by which a flow leaves its GPUs: that of their PCIe switch, or else their NIC's."""
    return flow.host_links[0] if flow.host_links else flow.hashed_path[0]
