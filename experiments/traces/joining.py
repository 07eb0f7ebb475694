"""Which jobs of a trace are joined, by links or by GPUs."""

from collections.abc import Sequence

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from experiments.traces.network_job import NetworkJob


def joined(jobs: Sequence[NetworkJob]) -> list[tuple[NetworkJob, ...]]:
    """The jobs in groups, each of whose jobs is connected with the others by links that flows share, or by GPUs that
    jobs share; order is kept."""
    if not jobs:
        return []
    sharing = [number for number, job in enumerate(jobs) if job.shared]
    # As if shared GPUs were links, with numbers that links do not have.
    links = np.concatenate([*(job.flows.links for job in jobs), [-jobs[number].shared for number in sharing]])
    owners = np.repeat(np.arange(len(jobs)), [len(job.flows.links) for job in jobs])
    owners = np.concatenate([owners, np.array(sharing, dtype=np.int64)])
    by_link = links.argsort(kind="stable")
    links, owners = links[by_link], owners[by_link]
    shared = links[1:] == links[:-1]
    edges = owners[:-1][shared], owners[1:][shared]
    matrix = coo_array((np.ones(len(edges[0]), dtype=np.int8), edges), shape=(len(jobs), len(jobs)))
    number, group_of = connected_components(matrix, directed=False)
    groups: list[list[NetworkJob]] = [[] for _ in range(number)]
    for job, group in zip(jobs, group_of.tolist(), strict=True):
        groups[group].append(job)
    return [tuple(group) for group in groups]
