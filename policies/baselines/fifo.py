"""First in, first out: jobs in order of arrival, the simplest order there is.

It optimises nothing, and shows what any order is worth. Inputs: arrival times. Jobs are ranked by arrival, then name,
and every flow takes the path of the fabric's hash. Levels: one each from the top, the lowest for all that are left
(``own_levels``). Allocator order-greedy, at group events; with levels, at job events. O(n log n) in the jobs.
"""

from collections.abc import Sequence

from policies.coflows import JobCoflow, job_coflows
from policies.enforcement import Allocator, Cadence, RateControl, Tiers
from policies.plan import Plan
from policies.plan_builder import own_levels, plan_in_order
from policies.policy import Policy
from policies.snapshot import Snapshot


def fifo(snapshot: Snapshot) -> Plan:
    """Serve the jobs in order of arrival."""
    return plan_in_order(
        "fifo",
        snapshot.num_levels,
        job_coflows(snapshot),
        order=_by_arrival,
        levels=own_levels,
        reason=lambda coflow: f"It arrived at {coflow.job.arrival_s:.6g} s.",
    )


def _by_arrival(coflows: Sequence[JobCoflow]) -> list[int]:
    return sorted(range(len(coflows)), key=lambda position: coflows[position].job.arrival_s)


FIFO = Policy(
    "fifo",
    "first in, first out: levels by arrival, for comparison",
    fifo,
    ideal_rates=RateControl(Allocator.ORDER_GREEDY, Tiers.GROUPS, Cadence.GROUP_EVENT),
    order_groups=lambda groups: groups.started_s.argsort(kind="stable"),
)
