"""The fluid bound of jobs on chosen paths, and its dual prices: what the time of each link is worth.

    maximise   sum of w_j x_j      over the shares 0 <= x_j <= 1 that jobs get of the iterations they have alone
    subject to sum of a_je x_j <= 1   on every link e

Here w_j is the computation per second of job j alone, and a_je the share of time for which it then occupies link e.

The solver does a fixed number of steps of the primal-dual method of Chambolle and Pock (J. Math. Imaging Vis., 2011)
with their diagonal preconditioning (ICCV 2011), and averages the second half of them. That is exact enough for an
order, and a step only reads the loads twice.
"""

from dataclasses import dataclass

import numpy as np

from policies.arrays import FloatArray, IntArray
from policies.jit import Kernel
from policies.trainyard.contention import Contention

_PRIMAL_WEIGHT = 10.0
"""How much longer steps of shares are than steps of prices. Measured: converges soonest with many saturated links."""

_MAX_WARM_READS = 1_000_000
_MIN_WARM_STEPS = 25
"""A warm start does as many steps as read so many loads, but at least so many."""


@dataclass(frozen=True, slots=True, eq=False)
class WarmStart:
    """Where the solver starts: the share of every job, and the price of every link of the fabric."""

    share: FloatArray
    price: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class FluidBound:
    """A solution of the linear program.

    A link is scarce where jobs that ran alone would together occupy it for more than all of the time.

    Attributes:
        share: By job, the share of its iterations alone that it gets.
        charge: By job, the price per second of the link time that it uses alone.
        price: By scarce link, what its time is worth.
        scarce: The numbers of the scarce links in the fabric.
    """

    share: FloatArray
    charge: FloatArray
    price: FloatArray
    scarce: IntArray

    @property
    def is_scarce(self) -> bool:
        """Whether some scarce link has a price."""
        return bool((self.charge > 0).any())

    @classmethod
    def of(cls, contention: Contention, steps: int, start: WarmStart | None = None) -> "FluidBound":
        """Solve the program with at most so many steps.

        Without a warm start, all jobs begin fully served and all prices at 0.
        """
        worth = contention.worth
        largest = worth.max(initial=0.0)
        if largest <= 0:
            return cls(np.ones(len(worth)), np.zeros(len(worth)), np.zeros(0), np.zeros(0, np.int64))
        loads = contention.by_job
        seconds = loads.data / np.repeat(contention.ideal_s, np.diff(loads.indptr))
        # A job alone never exceeds a link, so the links that it has to itself are not scarce.
        num_shared = len(contention.in_fabric)
        scarce = np.bincount(loads.indices, seconds, minlength=contention.num_links)[:num_shared] > 1
        number = np.full(contention.num_links, -1)
        number[:num_shared][scarce] = np.arange(scarce.sum())
        links = number[loads.indices]
        is_scarce = links >= 0
        first = np.concatenate(([0], np.cumsum(is_scarce)))[loads.indptr]
        links, seconds = links[is_scarce], seconds[is_scarce]
        in_fabric = contention.in_fabric[scarce]
        if start is None:
            start_share, start_price = np.ones(len(worth)), np.zeros(len(in_fabric))
        else:
            start_share, start_price = start.share, start.price[in_fabric] / largest
            steps = min(steps, max(_MAX_WARM_READS // max(len(links), 1), _MIN_WARM_STEPS))
        solve = _solve.for_steps(20 * steps * len(links))
        share, price = solve(worth / largest, first, links, seconds, start_share, start_price, steps)
        charge = np.bincount(np.repeat(np.arange(len(worth)), np.diff(first)), seconds * price[links], len(worth))
        return cls(share, largest * charge, largest * price, in_fabric)


@Kernel
def _solve(
    weights: FloatArray,
    first: IntArray,
    links: IntArray,
    loads: FloatArray,
    start_share: FloatArray,
    start_price: FloatArray,
    steps: int,
) -> tuple[FloatArray, FloatArray]:
    """Return the shares of jobs and prices of links, averaged over the second half of the steps."""
    share, price = start_share.copy(), start_price.copy()
    num_jobs, num_links = len(share), len(price)
    of_job, of_link = np.zeros(num_jobs), np.zeros(num_links)
    for job in range(num_jobs):
        for entry in range(first[job], first[job + 1]):
            of_job[job] += loads[entry]
            of_link[links[entry]] += loads[entry]
    price_step = 1 / (_PRIMAL_WEIGHT * of_link)
    mean_share, mean_price = np.zeros(num_jobs), np.zeros(num_links)
    # The load of the extrapolated shares. Most shares stay at 0 or 1, so update it only where one changes.
    ahead, excess = np.zeros(num_jobs), np.full(num_links, -1.0)
    for step in range(steps):
        for job in range(num_jobs):
            before = share[job]
            if first[job] < first[job + 1]:
                charge = 0.0
                for entry in range(first[job], first[job + 1]):
                    charge += loads[entry] * price[links[entry]]
                moved = before + _PRIMAL_WEIGHT / of_job[job] * (weights[job] - charge)
                share[job] = min(max(moved, 0.0), 1.0)
            change = 2 * share[job] - before - ahead[job]
            if change != 0.0:
                ahead[job] += change
                for entry in range(first[job], first[job + 1]):
                    excess[links[entry]] += loads[entry] * change
        for link in range(num_links):
            price[link] = max(price[link] + price_step[link] * excess[link], 0.0)
        if 2 * step >= steps:
            mean_share += share
            mean_price += price
    return mean_share / (steps // 2), mean_price / (steps // 2)
