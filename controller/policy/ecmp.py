"""No scheduling: every flow goes where the fabric's hash sends it, and all share one level.

The yardstick for all others; it optimises nothing and looks at nothing. Allocator max-min, at job events.
"""

from controller.policy.intensity import rates_bps
from controller.policy.job_order import JobDecision, demands_of, plan_of
from controller.policy.plan import Plan
from controller.policy.policy_name import PolicyName
from controller.policy.snapshot import Snapshot


def ecmp(snapshot: Snapshot) -> Plan:
    """Leave all flows to the hash at level 0 and in no order; jobs are ranked by arrival, then name."""
    demands = sorted(demands_of(snapshot, rates_bps(snapshot.links)), key=lambda demand: demand.job.arrival_s)
    reason = "ECMP hashes its flows and gives no job precedence."
    return plan_of(PolicyName.ECMP, [JobDecision(demand, level=0, order=0, reason=reason) for demand in demands])
