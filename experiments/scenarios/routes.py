"""From a Plan to how each flow travels in a run: its links, its level, and which flows it goes before.

Inside a level hosts keep the order of the Plan's ranks, by the few queues that an emulated NIC has.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from policies.enforcement import Tiers
from policies.flows import Flow, FlowKey
from policies.plan import FlowPlan, Plan
from policies.rates.network import IntArray
from policies.snapshot import Snapshot
from topologies.fabric import Path

HOST_QUEUES = 8
"""Queues of a NIC in strict priority, 7 the most urgent."""
_HIGHEST_LEVEL = 7
LAST_TIER = 1 << 31
"""Of flow groups that nobody has ranked yet."""


@dataclass(frozen=True, slots=True)
class Route:
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


def routes_of(snapshot: Snapshot, plan: Plan, tiers: Tiers) -> dict[FlowKey, Route]:
    """The routes of all flows under a Plan for the jobs of a Snapshot.

    Tiers of levels are those of the switches, level by level, and inside a level the order that hosts keep where flows
    meet at one of them. Tiers of jobs are the Plan's ranks. Those of flow groups the caller sets as groups come and go.
    """
    flows = [flow for job in snapshot.jobs for flow in job.flows]
    plans = plan.flows
    match tiers:
        case Tiers.LEVELS:
            of_flows = [plans[flow.key] for flow in flows]
            senders = np.array([_first_link(flow) for flow in flows], dtype=np.int64)
            tier_of = tiers_of_levels(of_flows, senders).tolist()
        case Tiers.JOBS:
            ranks = {job.name: job.rank for job in plan.jobs}
            tier_of = [ranks[flow.key.job] for flow in flows]
        case Tiers.GROUPS:
            tier_of = [LAST_TIER] * len(flows)
    return {
        flow.key: Route((*(plans[flow.key].path or flow.hashed_path), *flow.host_links), plans[flow.key].level, tier)
        for flow, tier in zip(flows, tier_of, strict=True)
    }


def tiers_of_levels(plans: Sequence[FlowPlan], first_links: IntArray) -> IntArray:
    """The tiers of flows by level and, inside a level, by their order among those that leave by the same link."""
    levels = np.array([plan.level for plan in plans], dtype=np.int64)
    orders = np.array([plan.order for plan in plans], dtype=np.int64)
    return (_HIGHEST_LEVEL + 1 - levels) * HOST_QUEUES - 1 - queues_of(orders, first_links)


def _first_link(flow: Flow) -> int:
    """The link by which a flow leaves its GPUs: that of their PCIe switch, or else their NIC's."""
    return flow.host_links[0] if flow.host_links else flow.hashed_path[0]


def host_queues(orders: Mapping[int, int], senders: Mapping[int, int]) -> dict[int, int]:
    """A queue per flow, from its order at the host (0 first) and the NIC it leaves by.

    The orders that meet at a NIC get a queue each from the top; what comes behind the eighth shares the last.
    """
    by_flow = np.fromiter(orders.values(), np.int64, len(orders))
    queues = queues_of(by_flow, np.array([senders[flow] for flow in orders], dtype=np.int64))
    return dict(zip(orders, queues.tolist(), strict=True))


def queues_of(orders: IntArray, senders: IntArray) -> IntArray:
    """The same of flows as arrays; orders and senders from 0."""
    num_orders = int(orders.max(initial=0)) + 1
    met, of_flow = np.unique(senders * num_orders + orders, return_inverse=True)
    first = np.unique(met // num_orders, return_index=True)[1]
    places = np.arange(len(met)) - np.repeat(first, np.diff(np.append(first, len(met))))
    return np.asarray(np.maximum(HOST_QUEUES - 1 - places, 0)[of_flow])
