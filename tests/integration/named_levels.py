"""A policy for tests: a job named ``x-6-1`` has level 6 and order 1 at its hosts, on the paths of the hash."""

from policies.coflows import job_coflows
from policies.plan import Plan
from policies.plan_builder import JobDecision, plan_of
from policies.policy import Policy
from policies.snapshot import Snapshot


def _decide(snapshot: Snapshot) -> Plan:
    decisions = [
        JobDecision(coflow, int(level), int(order), "Its name says so.")
        for coflow in job_coflows(snapshot)
        for _, level, order in [coflow.job.name.split("-")]
    ]
    return plan_of("named-levels", sorted(decisions, key=lambda decision: (-decision.level, decision.order)))


policy = Policy("named-levels", "levels and orders that jobs have in their names", _decide)
