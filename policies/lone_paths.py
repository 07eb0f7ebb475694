"""Jobs that meet no other: whether chosen paths, however evenly loaded, are worse for them than those of the hash.

Congestion adds up what an iteration sends, and does not see when. Where nobody else is on a job's links, only the order
in which its own transfers end matters, and uneven paths may happen to be better.
"""

from collections.abc import Sequence

import numpy as np

from policies.job import Job
from policies.snapshot import Snapshot
from topologies.fabric import Path

_SLOWER = 1.0005
"""Half of a thousandth more is not slower: the model only knows roughly how long packets take to arrive."""
_LATENCY_S = 5e-6


def jobs_faster_on_hashed_paths(snapshot: Snapshot, paths: Sequence[Sequence[Path]]) -> list[int]:
    """Return the numbers of jobs that meet no other traffic and that these paths make slower than the hash's.

    Only jobs that have told a task graph with several transfers are played: all others send at once.

    Args:
        snapshot: The jobs and links.
        paths: By job, the paths of its flows.
    """
    num_users = np.zeros(len(snapshot.links), dtype=np.int64)
    for job in snapshot.jobs:
        num_users[job.reachable_links] += 1
    num_users[list(snapshot.foreign_loads_bps)] += 1
    return [
        number
        for number, (job, of_job) in enumerate(zip(snapshot.jobs, paths, strict=True))
        if job.task_graph is not None
        and len(job.transfers.group_of) > 1
        and (num_users[job.reachable_links] == 1).all()
        and _is_slower(job, of_job, snapshot)
    ]


def _is_slower(job: Job, paths: Sequence[Path], snapshot: Snapshot) -> bool:
    hashed = [flow.hashed_path for flow in job.flows]
    if list(paths) == hashed:
        return False
    # The model imports numba, which takes longer than a decision.
    from policies.model.alone import alone_s
    from policies.model.routed_flows import RoutedFlows

    none = np.zeros(len(job.flow_groups), dtype=np.int64)
    chosen_s, hashed_s = (
        alone_s(job, RoutedFlows.of([job], [taken], snapshot.links.rates_bps), none, none, _LATENCY_S)
        for taken in (paths, hashed)
    )
    return chosen_s > _SLOWER * hashed_s
