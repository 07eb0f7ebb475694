"""What jobs compute at best, by a program that is small because traffic is spread evenly over its candidate paths.

Then the fluid bound (docs/measures.md) has a variable for each job and none for paths, and can be solved for hundreds
of sets of jobs. The prices of its links bound every other spreading, by weak duality; where candidate paths are alike,
as in a Clos or a fat-tree, no other is better, and the bound is exact.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog
from scipy.sparse import csr_array

from topologies.routing import Routing
from workloads.demand import Demand
from workloads.jobs import TrainingJob
from workloads.sparse import sparse_matrix

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

_DECIMALS = 12
"""To so many, shares of time that links are asked for are the same."""


@dataclass(frozen=True, slots=True, eq=False)
class EvenSpread:
    """What iterations of jobs (rows) ask of links (columns): ``seconds`` where all is spread evenly.

    Of that, ``fixed_s`` has no choice; ``commodity_bits`` (columns: commodities) have that of ways (rows of ``way_s``,
    for how long a bit occupies links): those of commodity c from ``first_way[c]`` on.
    """

    seconds: csr_array
    fixed_s: csr_array
    commodity_bits: csr_array
    way_s: csr_array
    first_way: IntArray

    @classmethod
    def of(cls, jobs: Sequence[TrainingJob], routing: Routing) -> Self:
        """Of jobs in their order."""
        rates_bps = routing.fabric.rates_bps
        demand = Demand.of(jobs, routing)
        fixed = [(job, link, bits / rates_bps[link]) for (link, job), bits in demand.fixed_bits.items()]
        chosen = [
            (job, commodity, bits)
            for commodity, bits_of in enumerate(demand.commodity_bits.values())
            for job, bits in bits_of.items()
        ]
        ways = [way for of_commodity in demand.commodity_bits for way in of_commodity]
        on_ways = [(number, link, 1 / rates_bps[link]) for number, way in enumerate(ways) for link in way]
        num_ways = np.array([len(of_commodity) for of_commodity in demand.commodity_bits], dtype=np.int64)
        shares = [(commodity, 1 / number) for commodity, number in enumerate(num_ways.tolist()) for _ in range(number)]
        evenly = [(commodity, way, share) for way, (commodity, share) in enumerate(shares)]
        fixed_s = sparse_matrix(fixed, len(jobs), len(rates_bps))
        commodity_bits = sparse_matrix(chosen, len(jobs), len(num_ways))
        way_s = sparse_matrix(on_ways, len(ways), len(rates_bps))
        seconds = fixed_s + commodity_bits @ (sparse_matrix(evenly, len(num_ways), len(ways)) @ way_s)
        return cls(csr_array(seconds), fixed_s, commodity_bits, way_s, np.cumsum(num_ways) - num_ways)

    def sending(self, factor: float) -> Self:
        """The same where iterations send so many times the bytes."""
        return replace(
            self,
            seconds=self.seconds * factor,
            fixed_s=self.fixed_s * factor,
            commodity_bits=self.commodity_bits * factor,
        )

    @property
    def longest_s(self) -> FloatArray:
        """By job, for how long an iteration occupies the link that it occupies longest."""
        longest_s: FloatArray = self.seconds.max(axis=1).toarray().ravel()
        return longest_s

    def most(self, jobs: IntArray, work: FloatArray, alone_s: FloatArray) -> float:
        """No spreading lets these jobs do more work a second; one spread evenly, as much where paths are alike.

        Each iterates at most once in ``alone_s``, which is so much ``work``. Raises RuntimeError where the solver finds
        no optimum.
        """
        asked = self.seconds[jobs].toarray() / alone_s[:, None]
        scarce = np.flatnonzero(asked.sum(axis=0) > 1)
        if not len(scarce):
            return float((work / alone_s).sum())
        # Links that are asked for alike are one, whose price is divided among them: else one alone might have it all.
        distinct, number = np.unique(asked[:, scarce].round(_DECIMALS), axis=1, return_inverse=True)
        result = linprog(
            -work / alone_s, A_ub=distinct.T, b_ub=np.ones(distinct.shape[1]), bounds=(0.0, 1.0), method="highs"
        )
        if not result.success:
            raise RuntimeError(f"fluid bound: {result.message}")
        prices = np.zeros(self.seconds.shape[1])
        prices[scarce] = (-result.ineqlin.marginals / np.bincount(number))[number]
        return float(prices.sum() + np.maximum(work - self._least_charges(jobs, prices), 0.0) @ (1 / alone_s))

    def _least_charges(self, jobs: IntArray, prices: FloatArray) -> FloatArray:
        """What an iteration of each job is charged by its links, every bit on its cheapest way."""
        charges: FloatArray = self.fixed_s[jobs] @ prices
        if len(self.first_way):
            charges += self.commodity_bits[jobs] @ np.minimum.reduceat(self.way_s @ prices, self.first_way)
        return charges
