"""Compute the load that a Plan puts on every link."""

from dataclasses import dataclass

import numpy as np

from policies.arrays import FloatArray
from policies.intensity import iterations
from policies.plan import Plan
from policies.snapshot import Snapshot
from policies.traffic import Traffic


@dataclass(frozen=True, slots=True, eq=False)
class PlannedLoads:
    """By link, its mean utilisation by all flows, and how long one iteration of every job occupies it."""

    utilisation: FloatArray
    iteration_s: FloatArray

    @classmethod
    def of(cls, snapshot: Snapshot, plan: Plan) -> "PlannedLoads":
        """Add up the flows of all jobs, iterating as if alone, on the paths of the Plan or else of the hash."""
        traffic = Traffic.with_paths(snapshot.jobs, lambda flow: (plan.flows[flow.key].path or flow.hashed_path,))
        rates_bps, num_links = snapshot.links.rates_bps, len(snapshot.links)
        loads = traffic.loads(num_links)
        alone = iterations(snapshot.jobs, loads.transfer_s(rates_bps))
        durations_s = np.repeat([iteration.duration_s for iteration in alone], np.diff(loads.first))
        link_s = loads.num_bytes * 8 / rates_bps[loads.links]
        # bincount of an empty array returns integers.
        shares, iteration_s = (
            np.bincount(loads.links, seconds, minlength=num_links).astype(np.float64)
            for seconds in (link_s / durations_s, link_s)
        )
        return cls(shares, iteration_s)
