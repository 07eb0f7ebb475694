"""What jobs that can compress what they send may count on: rates for their flow groups, and slack.

A job that compresses can always send less, at the cost of accuracy; one that does not waits. So such **elastic** groups
share what the others leave on each link **over their iterations**: a share of time, not what is free at one moment.
A link of rate R that other jobs occupy for a share s of the time leaves (1 - s) R. There each elastic group gets the
same share of what it would send uncompressed, by the allocator that levels are (max-min), until that fits.

Levels do not count between elastic groups. A level follows from what a group sends, and that from its rate: rates that
followed levels would chase themselves.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from policies.arrays import FloatArray
from policies.flows import FlowGroup, FlowKey
from policies.intensity import iterations
from policies.job import Job
from policies.plan import Plan
from policies.snapshot import Snapshot
from policies.traffic import Traffic
from topologies.fabric import Path

LEAST_SHARE = 0.01
"""Of a link's rate, is left to elastic groups whatever the others need: they send at least a little."""
_LEAST_WINDOW_S = 1e-3


@dataclass(frozen=True, slots=True, eq=False)
class _Elastic:
    """An elastic group: its flows, what they would send each, over which links, and in which time."""

    keys: tuple[FlowKey, ...]
    dense_bps: FloatArray
    """By flow, the rate at which it would send all uncompressed while the group's window lasts."""
    links: tuple[Path, ...]


def reliable_rates_bps(snapshot: Snapshot, plan: Plan) -> Mapping[FlowKey, float]:
    """Return what each flow of each elastic group may count on while its group sends, in bit/s.

    The flows of a group are in proportion to what they send, so that all of them end together. None is listed where no
    job compresses: the decision then costs nothing. Otherwise it takes a time linear in all flows.
    """
    groups = list(_elastic_groups(snapshot, plan))
    if not groups:
        return {}
    # The allocators import numba, which takes longer than a decision.
    from policies.rates.max_min import max_min
    from policies.rates.network import Network, Order

    left_bps = _left_bps(snapshot, plan)
    used, of_hops = np.unique(
        np.concatenate([path for group in groups for path in map(np.array, group.links)]), return_inverse=True
    )
    hops = iter(of_hops.tolist())
    paths = [tuple(next(hops) for _ in path) for group in groups for path in group.links]
    dense_bps = np.concatenate([group.dense_bps for group in groups])
    # Each flow crosses a link of its own, too, which limits it to what it would send uncompressed.
    capacities_bps = np.concatenate((left_bps[used], dense_bps))
    network = Network.of(capacities_bps, [(*path, len(used) + flow) for flow, path in enumerate(paths)])
    flows = np.arange(len(paths))
    rates_bps = max_min(network, Order.by_rank(flows, np.zeros_like(flows)), dense_bps)
    ends = np.cumsum([len(group.keys) for group in groups])
    members = [slice(end - len(group.keys), end) for end, group in zip(ends.tolist(), groups, strict=True)]
    for of_group in members:
        rates_bps[of_group] = dense_bps[of_group] * (rates_bps[of_group] / dense_bps[of_group]).min()
    taken_bps = _on_links(paths, rates_bps, len(used))
    found: dict[FlowKey, float] = {}
    for group, of_group in zip(groups, members, strict=True):
        # What the others of these leave may be more than it needs; it is told all of it.
        own_paths, own_bps = paths[of_group], dense_bps[of_group]
        own = _on_links(own_paths, own_bps, len(used))
        others_bps = taken_bps - _on_links(own_paths, rates_bps[of_group], len(used))
        crossed = own > 0
        share = float((np.maximum(left_bps[used] - others_bps, 0.0)[crossed] / own[crossed]).min())
        share = max(share, float((rates_bps[of_group] / own_bps).min()))
        found.update(zip(group.keys, (own_bps * share).tolist(), strict=True))
    return found


def slacks_s(job: Job) -> Mapping[str, float]:
    """Return by elastic group how long its last transfer may take, from its release, before computation waits."""
    found = {}
    for number, group in enumerate(job.flow_groups):
        if group.dense_bytes is not None:
            (of_group,) = np.nonzero(job.transfers.group_of == number)
            last = of_group[job.transfers.release_s[of_group].argmax()]
            found[group.name] = float(job.transfers.due_s[last] - job.transfers.release_s[last])
    return found


def _elastic_groups(snapshot: Snapshot, plan: Plan) -> Iterator[_Elastic]:
    for job in snapshot.jobs:
        for number, group in enumerate(job.flow_groups):
            scale = _dense_scale(group)
            flows = [flow for flow in group.flows if flow.sends] if scale else []
            if flows:
                (of_group,) = np.nonzero(job.transfers.group_of == number)
                windows_s = job.transfers.due_s[of_group] - job.transfers.release_s[of_group]
                window_s = max(float(windows_s.sum()), _LEAST_WINDOW_S)
                yield _Elastic(
                    tuple(flow.key for flow in flows),
                    np.array([8 * scale * flow.size_bytes / window_s for flow in flows]),
                    tuple((*(plan.flows[flow.key].path or flow.hashed_path), *flow.host_links) for flow in flows),
                )


def _dense_scale(group: FlowGroup) -> float:
    """Return how many times as much as now a group would send uncompressed; 0 where it cannot compress."""
    sent_bytes = sum(flow.size_bytes for flow in group.flows)
    return group.dense_bytes / sent_bytes if group.dense_bytes and sent_bytes else 0.0


def _left_bps(snapshot: Snapshot, plan: Plan) -> FloatArray:
    """Return by link what all that cannot be compressed leaves of it, each job iterating as if alone."""
    rates_bps = snapshot.links.rates_bps
    traffic = Traffic.with_paths(snapshot.jobs, lambda flow: (plan.flows[flow.key].path or flow.hashed_path,))
    loads = traffic.loads(len(rates_bps))
    alone = iterations(snapshot.jobs, loads.transfer_s(rates_bps))
    durations_s = np.repeat([each.duration_s for each in alone], np.diff(loads.first))
    shares = np.bincount(
        loads.links, loads.num_bytes * 8 / rates_bps[loads.links] / durations_s, minlength=len(rates_bps)
    ).astype(np.float64)
    for job, iteration in zip(snapshot.jobs, alone, strict=True):
        for group in job.flow_groups:
            for flow in group.flows if group.dense_bytes is not None else ():
                if flow.sends:
                    crossed = [*(plan.flows[flow.key].path or flow.hashed_path), *flow.host_links]
                    shares[crossed] -= flow.size_bytes * 8 / rates_bps[crossed] / iteration.duration_s
    left = np.clip(1 - shares - snapshot.foreign_utilisation, LEAST_SHARE, 1.0)
    return np.asarray(left * rates_bps)


def _on_links(paths: list[Path], rates_bps: FloatArray, num_links: int) -> FloatArray:
    """Return by link the sum of the rates of flows with these paths."""
    total = np.zeros(num_links)
    for path, rate_bps in zip(paths, rates_bps.tolist(), strict=True):
        total[list(path)] += rate_bps
    return total
