"""The contention graph: jobs joined by links that several of them may use, and its components.

Links of all candidate paths count, so that a component depends on no decision: nothing that happens in one of them can
change what is best in another.
"""

from collections.abc import Sequence

import numpy as np

from policies.compiled import Loop
from policies.flow_arrays import IntArray, LinkArray
from policies.job import Job


def components(jobs: Sequence[Job]) -> list[tuple[Job, ...]]:
    """The jobs that send, by component; components in order of their first jobs, jobs in the order given."""
    sending = [job for job in jobs if len(job.reach)]
    return joined(sending, [job.reach for job in sending])


def joined(jobs: Sequence[Job], links_of: Sequence[LinkArray | IntArray]) -> list[tuple[Job, ...]]:
    """The jobs by which of them have links in common, directly or through others; in order as ``components`` has it."""
    links = np.concatenate([np.empty(0, np.int32), *links_of])
    first = np.cumsum([0, *map(len, links_of)])
    join = _join.of(2 * len(links))
    members: dict[int, list[Job]] = {}
    for job, representative in zip(jobs, join(first, links).tolist(), strict=True):
        members.setdefault(representative, []).append(job)
    return [tuple(of_component) for of_component in members.values()]


@Loop
def _join(first: IntArray, links: LinkArray | IntArray) -> IntArray:
    """The first of the jobs that each is joined to."""
    num_jobs = len(first) - 1
    parent = np.arange(num_jobs)
    user = np.full(links.max() + 1 if len(links) else 0, -1)
    for job in range(num_jobs):
        root = job
        for link in links[first[job] : first[job + 1]]:
            other = user[link]
            user[link] = root
            if other >= 0 and other != root:
                while parent[other] != other:
                    parent[other] = parent[parent[other]]
                    other = parent[other]
                if other < root:
                    parent[root] = other
                    root = other
                elif root < other:
                    parent[other] = root
    for job in range(num_jobs):
        root = job
        while parent[root] != root:
            root = parent[root]
        parent[job] = root
    return parent
