"""What jobs that can compress what they send may count on: rates for their flow groups.

A job that compresses can always send less, at the cost of accuracy; one that does not waits. So such **elastic** groups
get what the others leave of each link over their iterations, a share of time and no rate of a moment:

- at most the share of time for which nobody else needs the link;
- as others wait for it, no more than they hardly notice. Jobs that need the link for a share u of the time, and elastic
  groups that send for a share v of it, meet for u v. That is a loss where a job waits for its transfers, and may be
  ``TOLERATED_LOSS`` in all.

A rate holds for whole iterations, for a group may send at any time: what its last gradients leave out travels while the
next iteration begins. Elastic groups share a link by the allocator that levels are, max-min, so that each gets the same
share of what it would send uncompressed, until that fits.

Levels do not count here. A level follows from what a group sends, and that from its rate, so rates that followed levels
would chase themselves. A group that sends little is best served first: it delays nobody much. The policy ``trainyard``
sees to that.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from policies.arrays import FloatArray
from policies.flows import FlowKey
from policies.intensity import iterations
from policies.plan import Plan
from policies.snapshot import Snapshot
from policies.traffic import Traffic
from topologies.fabric import Path

TOLERATED_LOSS = 0.015
"""Of their time, what jobs that cannot compress may lose to those that can. With less, these would send so little that
they lose accuracy: of 40 drawn pairs of jobs half sent 0.04 of their gradients at 0.01, 0.08 here, 0.10 at 0.02.
"""
LEAST_SHARE = 0.01
"""Of a link's time, is left to elastic groups whatever the others need: they send at least a little."""


@dataclass(frozen=True, slots=True, eq=False)
class _Elastic:
    """An elastic group.

    Attributes:
        keys: Its flows that send.
        dense_bps: By flow, its mean rate if it sent all uncompressed in each iteration of the job alone.
        paths: By flow, its links.
    """

    keys: tuple[FlowKey, ...]
    dense_bps: FloatArray
    paths: tuple[Path, ...]


def reliable_rates_bps(snapshot: Snapshot, plan: Plan) -> Mapping[FlowKey, float]:
    """Return what each flow of each elastic group may count on, in bit/s: at any time, and on average.

    The flows of a group are in proportion to what they send, so that all of them end together. None is listed where no
    job compresses: that costs nothing. Otherwise it takes a time linear in all flows.
    """
    if all(group.uncompressed is None for job in snapshot.jobs for group in job.flow_groups):
        return {}
    # The allocators import numba, which takes longer than a decision.
    from policies.rates.max_min import max_min
    from policies.rates.network import Network, Order

    traffic = Traffic.with_paths(snapshot.jobs, lambda flow: _paths(flow.key, flow.hashed_path, plan))
    rates_bps = snapshot.links.rates_bps
    alone = iterations(snapshot.jobs, traffic.loads(len(rates_bps)).transfer_s(rates_bps))
    alone_s = np.array([each.duration_s for each in alone])
    groups = list(_elastic_groups(snapshot, plan, alone_s))
    if not groups:
        return {}
    left_bps = _left_bps(snapshot, traffic, alone_s)
    dense_bps = np.concatenate([group.dense_bps for group in groups])
    # Each flow crosses a link of its own, too, which keeps it at what it would send uncompressed.
    paths = [path for group in groups for path in group.paths]
    network = Network.of(
        np.concatenate((left_bps, dense_bps)),
        [(*path, len(rates_bps) + flow) for flow, path in enumerate(paths)],
    )
    flows = np.arange(len(paths))
    shares = max_min(network, Order.by_rank(flows, np.zeros_like(flows)), dense_bps) / dense_bps
    ends = np.cumsum([len(group.keys) for group in groups])[:-1]
    share_of = [float(of_group.min()) for of_group in np.split(shares, ends)]
    own_bps = [_on_links(group.paths, group.dense_bps, len(rates_bps)) for group in groups]
    taken_bps = np.sum([own * share for own, share in zip(own_bps, share_of, strict=True)], axis=0)
    found: dict[FlowKey, float] = {}
    for group, own, share in zip(groups, own_bps, share_of, strict=True):
        # The other groups may leave it more than it needs; it is told all of it.
        most = max(share, _least_ratio(left_bps - (taken_bps - own * share), own))
        found.update(zip(group.keys, (group.dense_bps * most).tolist(), strict=True))
    return found


def _left_bps(snapshot: Snapshot, traffic: Traffic, alone_s: FloatArray) -> FloatArray:
    """Return by link what all that cannot be compressed leaves of it without noticing much."""
    rates_bps = snapshot.links.rates_bps
    is_elastic = [
        group.uncompressed is not None for job in snapshot.jobs for group in job.flow_groups for _ in group.flows
    ]
    loads = replace(traffic, size_bytes=np.where(is_elastic, 0.0, traffic.size_bytes)).loads(len(rates_bps))
    shares = loads.num_bytes * 8 / rates_bps[loads.links] / np.repeat(alone_s, np.diff(loads.first))
    used = np.zeros(len(rates_bps))
    np.add.at(used, loads.links, shares)
    free = 1 - used - snapshot.foreign_utilisation
    with np.errstate(divide="ignore"):
        left = np.maximum(np.minimum(free, TOLERATED_LOSS / used), LEAST_SHARE)
    return np.asarray(left * rates_bps)


def _elastic_groups(snapshot: Snapshot, plan: Plan, alone_s: FloatArray) -> Iterator[_Elastic]:
    for job, iteration_s in zip(snapshot.jobs, alone_s.tolist(), strict=True):
        for group in job.flow_groups:
            flows = [flow for flow in group.flows if flow.sends] if group.uncompressed is not None else []
            if group.uncompressed is not None and flows:
                scale = group.uncompressed.size_bytes / sum(flow.size_bytes for flow in group.flows)
                yield _Elastic(
                    tuple(flow.key for flow in flows),
                    np.array([8 * scale * flow.size_bytes / iteration_s for flow in flows]),
                    tuple((*_paths(flow.key, flow.hashed_path, plan)[0], *flow.host_links) for flow in flows),
                )


def _paths(key: FlowKey, hashed_path: Path, plan: Plan) -> tuple[Path]:
    return (plan.flows[key].path or hashed_path,)


def _on_links(paths: tuple[Path, ...], rates_bps: FloatArray, num_links: int) -> FloatArray:
    """Return by link the sum of the rates of flows with these paths."""
    total = np.zeros(num_links)
    for path, rate_bps in zip(paths, rates_bps.tolist(), strict=True):
        total[list(path)] += rate_bps
    return total


def _least_ratio(left_bps: FloatArray, own_bps: FloatArray) -> float:
    """Return what is left over what a group would send, on the link where that is least."""
    crossed = own_bps > 0
    return max(0.0, float((left_bps[crossed] / own_bps[crossed]).min()))
