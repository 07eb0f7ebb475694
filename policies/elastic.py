"""What jobs that can compress what they send may count on: rates for their flow groups, and slack.

A job that compresses can always send less, at the cost of accuracy; one that does not waits. So such **elastic** groups
share what the others leave on each link over their iterations. That is no rate of a moment, but one at which nobody
waits, however the iterations of jobs lie to each other. Of the others

- those at the group's level or above it delay it. In a window of w seconds, from the group's release until computation
  waits for it, a job that needs a link for c of every T seconds has it for c w / T on average, and at most for
  floor(w / T) c + min(c, w mod T). Of several jobs the averages add up, and what may come on top as independent errors
  do: the root of the sum of squares. For one job that is the worst case.
- those at its level or below it are delayed. Of the share of time for which they need a link, the group takes the share
  for which it sends. That may be ``TOLERATED_LOSS`` in all.

What is left elastic groups share by the allocator that levels are, max-min, so that each gets the same share of what it
would send uncompressed until that fits. Levels do not count among them: a level follows from what a group sends, and
that from its rate, so rates that followed their order would chase themselves.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from policies.arrays import FloatArray, IntArray, LinkArray
from policies.flows import FlowGroup, FlowKey
from policies.intensity import iterations
from policies.job import Job
from policies.plan import Plan
from policies.snapshot import Snapshot
from policies.traffic import Traffic
from topologies.fabric import Path

LEAST_SHARE = 0.01
"""Of a link's rate, is left to elastic groups whatever the others need: they send at least a little."""
TOLERATED_LOSS = 0.02
"""Of their time, what jobs that cannot compress may wait for an elastic group: as much as its job may, by default."""
_LEAST_WINDOW_S = 1e-3


@dataclass(frozen=True, slots=True, eq=False)
class _Elastic:
    """An elastic group.

    Attributes:
        keys: Its flows that send.
        dense_bps: By flow, the rate at which it would send all uncompressed while the window lasts.
        paths: By flow, its links.
        window_s: From the group's release until computation waits for it.
        iteration_s: An iteration of its job alone.
        level: That of its most urgent flow.
    """

    keys: tuple[FlowKey, ...]
    dense_bps: FloatArray
    paths: tuple[Path, ...]
    window_s: float
    iteration_s: float
    level: int


def reliable_rates_bps(snapshot: Snapshot, plan: Plan) -> Mapping[FlowKey, float]:
    """Return what each flow of each elastic group may count on while its group sends, in bit/s.

    The flows of a group are in proportion to what they send, so that all of them end together. None is listed where no
    job compresses: that costs nothing. Otherwise it takes a time linear in all flows, for each elastic group.
    """
    if all(group.dense_bytes is None for job in snapshot.jobs for group in job.flow_groups):
        return {}
    # The allocators import numba, which takes longer than a decision.
    from policies.rates.max_min import max_min
    from policies.rates.network import Network, Order

    num_links = len(snapshot.links)
    others = _Others.of(snapshot, plan)
    groups = list(_elastic_groups(snapshot, plan, others.alone_s))
    if not groups:
        return {}
    own_bps = [_on_links(group.paths, group.dense_bps, num_links) for group in groups]
    # Of what it would send uncompressed, each group gets at most this.
    most = [_least_ratio(others.left_bps(each), own) for each, own in zip(groups, own_bps, strict=True)]
    dense_bps = np.concatenate([group.dense_bps for group in groups])
    caps_bps = np.concatenate([group.dense_bps * min(share, 1.0) for group, share in zip(groups, most, strict=True)])
    left_bps = others.mean_left_bps
    # Each flow crosses a link of its own, too, which keeps it below its cap.
    paths = [path for group in groups for path in group.paths]
    network = Network.of(
        np.concatenate((left_bps, caps_bps)), [(*path, num_links + flow) for flow, path in enumerate(paths)]
    )
    flows = np.arange(len(paths))
    rates_bps = max_min(network, Order.by_rank(flows, np.zeros_like(flows)), dense_bps)
    ends = np.cumsum([len(group.keys) for group in groups])[:-1]
    shares = [float(of_group.min()) for of_group in np.split(rates_bps / dense_bps, ends)]
    taken_bps = sum(own * share for own, share in zip(own_bps, shares, strict=True))
    found: dict[FlowKey, float] = {}
    for group, own, share, at_most in zip(groups, own_bps, shares, most, strict=True):
        # The other groups may leave it more than it needs; it is told all of it.
        free = _least_ratio(left_bps - (taken_bps - own * share), own)
        found.update(zip(group.keys, (group.dense_bps * max(share, min(free, at_most))).tolist(), strict=True))
    return found


def slacks_s(job: Job) -> Mapping[str, float]:
    """Return by elastic group how long its last transfer could take uncompressed before computation waits for it."""
    found = {}
    for number, group in enumerate(job.flow_groups):
        if group.dense_bytes is not None:
            windows_s = _windows_s(job, number, group)
            last = job.transfers.release_s[job.transfers.group_of == number].argmax()
            found[group.name] = float(windows_s[last])
    return found


