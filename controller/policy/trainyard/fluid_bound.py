"""The fluid bound of jobs on the paths they have, and what it makes of a second of each link: its dual prices.

    maximise   sum of w_j x_j      over the shares 0 <= x_j <= 1 that jobs get of the iterations they have alone
    subject to sum of a_je x_j <= 1   on every link e

with w_j the computation per second that job j has alone and a_je the share of time for which it then occupies link e.
Solved by a fixed number of steps of the primal-dual method of Chambolle and Pock (2011) with their diagonal
preconditioning (ICCV 2011), averaged over the second half: an order needs no more digits than that gives, and a step
costs no more than reading the loads twice.
"""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from controller.policy.compiled import Loop
from controller.policy.flow_arrays import FloatArray, IntArray
from controller.policy.trainyard.contention import Contention

_PRIMAL_WEIGHT = 10.0
"""How much longer steps of shares are than those of prices: measured to converge soonest where much is saturated."""


@dataclass(frozen=True, slots=True, eq=False)
class FluidBound:
    """Share of its iterations alone that each job gets, and what its links charge for all of them, per second.

    ``price`` is what the time of each scarce link is worth, one for which jobs alone would ask more than there is.
    """

    share: FloatArray
    charge: FloatArray
    price: FloatArray

    @property
    def is_scarce(self) -> bool:
        """Whether there is a link without room for all its jobs."""
        return bool((self.charge > 0).any())

    @classmethod
    def of(cls, contention: Contention, steps: int) -> "FluidBound":
        """Solve to about the precision that so many steps give."""
        worth = contention.worth
        largest = worth.max(initial=0.0)
        if largest <= 0:
            return cls(np.ones(len(worth)), np.zeros(len(worth)), np.zeros(0))
        loads = contention.by_job
        loads = csr_array(
            (loads.data / np.repeat(contention.ideal_s, np.diff(loads.indptr)), loads.indices, loads.indptr),
            shape=loads.shape,
        )
        scarce = np.asarray(loads.sum(axis=0)).ravel() > 1
        is_scarce = scarce[loads.indices]
        first = np.concatenate(([0], np.cumsum(is_scarce)))[loads.indptr]
        number = np.cumsum(scarce) - 1
        solve = _solve.of(20 * steps * int(first[-1]))
        share, price = solve(
            worth / largest, first, number[loads.indices[is_scarce]], loads.data[is_scarce], int(scarce.sum()), steps
        )
        loads = csr_array((loads.data[is_scarce], number[loads.indices[is_scarce]], first), (len(worth), len(price)))
        return cls(share, largest * (loads @ price), largest * price)


@Loop
def _solve(
    weights: FloatArray, first: IntArray, links: IntArray, loads: FloatArray, num_links: int, steps: int
) -> tuple[FloatArray, FloatArray]:
    """Shares of jobs and prices of links, averaged over the second half of the steps."""
    num_jobs = len(weights)
    of_job, of_link = np.zeros(num_jobs), np.zeros(num_links)
    for job in range(num_jobs):
        for entry in range(first[job], first[job + 1]):
            of_job[job] += loads[entry]
            of_link[links[entry]] += loads[entry]
    price_step = 1 / (_PRIMAL_WEIGHT * of_link)
    share, price = np.ones(num_jobs), np.zeros(num_links)
    mean_share, mean_price = np.zeros(num_jobs), np.zeros(num_links)
    excess = np.zeros(num_links)
    for step in range(steps):
        excess[:] = -1.0
        for job in range(num_jobs):
            before = share[job]
            if first[job] < first[job + 1]:
                charge = 0.0
                for entry in range(first[job], first[job + 1]):
                    charge += loads[entry] * price[links[entry]]
                moved = before + _PRIMAL_WEIGHT / of_job[job] * (weights[job] - charge)
                share[job] = min(max(moved, 0.0), 1.0)
            for entry in range(first[job], first[job + 1]):
                excess[links[entry]] += loads[entry] * (2 * share[job] - before)
        for link in range(num_links):
            price[link] = max(price[link] + price_step[link] * excess[link], 0.0)
        if 2 * step >= steps:
            mean_share += share
            mean_price += price
    return mean_share / (steps // 2), mean_price / (steps // 2)
