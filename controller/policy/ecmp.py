"""No scheduling: every flow goes where the fabric's hash sends it, and all share one level."""

from controller.policy.intensity import demand, rates_bps
from controller.policy.plan import FlowPlan, JobPlan, Plan
from controller.policy.policy_name import PolicyName
from controller.policy.snapshot import Snapshot


def ecmp(snapshot: Snapshot) -> Plan:
    """Leave all flows to the hash at level 0 and in no order; jobs are ranked by arrival, then name."""
    link_rates_bps = rates_bps(snapshot.links)
    jobs = sorted(snapshot.jobs, key=lambda job: (job.arrival_s, job.name))
    return Plan(
        policy=PolicyName.ECMP,
        jobs=tuple(
            JobPlan(
                name=job.name,
                rank=rank,
                level=0,
                intensity=demand(job, link_rates_bps, lambda flow: (flow.hashed_path,)).intensity,
                correction_factor=None,
                priority=None,
                time_shift_s=0.0,
                reason="ECMP hashes its flows and gives no job precedence.",
            )
            for rank, job in enumerate(jobs)
        ),
        flows={flow.key: FlowPlan(path=None, level=0, order=0) for job in jobs for flow in job.flows},
    )