@dataclass(frozen=True, slots=True, eq=False)
class _Others:
    """All that cannot be compressed: one entry for each job and link that it uses.

    Attributes:
        links: By entry, the link.
        busy_s: By entry, for how long an iteration needs it.
        iteration_s: By entry, how long the job's iteration is alone.
        levels: By entry, that of the job's most urgent flow.
        alone_s: By job, how long its iteration is alone.
        rates_bps: By link, its rate.
        foreign: By link, the share of it that foreign traffic takes.
    """

    links: LinkArray
    busy_s: FloatArray
    iteration_s: FloatArray
    levels: IntArray
    alone_s: FloatArray
    rates_bps: FloatArray
    foreign: FloatArray

    @classmethod
    def of(cls, snapshot: Snapshot, plan: Plan) -> "_Others":
        """Add up the flows of all jobs, on the paths of the Plan or else of the hash."""
        rates_bps = snapshot.links.rates_bps
        traffic = Traffic.with_paths(snapshot.jobs, lambda flow: (plan.flows[flow.key].path or flow.hashed_path,))
        alone = iterations(snapshot.jobs, traffic.loads(len(rates_bps)).transfer_s(rates_bps))
        alone_s = np.array([each.duration_s for each in alone])
        level_of = {job.name: job.level for job in plan.jobs}
        is_elastic = np.array(
            [group.dense_bytes is not None for job in snapshot.jobs for group in job.flow_groups for _ in group.flows]
        )
        loads = replace(traffic, size_bytes=np.where(is_elastic, 0.0, traffic.size_bytes)).loads(len(rates_bps))
        return cls(
            loads.links,
            loads.num_bytes * 8 / rates_bps[loads.links],
            np.repeat(alone_s, np.diff(loads.first)),
            np.repeat(np.array([level_of[job.name] for job in snapshot.jobs]), np.diff(loads.first)),
            alone_s,
            rates_bps,
            snapshot.foreign_utilisation,
        )

    @property
    def mean_left_bps(self) -> FloatArray:
        """By link, what is left of it on average."""
        taken = self.foreign + self._on_links(self.busy_s / self.iteration_s)
        return self._of_rates(1 - taken)

    def left_bps(self, group: _Elastic) -> FloatArray:
        """Return by link at which rate nobody waits for a group, nor the group for others."""
        mean = self.busy_s / self.iteration_s
        whole, rest_s = np.divmod(group.window_s, self.iteration_s)
        beyond = (whole * self.busy_s + np.minimum(self.busy_s, rest_s)) / group.window_s - mean
        delays = self.levels >= group.level
        taken = self.foreign + self._on_links(mean * delays) + np.sqrt(self._on_links(beyond**2 * delays))
        delayed = self._on_links(mean * (self.levels <= group.level))
        with np.errstate(divide="ignore"):
            harmless = TOLERATED_LOSS / delayed * group.iteration_s / group.window_s
        return self._of_rates(np.minimum(1 - taken, harmless))

    def _of_rates(self, share: FloatArray) -> FloatArray:
        return np.asarray(np.clip(share, LEAST_SHARE, 1.0) * self.rates_bps)

    def _on_links(self, values: FloatArray) -> FloatArray:
        return np.bincount(self.links, values, len(self.rates_bps))


def _elastic_groups(snapshot: Snapshot, plan: Plan, alone_s: FloatArray) -> Iterator[_Elastic]:
    for job, iteration_s in zip(snapshot.jobs, alone_s.tolist(), strict=True):
        for number, group in enumerate(job.flow_groups):
            scale = _dense_scale(group)
            flows = [flow for flow in group.flows if flow.sends] if scale else []
            if flows:
                window_s = max(float(_windows_s(job, number, group).sum()), _LEAST_WINDOW_S)
                yield _Elastic(
                    tuple(flow.key for flow in flows),
                    np.array([8 * scale * flow.size_bytes / window_s for flow in flows]),
                    tuple((*(plan.flows[flow.key].path or flow.hashed_path), *flow.host_links) for flow in flows),
                    window_s,
                    iteration_s,
                    max(plan.flows[flow.key].level for flow in flows),
                )


def _windows_s(job: Job, number: int, group: FlowGroup) -> FloatArray:
    """Return by transfer of a group from when to when it could send all uncompressed.

    A graph that the job has told releases it so much later as it sends less.
    """
    of_group = job.transfers.group_of == number
    windows_s = job.transfers.due_s[of_group] - job.transfers.release_s[of_group]
    return np.asarray(windows_s if job.task_graph is None else windows_s * max(_dense_scale(group), 1.0))


def _dense_scale(group: FlowGroup) -> float:
    """Return how many times as much as now a group would send uncompressed; 0 where it cannot compress."""
    sent_bytes = sum(flow.size_bytes for flow in group.flows)
    return group.dense_bytes / sent_bytes if group.dense_bytes and sent_bytes else 0.0


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
