"""Sincronia: an order of coflows from their bottlenecks (BSSI), and any rates that keep it.

Objective: the least weighted sum of coflow completion times, within a factor of four where all coflows are there from
the start. Source: Agarwal, Rajakrishnan, Narayan, Agarwal, Shmoys and Vahdat, *Sincronia: Near-Optimal Network Design
for Coflows*, SIGCOMM 2018. Inputs: bytes by link, link rates, weights. Under ideal enforcement the allocator is
order-greedy at group events, and BSSI orders the open flow groups by the bytes they still have. With levels, at job
events, a job is one coflow of its bytes per iteration. O(n (L + c)) for n coflows, L links and c coflows on a link.

Differences from the paper: links of a whole fabric instead of the ports of one big switch, with every flow on the path
of the fabric's hash; decisions at events instead of by epochs; seconds instead of bytes, since links differ in rate.
Levels are those of the authors' implementation: one each for the first coflows, the lowest for the rest.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from policies.arrays import FloatArray
from policies.coflows import JobCoflow, JobWeight, job_coflows, seconds_by_link, weights_of
from policies.enforcement import Allocator, Cadence, RateControl, Tiers
from policies.open_groups import OpenGroups
from policies.plan import Plan
from policies.plan_builder import own_levels, plan_in_order
from policies.policy import Policy
from policies.snapshot import Snapshot


def sincronia(snapshot: Snapshot, weight: JobWeight = JobWeight.ONE) -> Plan:
    """Serve the jobs in the order of bottleneck, select, scale, iterate."""

    def order(coflows: Sequence[JobCoflow]) -> Sequence[int]:
        positions: list[int] = bssi(seconds_by_link(coflows), weights_of(coflows, weight)).tolist()
        return positions

    return plan_in_order(
        "sincronia",
        snapshot.num_levels,
        job_coflows(snapshot),
        order=order,
        levels=own_levels,
        reason=lambda coflow: f"An iteration's bytes take its bottleneck link {coflow.iteration.comm_s:.4g} s.",
    )


def bssi(demand_by_link: csr_array, weights: FloatArray) -> npt.NDArray[np.int64]:
    """Return the order of coflows (rows) by their demand for links (columns), in any unit common to all links.

    BSSI fills places from the last to the first. On the link with the largest demand left, the coflow with the least
    weight over its demand there goes last. The weights of the other coflows on that link shrink by their demand times
    that ratio. Of links that tie the first counts; of coflows that tie the last one goes last. Coflows without demand
    come after all others.

    Raises:
        ValueError: A weight or demand is negative or not finite; the message names the coflow.
    """
    _check(demand_by_link, weights)
    num_coflows = demand_by_link.shape[0]
    columns = demand_by_link.tocsc()
    columns.sort_indices()
    weights = weights.astype(np.float64)
    totals = columns.sum(axis=0)
    num_users = np.diff(columns.indptr)
    unplaced = np.ones(num_coflows, dtype=bool)
    idle = np.flatnonzero(np.diff(demand_by_link.indptr) == 0)
    order = np.empty(num_coflows, dtype=np.int64)
    order[num_coflows - len(idle) :] = idle
    totals[num_users == 0] = -np.inf
    for place in range(num_coflows - len(idle) - 1, -1, -1):
        bottleneck = totals.argmax()
        users = slice(columns.indptr[bottleneck], columns.indptr[bottleneck + 1])
        present = unplaced[columns.indices[users]]
        coflows, demands = columns.indices[users][present], columns.data[users][present]
        ratios = weights[coflows] / demands
        chosen = len(ratios) - 1 - ratios[::-1].argmin()
        last = order[place] = coflows[chosen]
        # Where coflows tie, rounding must not make a weight negative.
        weights[coflows] = np.maximum(weights[coflows] - demands * ratios[chosen], 0.0)
        unplaced[last] = False
        row = slice(demand_by_link.indptr[last], demand_by_link.indptr[last + 1])
        links = demand_by_link.indices[row]
        totals[links] -= demand_by_link.data[row]
        num_users[links] -= 1
        totals[links[num_users[links] == 0]] = -np.inf
    return order


def _check(demand_by_link: csr_array, weights: FloatArray) -> None:
    if not (np.isfinite(weights) & (weights >= 0)).all():
        coflow = int((~(np.isfinite(weights) & (weights >= 0))).argmax())
        raise ValueError(f"coflow {coflow}: its weight must be finite and not negative, not {weights[coflow]}")
    sound = np.isfinite(demand_by_link.data) & (demand_by_link.data > 0)
    if not sound.all():
        coflow = int(demand_by_link.indptr.searchsorted((~sound).argmax(), "right")) - 1
        raise ValueError(f"coflow {coflow}: its demand must be finite and positive on every link it uses")


def _order_groups(groups: OpenGroups) -> npt.NDArray[np.int64]:
    """Order groups by BSSI of the bytes they still have, all of one weight."""
    return bssi(groups.seconds_by_link, np.ones(len(groups.started_s)))


SINCRONIA = Policy(
    "sincronia",
    "Sincronia: bottleneck by bottleneck, what weighs least there goes last",
    sincronia,
    ideal_rates=RateControl(Allocator.ORDER_GREEDY, Tiers.GROUPS, Cadence.GROUP_EVENT),
    order_groups=_order_groups,
)
