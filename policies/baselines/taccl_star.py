"""TACCL*: the least loaded paths, and traffic with the longest way first.

Source: one sentence in which Crux (SIGCOMM 2024, footnote 3) adapts TACCL (Shah et al., NSDI 2023) to scheduling among
jobs: select the least congested link for each job, and prioritise the traffic with longer transmission distances. It
optimises nothing by itself. Inputs: bytes of flows, candidate paths, link rates. Allocator max-min, at job events.
O(flows times candidates).

The sentence leaves the rest open. Here jobs choose in order of arrival, then name. Each flow takes the candidate whose
most loaded link is least loaded with it, then the one with the smaller sum. A link's load is the time for which one
iteration of the flows placed so far occupies it, since TACCL knows nothing of computation. The distance of a job is
that of its farthest flow, in links; of equal distances the job with more bytes per iteration goes first, then by name.
Levels: classes of equal size.
"""

from collections.abc import Sequence
from itertools import zip_longest

import numpy as np

from policies.arrays import FloatArray
from policies.coflows import JobCoflow, job_coflows
from policies.flows import Flow, FlowKey
from policies.job import Job
from policies.lone_paths import is_slower_than_hashed, jobs_that_meet_no_other
from policies.plan import Plan
from policies.plan_builder import equal_classes, plan_in_order
from policies.policy import Policy
from policies.snapshot import Snapshot
from topologies.fabric import Path

_EQUAL = 1 + 1e-9
"""Loads of a smaller ratio are equal: sums of the same loads in another order differ by rounding errors."""


def taccl_star(snapshot: Snapshot) -> Plan:
    """Choose the least loaded paths and serve the jobs by distance, longest first."""
    chosen = _least_loaded_paths(snapshot)

    def hops(job: Job) -> int:
        return max(len(chosen[flow.key]) for flow in job.flows if flow.sends)

    def order(coflows: Sequence[JobCoflow]) -> list[int]:
        keys = [(-hops(coflow.job), -sum(flow.size_bytes for flow in coflow.job.flows)) for coflow in coflows]
        return sorted(range(len(coflows)), key=keys.__getitem__)

    return plan_in_order(
        "taccl-star",
        snapshot.num_levels,
        job_coflows(snapshot, chosen),
        order=order,
        levels=equal_classes,
        reason=lambda coflow: f"Its farthest flow crosses {hops(coflow.job)} links.",
        chosen=chosen,
    )


def _least_loaded_paths(snapshot: Snapshot) -> dict[FlowKey, Path]:
    link_rates_bps = snapshot.links.rates_bps
    no_link = len(snapshot.links)
    loads_s, rates_bps = np.zeros(no_link + 1), np.append(link_rates_bps, np.inf)
    chosen = {}
    for job in sorted(snapshot.jobs, key=lambda job: (job.arrival_s, job.name)):
        for flow in job.flows:
            with np.errstate(over="ignore"):
                path = chosen[flow.key] = _least_loaded(flow, loads_s, rates_bps)
                links = list(path)
                loads_s[links] += flow.size_bytes * 8 / rates_bps[links]
    for number in jobs_that_meet_no_other(snapshot):
        job = snapshot.jobs[number]
        if is_slower_than_hashed(job, [chosen[flow.key] for flow in job.flows], snapshot.links):
            chosen |= {flow.key: flow.hashed_path for flow in job.flows}
    return chosen


def _least_loaded(flow: Flow, loads_s: FloatArray, rates_bps: FloatArray) -> Path:
    """Return the first candidate of those with the least load; loads that differ by rounding errors are equal.

    Both arrays have a last entry for no link at all.
    """
    if len(flow.candidates) == 1:
        return flow.candidates[0]
    links = np.array(list(zip_longest(*flow.candidates, fillvalue=len(rates_bps) - 1)), dtype=np.intp)
    loads = loads_s[links] + flow.size_bytes * 8 / rates_bps[links]
    most, total = loads.max(axis=0), loads.sum(axis=0)
    is_least = most <= most.min() * _EQUAL
    return flow.candidates[int(np.flatnonzero(is_least & (total <= total[is_least].min() * _EQUAL))[0])]


TACCL_STAR = Policy("taccl-star", "TACCL*: least loaded paths, the job with the longest way first", taccl_star)
