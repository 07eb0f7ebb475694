"""ECMP: no scheduling. Every flow takes the path of the fabric's hash, and all flows share one level.

This is the yardstick for all other policies; it optimises nothing. Allocator max-min, at job events.
"""

from policies.coflows import job_coflows
from policies.enforcement import SWITCH_LEVELS
from policies.plan import Plan
from policies.plan_builder import JobDecision, plan_of
from policies.policy import Policy
from policies.snapshot import Snapshot


def ecmp(snapshot: Snapshot) -> Plan:
    """Leave all flows to the hash, at level 0 and without an order; jobs are ranked by arrival, then name."""
    coflows = sorted(job_coflows(snapshot), key=lambda coflow: coflow.job.arrival_s)
    reason = "ECMP hashes its flows and gives no job precedence."
    return plan_of("ecmp", [JobDecision(coflow, level=0, order=0, reason=reason) for coflow in coflows])


ECMP = Policy(
    "ecmp",
    "no scheduling: the fabric's hash chooses every path, all flows share one level",
    ecmp,
    ideal_rates=SWITCH_LEVELS,
)
