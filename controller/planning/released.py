"""A decision whose rules have been withdrawn: what is left of it on switches and at hosts."""

from dataclasses import replace

from controller.planning.decision import Decision


def without_rules(decision: Decision) -> Decision:
    """The decision with all flows on the path of the hash, with the source ports that they have, and at level 0."""
    plan = decision.plan
    jobs = tuple(replace(job, level=0) for job in plan.jobs)
    flows = {key: each._replace(path=None, level=0) for key, each in plan.flows.items()}
    return replace(
        decision,
        snapshot=replace(decision.snapshot, profiled=None, pins=()),
        plan=replace(plan, jobs=jobs, flows=flows),
        rules={},
        job_rules={},
    )
