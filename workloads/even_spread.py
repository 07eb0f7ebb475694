"""Upper bounds of computation for hundreds of sets of jobs, by a small linear program.

Traffic is spread evenly over the candidate paths, so the fluid bound (docs/measures.md) has a variable for each job and
none for paths. By weak duality, its link prices bound every other spreading. Where candidate paths are alike, as in a
Clos or a fat-tree, no other spreading is better, and the bound is exact.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog
from scipy.sparse import csr_array

from topologies.routing import Routing
from workloads.demand import Demand, sparse_matrix
from workloads.jobs import TrainingJob

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

_DECIMALS = 12
"""Links whose demand is equal to this precision are merged."""


@dataclass(frozen=True, slots=True, eq=False)
class EvenSpread:
    """Time that iterations of jobs (rows) occupy links (columns): ``seconds`` when spread evenly.

    ``fixed_s`` is the part without a choice of path. ``commodity_bits`` (columns: commodities) is the part with one.
    ``path_s`` has a row for each path: how long a bit occupies its links. The paths of commodity c start at row
    ``first_path[c]``.
    """

    seconds: csr_array
    fixed_s: csr_array
    commodity_bits: csr_array
    path_s: csr_array
    first_path: IntArray

    @classmethod
    def of(cls, jobs: Sequence[TrainingJob], routing: Routing) -> Self:
        """Return the spread of jobs in their order."""
        rates_bps = routing.fabric.rates_bps
        demand = Demand.of(jobs, routing)
        fixed = [(job, link, bits / rates_bps[link]) for (link, job), bits in demand.fixed_bits.items()]
        chosen = [
            (job, commodity, bits)
            for commodity, bits_of in enumerate(demand.commodity_bits.values())
            for job, bits in bits_of.items()
        ]
        paths = [path for of_commodity in demand.commodity_bits for path in of_commodity]
        on_paths = [(number, link, 1 / rates_bps[link]) for number, path in enumerate(paths) for link in path]
        num_paths = np.array([len(of_commodity) for of_commodity in demand.commodity_bits], dtype=np.int64)
        shares = [(commodity, 1 / number) for commodity, number in enumerate(num_paths.tolist()) for _ in range(number)]
        evenly = [(commodity, path, share) for path, (commodity, share) in enumerate(shares)]
        fixed_s = sparse_matrix(fixed, len(jobs), len(rates_bps))
        commodity_bits = sparse_matrix(chosen, len(jobs), len(num_paths))
        path_s = sparse_matrix(on_paths, len(paths), len(rates_bps))
        seconds = fixed_s + commodity_bits @ (sparse_matrix(evenly, len(num_paths), len(paths)) @ path_s)
        return cls(csr_array(seconds), fixed_s, commodity_bits, path_s, np.cumsum(num_paths) - num_paths)

    def sending(self, factor: float) -> Self:
        """Return the spread for ``factor`` times the bytes."""
        return replace(
            self,
            seconds=self.seconds * factor,
            fixed_s=self.fixed_s * factor,
            commodity_bits=self.commodity_bits * factor,
        )

    @property
    def longest_s(self) -> FloatArray:
        """For each job, how long an iteration occupies its busiest link."""
        longest_s: FloatArray = self.seconds.max(axis=1).toarray().ravel()
        return longest_s

    def most(self, jobs: IntArray, work: FloatArray, alone_s: FloatArray) -> float:
        """Return the most work per second that these jobs can do under any spreading.

        Even spreading attains it where candidate paths are alike. Each job does ``work`` per iteration and iterates at
        most once in ``alone_s``. Raises RuntimeError if the solver finds no optimum.
        """
        asked = self.seconds[jobs].toarray() / alone_s[:, None]
        scarce = np.flatnonzero(asked.sum(axis=0) > 1)
        if not len(scarce):
            return float((work / alone_s).sum())
        # Merge links with equal demand and share the price among them; otherwise one of them might bear all of it.
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
        """Charge each job's iteration the prices of its links, every bit on its cheapest path."""
        charges: FloatArray = self.fixed_s[jobs] @ prices
        if len(self.first_path):
            charges += self.commodity_bits[jobs] @ np.minimum.reduceat(self.path_s @ prices, self.first_path)
        return charges
