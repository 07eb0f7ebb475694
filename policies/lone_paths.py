"""Jobs that meet no other: whether chosen paths, however evenly loaded, are worse for them than those of the hash.

Congestion adds up what an iteration sends, and does not see when. Where nobody else is on a job's links, only the order
in which its own transfers end matters, and uneven paths may happen to be better.
"""

from collections.abc import Sequence

import numpy as np

from policies.job import Job
from policies.snapshot import Links, Snapshot
from topologies.fabric import Path


def jobs_that_meet_no_other(snapshot: Snapshot) -> list[int]:
    """Return the numbers of jobs that meet no other traffic on any path.

    Only jobs that have told a task graph with several transfers count: all others send at once.
    """
    told = [
        number
        for number, job in enumerate(snapshot.jobs)
        if job.task_graph is not None and len(job.transfers.group_of) > 1
    ]
    if not told:
        return []
    links = np.concatenate([job.reachable_links for job in snapshot.jobs])
    num_users = np.bincount(links, minlength=len(snapshot.links))
    num_users[list(snapshot.foreign_loads_bps)] += 1
    return [number for number in told if (num_users[snapshot.jobs[number].reachable_links] == 1).all()]


def is_slower_than_hashed(job: Job, paths: Sequence[Path], links: Links) -> bool:
    """Return whether a job alone is slower on these paths, one for each flow, than on those of the hash."""
    hashed = [flow.hashed_path for flow in job.flows]
    if list(paths) == hashed:
        return False
    # The model imports numba, which takes longer than a decision.
    from policies.model.alone import SLOWER, time_on_s

    return time_on_s(job, paths, links.rates_bps) > SLOWER * time_on_s(job, hashed, links.rates_bps)
