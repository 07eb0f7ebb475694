"""Paths by GPU intensity (Crux, section 4.1): the most intense job chooses first, each flow the least congested path.

The paper does not say what "least congested" measures. Here it is the utilisation of a path's most loaded link, where a
link's load is the bytes per iteration of the flows placed so far over the iteration time that their job would have
alone; ties go to the path with the smaller sum of utilisations, then to the earlier candidate.
"""

from collections.abc import Sequence
from itertools import zip_longest

import numpy as np
import numpy.typing as npt

from controller.policy.intensity import FloatArray, most_intense_first, rates_bps, spread_demand
from controller.policy.snapshot import FlowKey, Snapshot
from topologies.fabric import Path


def select_paths(snapshot: Snapshot) -> dict[FlowKey, Path]:
    """A candidate path for every flow, chosen afresh for all jobs.

    While paths are open, intensity takes every flow as spread evenly over its candidates.
    """
    link_rates_bps = rates_bps(snapshot.links)
    demands = [spread_demand(job, link_rates_bps) for job in snapshot.jobs]
    demands.sort(key=lambda demand: most_intense_first(demand.intensity, demand.job.name))
    no_link = len(snapshot.links)
    utilisation = np.zeros(no_link + 1)
    chosen: dict[FlowKey, Path] = {}
    for demand in demands:
        for flow in demand.job.flows:
            path = flow.candidates[_least_congested(utilisation, flow.candidates, no_link)]
            chosen[flow.key] = path
            if flow.size_bytes > 0:
                links = list(path)
                utilisation[links] += flow.size_bytes * 8 / demand.iteration.duration_s / link_rates_bps[links]
    return chosen


def _least_congested(utilisation: FloatArray, candidates: Sequence[Path], no_link: int) -> int:
    if len(candidates) == 1:
        return 0
    hops = np.array(list(zip_longest(*candidates, fillvalue=no_link)), dtype=np.intp)
    loads: npt.NDArray[np.float64] = utilisation[hops]
    most_loaded = loads.max(axis=0)
    tied = np.flatnonzero(most_loaded == most_loaded.min())
    return int(tied[loads[:, tied].sum(axis=0).argmin()])
