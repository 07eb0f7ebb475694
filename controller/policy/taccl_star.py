"""TACCL*: the least loaded paths, and first the traffic that has the longest way.

Optimises nothing by itself: it is what Crux (SIGCOMM 2024, footnote 3) makes of TACCL (Shah et al., NSDI 2023) to
schedule among jobs, and one sentence: select the least congested link for each job, and prioritise the traffic with
longer transmission distances. Inputs: bytes of flows, candidate paths, link rates. Allocator max-min, at job events.
O(flows times candidates).

What the sentence leaves open: jobs choose in order of arrival, then name; the unit is a flow, which takes the candidate
whose most loaded link is least loaded, then that with the smaller sum; a link's load is the seconds that an iteration
of those placed before occupies it, since TACCL knows nothing of computation. A job's distance is that of its farthest
flow, in links; of equal distances the one with more bytes per iteration goes first, then the name. Levels: classes of
equal size.
"""

from collections.abc import Sequence

import numpy as np

from controller.policy.intensity import Demand, FloatArray, rates_bps
from controller.policy.job_order import demands_of, plan_in_order
from controller.policy.level_mapping import equal_classes
from controller.policy.plan import Plan
from controller.policy.policy_name import PolicyName
from controller.policy.snapshot import Flow, FlowKey, Job, Snapshot
from topologies.fabric import Path


def taccl_star(snapshot: Snapshot) -> Plan:
    """Choose the least loaded paths and serve the jobs by distance, longest first."""
    link_rates_bps = rates_bps(snapshot.links)
    chosen = _least_loaded_paths(snapshot, link_rates_bps)

    def hops(job: Job) -> int:
        return max(len(chosen[flow.key]) for flow in job.flows if flow.size_bytes > 0)

    def order(demands: Sequence[Demand]) -> list[int]:
        keys = [(-hops(demand.job), -sum(flow.size_bytes for flow in demand.job.flows)) for demand in demands]
        return sorted(range(len(demands)), key=keys.__getitem__)

    return plan_in_order(
        PolicyName.TACCL_STAR,
        snapshot.num_levels,
        demands_of(snapshot, link_rates_bps, chosen),
        order=order,
        levels=equal_classes,
        reason=lambda demand: f"Its farthest flow crosses {hops(demand.job)} links.",
        chosen=chosen,
    )


def _least_loaded_paths(snapshot: Snapshot, link_rates_bps: FloatArray) -> dict[FlowKey, Path]:
    loads_s = np.zeros(len(link_rates_bps))
    chosen = {}
    for job in sorted(snapshot.jobs, key=lambda job: (job.arrival_s, job.name)):
        for flow in job.flows:
            path = chosen[flow.key] = _least_loaded(flow, loads_s)
            links = list(path)
            loads_s[links] += flow.size_bytes * 8 / link_rates_bps[links]
    return chosen


def _least_loaded(flow: Flow, loads_s: FloatArray) -> Path:
    if len(flow.candidates) == 1:
        return flow.candidates[0]
    loads = [loads_s[list(path)] for path in flow.candidates]
    return flow.candidates[min(range(len(loads)), key=lambda index: (loads[index].max(), loads[index].sum()))]
