"""Traffic of collectives between hosts: what each host sends to which other, for groups of ranks.

The parts of a collective inside hosts overlap with those between hosts, because NVLinks are faster than NICs: a
collective that leaves a host takes the time of its flows. One that stays inside a host takes NCCL's time and no flows.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

from workloads.combined.nccl import Algorithm, Collective, Group, fastest, local_s, send_s
from workloads.combined.ranks import Ranks
from workloads.combined_workload import AllReduce, CombinedWorkload
from workloads.placement import Placement
from workloads.task_graph import FlowSpec
from workloads.traffic_patterns import flows_between


class CollectiveTraffic:
    """The flows, or the time inside hosts, of the collectives of one job."""

    def __init__(self, workload: CombinedWorkload, ranks: Ranks, placement: Placement) -> None:
        self._workload = workload
        self._ranks = ranks
        self._placement = placement

    def inside_s(self, collective: Collective, groups: Iterable[Sequence[int]], size_bytes: float) -> float:
        """Return how long the collective takes in the groups that stay inside a host."""
        sizes = {len(group) for group in groups if len(self._ranks.hosts_of(group)) == 1}
        speed = self._workload.nvlink_bytes_per_s
        return max((local_s(collective, size, size_bytes, speed) for size in sizes), default=0.0)

    def send_inside_s(self, size_bytes: float) -> float:
        """Return how long ranks take to send so much each to another rank of their host, all at once."""
        return send_s(size_bytes, self._workload.nvlink_bytes_per_s)

    def between(
        self, collective: Collective, groups: Iterable[Sequence[int]], size_bytes: float
    ) -> tuple[FlowSpec, ...]:
        """Return the flows of the collective in the groups that span hosts."""
        spans: Counter[tuple[tuple[str, ...], tuple[int, ...]]] = Counter()
        for group in groups:
            at = Counter(map(self._ranks.host, group))
            if len(at) > 1:
                spans[tuple(at), tuple(at.values())] += 1
        sent: defaultdict[tuple[str, str], float] = defaultdict(float)
        for (hosts, counts), number in spans.items():
            for pair, bytes_sent in self._edges(collective, hosts, counts, size_bytes):
                sent[pair] += number * bytes_sent
        return self.flows(sent.items())

    def flows(self, sent: Iterable[tuple[tuple[str, str], float]]) -> tuple[FlowSpec, ...]:
        """Return the flows of bytes from host to host."""
        workload = self._workload
        count = workload.flows_per_pair or workload.description.flows_per_pair
        return tuple(
            flow
            for (source, destination), size_bytes in sent
            if size_bytes > 0
            for flow in flows_between(source, destination, size_bytes, count, self._placement)
        )

    def _edges(
        self, collective: Collective, hosts: Sequence[str], counts: Sequence[int], size_bytes: float
    ) -> Iterator[tuple[tuple[str, str], float]]:
        num_ranks = sum(counts)
        if collective is Collective.ALL_TO_ALL:
            # Each rank sends an equal part of what it has to every rank.
            for source, senders in zip(hosts, counts, strict=True):
                for destination, receivers in zip(hosts, counts, strict=True):
                    if source != destination:
                        yield (source, destination), senders * receivers * size_bytes / num_ranks
            return
        passes = 2 if collective is Collective.ALL_REDUCE else 1
        way = self._workload.all_reduce
        if collective is Collective.ALL_REDUCE and self._takes_trees(hosts, num_ranks, size_bytes):
            for child, parent in double_tree(len(hosts)):
                yield (hosts[child], hosts[parent]), size_bytes / 2
                yield (hosts[parent], hosts[child]), size_bytes / 2
            return
        # A ring of all ranks enters and leaves every host once. Hierarchical rings are of one rank in each host.
        members = len(hosts) if way is AllReduce.HIERARCHICAL else num_ranks
        share = passes * (members - 1) / members
        for source, destination in zip(hosts, (*hosts[1:], hosts[0]), strict=True):
            yield (source, destination), share * size_bytes

    def _takes_trees(self, hosts: Sequence[str], num_ranks: int, size_bytes: float) -> bool:
        way = self._workload.all_reduce
        if way is not AllReduce.NCCL:
            return way is AllReduce.TREE
        nics = min(len(self._placement.nics[host]) for host in hosts)
        group = Group(num_ranks, len(hosts), nics * self._workload.nic_gbps * 1e9 / 8)
        return fastest(Collective.ALL_REDUCE, group, size_bytes)[0] is Algorithm.TREE


def double_tree(num_hosts: int) -> Iterator[tuple[int, int]]:
    """Yield the edges of two binary trees, each from child to parent; no host has two children in both.

    In the first tree odd hosts are leaves, and host 0 is the root, with one child. The second tree is the first in
    reverse if the number of hosts is even, else moved on by one (Sanders, Speck and Träff, 2009; NCCL does the same).
    """
    for host in range(1, num_hosts):
        parent = _parent(host, num_hosts)
        yield host, parent
        if num_hosts % 2:
            yield (host + 1) % num_hosts, (parent + 1) % num_hosts
        else:
            yield num_hosts - 1 - host, num_hosts - 1 - parent


def _parent(host: int, num_hosts: int) -> int:
    """Return the parent in the first tree: hosts by the lowest bit set, the next such above."""
    bit = host & -host
    parent = (host ^ bit) | (bit << 1)
    return parent if parent < num_hosts else host ^ bit
