"""What every policy may assume of a Snapshot, beyond what each of its jobs assures by itself."""

import math

import numpy as np

from policies.snapshot import Snapshot


def check(snapshot: Snapshot) -> None:
    """Raise ValueError, naming the job or link and the field, where a Snapshot makes no sense.

    More levels than jobs are sound, and so is one level.
    """
    if not snapshot.num_levels >= 1:
        raise ValueError(f"num_levels must be at least 1, not {snapshot.num_levels}")
    rates_bps = snapshot.links.rates_bps
    for index in np.flatnonzero(~((rates_bps > 0) & (rates_bps < math.inf))):
        raise ValueError(f"links[{index}]: rate_bps must be positive and finite, not {rates_bps[index]}")
    names: set[str] = set()
    num_links = len(snapshot.links)
    for job in snapshot.jobs:
        if job.name in names:
            raise ValueError(f"job {job.name!r}: its name is taken by another job")
        names.add(job.name)
        if job.highest_link >= num_links:
            raise ValueError(
                f"job {job.name!r}: candidates, hashed_path or host_links name link {job.highest_link},"
                f" there are {num_links} links"
            )
