"""Compute the load that a Plan puts on every link."""

from dataclasses import dataclass

import numpy as np

from policies.arrays import FloatArray
from policies.intensity import iterations
from policies.plan import Plan
from policies.snapshot import Snapshot
from policies.traffic import Loads, Traffic


def loads_by_job(snapshot: Snapshot, plan: Plan) -> Loads:
    """The bytes of every job on every link, on the paths of the Plan or else of the hash."""
    traffic = Traffic.with_paths(snapshot.jobs, lambda flow: (plan.flows[flow.key].path or flow.hashed_path,))
    return traffic.loads(len(snapshot.links))


@dataclass(frozen=True, slots=True, eq=False)
class PlannedLoads:
    """By link, its mean utilisation by all flows, and how long one iteration of every job occupies it."""

    utilisation: FloatArray
    iteration_s: FloatArray

    @classmethod
    def of(cls, snapshot: Snapshot, plan: Plan) -> "PlannedLoads":
        """Add up the flows of all jobs, iterating as if alone, on the paths of the Plan or else of the hash."""
        return cls.adding_up(loads_by_job(snapshot, plan), snapshot)

    @classmethod
    def adding_up(cls, loads: Loads, snapshot: Snapshot) -> "PlannedLoads":
        """Add up these loads of the jobs of a Snapshot."""
        rates_bps, num_links = snapshot.links.rates_bps, len(snapshot.links)
        alone = iterations(snapshot.jobs, loads.transfer_s(rates_bps))
        durations_s = np.repeat([iteration.duration_s for iteration in alone], np.diff(loads.first))
        link_s = loads.num_bytes * 8 / rates_bps[loads.links]
        # bincount of an empty array returns integers.
        shares, iteration_s = (
            np.bincount(loads.links, seconds, minlength=num_links).astype(np.float64)
            for seconds in (link_s / durations_s, link_s)
        )
        return cls(shares, iteration_s)
