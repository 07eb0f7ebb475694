"""A decision as a JSON object, with the keys that programs rely on."""

from typing import Any

from controller.planning.decision import Decision, FlowDirective, directives_of
from policies.flows import Flow
from topologies.fabric import Fabric


def plan_object(decision: Decision, fabric: Fabric) -> dict[str, Any]:
    """The object that ``trainyard plan --json`` prints; jobs in order of rank."""
    return {
        "policy": decision.plan.policy,
        "jobs": [
            {
                "name": job.name,
                "intensity": job.intensity,
                "correction_factor": job.correction_factor,
                "priority": job.priority,
                "rank": job.rank,
                "level": job.level,
            }
            for job in decision.plan.jobs
        ],
        "flows": [_flow_object(flow, directive, fabric) for flow, directive in planned_flows(decision)],
        "num_rules": decision.num_rules,
    }


def planned_flows(decision: Decision) -> list[tuple[Flow, FlowDirective]]:
    """Every flow with how it travels, jobs in order of their names."""
    directives = directives_of(decision)
    return [pair for job in decision.snapshot.jobs for pair in zip(job.flows, directives[job.name].flows, strict=True)]


def _flow_object(flow: Flow, directive: FlowDirective, fabric: Fabric) -> dict[str, Any]:
    nodes = fabric.nodes_of(directive.path)
    return {
        "job": flow.key.job,
        "group": flow.key.group,
        "flow": flow.key.flow,
        "source": nodes[0],
        "destination": nodes[-1],
        "path": list(nodes),
        "links": [fabric.parallel_index(link) for link in directive.path],
        "level": directive.level,
        "order": directive.order,
        "source_port": flow.five_tuple.source_port,
    }
