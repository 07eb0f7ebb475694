"""Traffic of jobs as arrays: the form in which policies add up loads and compare paths."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
from scipy.sparse import csr_array

from policies.arrays import BoolArray, FloatArray, FlowArrays, IntArray, LinkArray
from policies.flows import Flow
from policies.jit import Kernel
from policies.job import Job
from topologies.fabric import Path
from topologies.paths import NO_LINK


@dataclass(frozen=True, slots=True, eq=False)
class Traffic:
    """The flows of jobs, job after job, each with its paths.

    Attributes:
        flows: All flows.
        first_flow: Job j has the flows from ``first_flow[j]`` up to ``first_flow[j + 1]``.
        size_bytes: By flow; 0 for a flow of less than one bit.
        links: The paths of all flows, one after another. Every path of flow f has ``path_length[f]`` entries;
            ``NO_LINK`` fills up the short ones.
        first_link: Flow f has the entries of ``links`` from ``first_link[f]`` up to ``first_link[f + 1]``.
        path_length: By flow, the length of its longest path.
        host_links: The links inside the hosts of all flows, which they use on every path.
        first_host_link: Flow f has the entries of ``host_links`` from ``first_host_link[f]`` up to ``first_host_link[f
            + 1]``.
    """

    flows: tuple[Flow, ...]
    first_flow: IntArray
    size_bytes: FloatArray
    links: LinkArray
    first_link: IntArray
    path_length: IntArray
    host_links: LinkArray
    first_host_link: IntArray

    @classmethod
    def with_candidates(cls, jobs: Sequence[Job]) -> "Traffic":
        """Return the flows of jobs with all their candidate paths."""
        arrays = [_NO_FLOWS, *(job.arrays for job in jobs)]
        return cls(
            tuple(chain.from_iterable(job.flows for job in jobs)),
            _starts([len(job.flows) for job in jobs]),
            np.concatenate([job.size_bytes for job in arrays]),
            np.concatenate([job.links for job in arrays]),
            _starts(np.concatenate([job.num_links_listed for job in arrays])),
            np.concatenate([job.path_length for job in arrays]),
            np.concatenate([job.host_links for job in arrays]),
            _starts(np.concatenate([job.num_host_links for job in arrays])),
        )

    @classmethod
    def with_paths(cls, jobs: Sequence[Job], paths_of: Callable[[Flow], Sequence[Path]]) -> "Traffic":
        """Return the flows of jobs with the paths, at least one, that ``paths_of`` gives for each."""
        traffic = cls.with_candidates(jobs)
        links: list[int] = []
        starts, lengths = [0], []
        for flow in traffic.flows:
            paths = paths_of(flow)
            lengths.append(max(map(len, paths)))
            for path in paths:
                links += path
                links += [NO_LINK] * (lengths[-1] - len(path))
            starts.append(len(links))
        return replace(
            traffic,
            links=np.array(links, np.int32),
            first_link=np.array(starts),
            path_length=np.array(lengths, np.int64),
        )

    def narrowed(self, choice: IntArray) -> "Traffic":
        """Return the same flows, each with only the path at the position that ``choice`` has for it."""
        first_link = _starts(self.path_length)
        chosen = np.repeat(self.first_link[:-1] + choice * self.path_length - first_link[:-1], self.path_length)
        links = self.links[chosen + np.arange(first_link[-1])]
        return replace(self, links=links, first_link=first_link)

    @property
    def first_paths(self) -> list[Path]:
        """By flow, its first path."""
        links, starts = tuple(self.links.tolist()), self.first_link.tolist()
        paths = [
            links[start : start + length] for start, length in zip(starts[:-1], self.path_length.tolist(), strict=True)
        ]
        if NO_LINK in self.links:
            paths = [tuple(link for link in path if link != NO_LINK) for path in paths]
        return paths

    def loads(self, num_links: int) -> "Loads":
        """Return the bytes per iteration of every job on every link; flows are spread evenly over their paths."""
        add = _add.for_steps(4 * len(self.links))
        on_paths = self.links, self.first_link, self.path_length
        in_hosts = self.host_links, self.first_host_link
        with np.errstate(over="ignore"):
            return Loads(*add(self.first_flow, self.size_bytes, on_paths, in_hosts, num_links), num_links)


@dataclass(frozen=True, slots=True, eq=False)
class Loads:
    """Bytes per iteration of jobs on links. Only entries above 0 are listed.

    Attributes:
        first: Job j has the entries from ``first[j]`` up to ``first[j + 1]``.
        links: By entry, the link.
        num_bytes: By entry, the bytes.
        num_links: How many links there are.
    """

    first: IntArray
    links: LinkArray
    num_bytes: FloatArray
    num_links: int

    def transfer_s(self, link_rates_bps: FloatArray) -> FloatArray:
        """Return t of every job: how long its bottleneck link needs for its bytes; 0 for a job without bytes."""
        times_s = np.zeros(len(self.first) - 1)
        sends = np.diff(self.first) > 0
        with np.errstate(over="ignore"):
            link_times_s = self.num_bytes * 8 / link_rates_bps[self.links]
        times_s[sends] = np.maximum.reduceat(link_times_s, self.first[:-1][sends]) if sends.any() else 0.0
        return times_s

    def sharing(self, jobs: Sequence[int], counts: BoolArray) -> csr_array:
        """Return which jobs send over the same link: an entry from the earlier of two jobs to the later one.

        Args:
            jobs: Numbers of jobs, in the order that makes one earlier than another.
            counts: By link, whether sharing it counts.
        """
        share = _share.for_steps(len(jobs) ** 2 + 4 * len(self.links))
        first, later = share(np.array(jobs, dtype=np.int64), self.first, self.links, counts)
        return csr_array((np.ones(len(later)), later, first), shape=(len(jobs), len(jobs)))

    def of(self, job: int) -> FloatArray:
        """Return by link the bytes of one job."""
        entries = slice(self.first[job], self.first[job + 1])
        bytes_by_link = np.zeros(self.num_links)
        bytes_by_link[self.links[entries]] = self.num_bytes[entries]
        return bytes_by_link


def _starts(lengths: Sequence[int] | IntArray) -> IntArray:
    return np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))


_NO_FLOWS = FlowArrays.of(())


@Kernel
def _add(
    first_flow: IntArray,
    size_bytes: FloatArray,
    on_paths: tuple[LinkArray, IntArray, IntArray],
    in_hosts: tuple[LinkArray, IntArray],
    num_links: int,
) -> tuple[IntArray, LinkArray, FloatArray]:
    """Return the loads of all jobs: the first entry of each, and by entry the link and the bytes."""
    links, first_link, path_length = on_paths
    host_links, first_host_link = in_hosts
    on_link = np.zeros(num_links)
    first = np.zeros(len(first_flow), dtype=np.int64)
    most = len(links) + len(host_links)
    loaded, num_bytes = np.empty(most, dtype=np.int32), np.empty(most)
    num_loaded = 0
    for job in range(len(first_flow) - 1):
        for flow in range(first_flow[job], first_flow[job + 1]):
            begin, end = first_link[flow], first_link[flow + 1]
            share_bytes = size_bytes[flow] / ((end - begin) // path_length[flow])
            if share_bytes == 0:
                continue
            for link in links[begin:end]:
                if link >= 0:
                    if on_link[link] == 0:
                        loaded[num_loaded] = link
                        num_loaded += 1
                    on_link[link] += share_bytes
            for link in host_links[first_host_link[flow] : first_host_link[flow + 1]]:
                if on_link[link] == 0:
                    loaded[num_loaded] = link
                    num_loaded += 1
                on_link[link] += size_bytes[flow]
        first[job + 1] = num_loaded
        for position in range(first[job], num_loaded):
            num_bytes[position] = on_link[loaded[position]]
            on_link[loaded[position]] = 0.0
    return first, loaded[:num_loaded], num_bytes[:num_loaded]


@Kernel
def _share(jobs: IntArray, first: IntArray, links: LinkArray, counts: BoolArray) -> tuple[LinkArray, LinkArray]:
    """Return pairs of jobs on a link that counts, as CSR: the first entry of each job, and by entry the later job."""
    # The users of every link, in the order of the jobs.
    first_user = np.zeros(len(counts) + 1, dtype=np.int64)
    for job in jobs:
        for link in links[first[job] : first[job + 1]]:
            first_user[link + 1] += 1
    first_user = np.cumsum(first_user)
    users, num_users = np.zeros(first_user[-1], dtype=np.int32), np.zeros(len(counts), dtype=np.int64)
    for place, job in enumerate(jobs):
        for link in links[first[job] : first[job + 1]]:
            users[first_user[link] + num_users[link]] = place
            num_users[link] += 1
    num_users[:] = 0
    meets = np.full(len(jobs), -1, dtype=np.int32)
    begins = np.zeros(len(jobs) + 1, dtype=np.int32)
    later = np.zeros(len(jobs), dtype=np.int32)
    num_later = 0
    for place, job in enumerate(jobs):
        for link in links[first[job] : first[job + 1]]:
            num_users[link] += 1
            if counts[link]:
                for user in users[first_user[link] + num_users[link] : first_user[link + 1]]:
                    meets[user] = place
        if num_later + len(jobs) > len(later):
            later = np.concatenate((later, np.zeros(len(later) + len(jobs), dtype=np.int32)))
        for other in range(place + 1, len(jobs)):
            if meets[other] == place:
                later[num_later] = other
                num_later += 1
        begins[place + 1] = num_later
    return begins, later[:num_later]
