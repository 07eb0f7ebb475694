"""What a run notes of every Plan that comes into force, decided in the same process or told by a controller."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from controller.planning.decision import Decision
from hostlib import types as told
from policies.flows import FlowKey
from policies.plan import JobPlan
from topologies.fabric import Fabric, Path


@dataclass(frozen=True, slots=True)
class NotedPlan:
    """Decisions for jobs, the paths of flows, and how many rules for single flows all switches hold together."""

    num_rules: int
    jobs: tuple[JobPlan, ...]
    paths: Mapping[FlowKey, Path]

    @classmethod
    def of(cls, decision: Decision) -> Self:
        """A decision of the same process."""
        plans = decision.plan.flows
        flows = (flow for job in decision.snapshot.jobs for flow in job.told_flows)
        paths = {flow.key: plans[flow.key].path or flow.hashed_path for flow in flows}
        return cls(decision.num_rules, decision.plan.jobs, paths)

    @classmethod
    def from_controller(cls, plan: told.PlanInForce, fabric: Fabric) -> Self:
        """What a controller has told of the Plan in force."""
        jobs = tuple(
            JobPlan(
                name=job.name,
                rank=job.rank,
                level=job.level,
                intensity=job.intensity,
                correction_factor=job.correction_factor,
                priority=job.priority,
                time_shift_s=job.time_shift_s,
                reason=job.reason,
            )
            for job in plan.jobs
        )
        paths = {FlowKey(flow.job, flow.flow_group, flow.flow): _links(flow.path, fabric) for flow in plan.flows}
        return cls(plan.num_rules, jobs, paths)


def _links(path: told.Path, fabric: Fabric) -> Path:
    hops = zip(path.nodes, path.nodes[1:], path.links, strict=False)
    return tuple(fabric.links_between(here, there)[parallel] for here, there, parallel in hops)
