"""First in, first out: the order of arrival, as the plainest order that there is.

It optimises nothing; it tells what an order alone is worth, whatever the order. Inputs: arrival times. Jobs are ranked
by arrival, then name; every flow takes the path of the fabric's hash. Levels: one each from the top, the lowest for all
that are left (``own_levels``). Allocator order-greedy, at group events; with levels, at job events. O(n log n) in the
jobs.
"""

from collections.abc import Sequence

from controller.policy.intensity import Demand, rates_bps
from controller.policy.job_order import demands_of, plan_in_order
from controller.policy.level_mapping import own_levels
from controller.policy.plan import Plan
from controller.policy.policy_name import PolicyName
from controller.policy.snapshot import Snapshot


def fifo(snapshot: Snapshot) -> Plan:
    """Serve the jobs in the order in which they came."""
    return plan_in_order(
        PolicyName.FIFO,
        snapshot.num_levels,
        demands_of(snapshot, rates_bps(snapshot.links)),
        order=_by_arrival,
        levels=own_levels,
        reason=lambda demand: f"It arrived at {demand.job.arrival_s:.6g} s.",
    )


def _by_arrival(demands: Sequence[Demand]) -> list[int]:
    return sorted(range(len(demands)), key=lambda index: demands[index].job.arrival_s)
