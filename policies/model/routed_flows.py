"""Flows of jobs on their paths, merged into bundles that models can play."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Self

import numpy as np

from policies.arrays import FloatArray, IntArray
from policies.flows import Flow
from policies.job import Job
from policies.model.bundles import Bundles
from policies.model.picoseconds import PS_PER_S
from policies.model.tiers import places_on_hops, tiers_and_places
from policies.rates.network import Network
from policies.task_graph import Transfer
from topologies.fabric import Path


@dataclass(frozen=True, eq=False)
class RoutedFlows:
    """The flows of jobs on given paths. Flows of one transfer that go the same way with the same bytes are a bundle.

    Attributes:
        network: The links that matter: a link is left out where another one, no faster, carries all its bundles.
        rates_bps: By link of the fabric, its rate.
        paths: By bundle, its links in the fabric, those inside hosts last.
        num_outside: By bundle, how many of these are not inside hosts.
        num_bundles: By transfer, job after job and task after task, how many bundles it sends.
        size_bytes: By bundle, what it sends altogether.
        weights: By bundle, how many flows it stands for.
        class_of: By bundle, the class of its flows: what has one level and one place at hosts. By default, classes are
            flow groups, numbered job after job.
        first_links: By bundle, the link by which its flows leave their GPUs.
        latency_ps: By bundle, how long after its bytes are sent they arrive.
    """

    network: Network
    rates_bps: FloatArray
    paths: Sequence[Path]
    num_outside: IntArray
    num_bundles: IntArray
    size_bytes: FloatArray
    weights: FloatArray
    class_of: IntArray
    first_links: IntArray
    latency_ps: IntArray

    @classmethod
    def of(
        cls,
        jobs: Sequence[Job],
        paths: Sequence[Sequence[Path]],
        rates_bps: FloatArray,
        classes: Sequence[Sequence[int]] | None = None,
        delays_s: FloatArray | None = None,
    ) -> Self:
        """Merge the flows of jobs.

        Args:
            jobs: The jobs; their ``played_graph`` tells the transfers.
            paths: By job, the paths of its flows.
            rates_bps: By link of the fabric, its rate.
            classes: By job, the classes of its flows.
            delays_s: By link of the fabric, its delay; links inside hosts have none. By default, none has any.
        """
        num_bundles: list[int] = []
        merged: list[tuple[tuple[Path, float, int, int, int], int]] = []
        for job, of_job, of_flows in zip(jobs, paths, classes or _group_classes(jobs), strict=True):
            flows = job.flows
            for task in job.played_graph.tasks:
                if isinstance(task, Transfer):
                    alike: Counter[tuple[Path, float, int, int, int]] = Counter()
                    for number in task.flows:
                        flow = flows[number]
                        if flow.sends:
                            path, num_outside = (*of_job[number], *flow.host_links), len(of_job[number])
                            alike[path, flow.size_bytes, num_outside, of_flows[number], first_link(flow)] += 1
                    num_bundles.append(len(alike))
                    merged += alike.items()
        delays = [] if delays_s is None else delays_s.tolist()
        latencies_s = [sum(delays[link] for link in path) if delays else 0.0 for (path, *_), _ in merged]
        taken = [path for (path, *_), _ in merged]
        return cls(
            _network(taken, rates_bps),
            rates_bps,
            taken,
            np.array([num_outside for (_, _, num_outside, *_), _ in merged], dtype=np.int64),
            np.array(num_bundles, dtype=np.int64),
            np.array([size_bytes * count for (_, size_bytes, *_), count in merged], dtype=np.float64),
            np.array([count for _, count in merged], dtype=np.float64),
            np.array([of_class for (*_, of_class, _), _ in merged], dtype=np.int64),
            np.array([link for (*_, link), _ in merged], dtype=np.int64),
            np.array([round(latency_s * PS_PER_S) for latency_s in latencies_s], dtype=np.int64),
        )

    @cached_property
    def shape(self) -> bytes:
        """What matters of paths: equal where only links of the same kind have changed their places."""
        network = self.network
        arrays = network.capacities_bps, network.starts, network.links, self.size_bytes, self.class_of, self.latency_ps
        return b"".join(array.tobytes() for array in arrays)

    def bundles(self, levels: IntArray, orders: IntArray) -> Bundles:
        """Return the bundles where classes have these levels, and these places in the order at hosts."""
        of_bundles = levels[self.class_of]
        tiers, places = tiers_and_places(of_bundles, orders[self.class_of], self.first_links)
        network = self._with_places(places) if places.any() else self.network
        return Bundles(network, self.weights, tiers, of_bundles, self.latency_ps)

    def ordered(self, tiers: IntArray) -> Bundles:
        """Return the bundles where these are their tiers."""
        return Bundles(self.network, self.weights, tiers, np.zeros_like(tiers), self.latency_ps)

    def _with_places(self, places: IntArray) -> Network:
        """Return the network of all links: one that keeps an order matters even where another one is no faster."""
        num_hops = np.array([len(path) for path in self.paths], dtype=np.int64)
        used, links = np.unique(np.concatenate([np.array(path) for path in self.paths]), return_inverse=True)
        starts = np.concatenate(([0], np.cumsum(num_hops)))
        by_hop = places_on_hops(places, num_hops, self.num_outside)
        return Network(self.rates_bps[used], starts, links.astype(np.int64), by_hop)


def _group_classes(jobs: Sequence[Job]) -> list[list[int]]:
    """Return by job the number of the group of each flow."""
    first_group = accumulate((len(job.flow_groups) for job in jobs), initial=0)
    return [
        [number for number, group in enumerate(job.flow_groups, first) for _ in group.flows]
        for first, job in zip(first_group, jobs, strict=False)
    ]


def first_link(flow: Flow) -> int:
    """Return the link by which a flow leaves its GPUs: that of their PCIe switch, or else their NIC's."""
    return flow.host_links[0] if flow.host_links else flow.hashed_path[0]


def _network(paths: Sequence[Path], rates_bps: FloatArray) -> Network:
    """Return the network of bundles with these paths."""
    on_link: defaultdict[int, list[int]] = defaultdict(list)
    for bundle, path in enumerate(paths):
        for link in path:
            on_link[link].append(bundle)
    slowest: dict[tuple[int, ...], float] = {}
    for link, crossing in on_link.items():
        key = tuple(crossing)
        slowest[key] = min(slowest.get(key, np.inf), rates_bps[link])
    links_of: list[list[int]] = [[] for _ in paths]
    for number, bundles in enumerate(slowest):
        for bundle in bundles:
            links_of[bundle].append(number)
    rates = list(slowest.values())
    tight = [number for number, bundles in enumerate(slowest) if not _is_loose(number, bundles, links_of, rates)]
    place = {number: index for index, number in enumerate(tight)}
    return Network.of(
        np.array([rates[number] for number in tight], dtype=np.float64),
        [tuple(place[number] for number in links if number in place) for links in links_of],
    )


def _is_loose(link: int, bundles: tuple[int, ...], links_of: Sequence[Sequence[int]], rates: Sequence[float]) -> bool:
    """Return whether another link, no faster, carries all these bundles of a link and others besides."""
    common = {other for other in links_of[bundles[0]] if other != link and rates[other] <= rates[link]}
    for bundle in bundles[1:]:
        if not common:
            return False
        common.intersection_update(links_of[bundle])
    return bool(common)
