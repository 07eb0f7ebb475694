"""Compression of an order of jobs to the few levels that hardware has.

Jobs that share a link whose order a switch queue keeps form a directed graph, from the more urgent to the less urgent
job. Its maximum K-cut is the compression (Crux, section 4.3). Crux weighs an edge by the intensity of the more urgent
job. Here an edge may also weigh what the two jobs lose if they share the link evenly instead of one after the other,
over all times at which they meet (docs/trainyard-policy.md).
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.sparse import csr_array

from policies.arrays import BoolArray, FloatArray, IntArray
from policies.crux.compression import levels_of_cut
from policies.traffic import Loads
from policies.trainyard.contention import Contention, sum_rows


@dataclass(frozen=True, slots=True, eq=False)
class LevelCut:
    """The maximum K-cut of an order of jobs, for different weights of the edges.

    Attributes:
        contention: The jobs.
        order: Their numbers, most urgent first.
        edges: An entry from the more urgent of two jobs that share a link with levels to the other, both as places in
            the order.
        num_levels: K.
        seed: Of the orders that the cut tries.
        num_orders: How many orders the cut tries; None: as many as the size of the graph suggests.
    """

    contention: Contention
    order: IntArray
    edges: csr_array
    num_levels: int
    seed: int
    num_orders: int | None

    @classmethod
    def of(
        cls,
        contention: Contention,
        order: IntArray,
        occupied_s: csr_array,
        has_levels: BoolArray,
        num_levels: int,
        seed: int,
        num_orders: int | None,
    ) -> Self:
        """Find the edges: ``occupied_s`` as of ``Contention.of``; ``has_levels`` by link of the fabric."""
        uses = sum_rows(occupied_s, contention.first_transfer)
        loads = Loads(uses.indptr.astype(np.int64), uses.indices.astype(np.int32), uses.data, uses.shape[1])
        return cls(contention, order, loads.sharing(order.tolist(), has_levels), num_levels, seed, num_orders)

    def by_loss(self) -> IntArray:
        """Return levels by job, where an edge weighs what sharing a level loses."""
        first, second = self._ends()
        return self._levels(sharing_losses(self.contention, first, second))

    def by_intensity(self) -> IntArray:
        """Return levels by job, where an edge weighs the intensity of the more urgent job, as in Crux."""
        first, _ = self._ends()
        return self._levels(self.contention.intensity[first])

    def _ends(self) -> tuple[IntArray, IntArray]:
        """Return the jobs that the edges join, the more urgent ones first."""
        rows = np.repeat(np.arange(len(self.order)), np.diff(self.edges.indptr))
        return self.order[rows], self.order[self.edges.indices]

    def _levels(self, weights: FloatArray) -> IntArray:
        edges = csr_array((weights, self.edges.indices, self.edges.indptr), shape=self.edges.shape)
        return levels_of_cut(edges, self.num_levels, self.seed, self.num_orders)[np.argsort(self.order)]


def sharing_losses(contention: Contention, first: IntArray, second: IntArray) -> FloatArray:
    """Return what pairs of jobs lose per second if they share a link evenly, instead of the first before the second.

    Of two transfers that begin together, the shorter then takes twice its time, and the longer ends when it would if it
    went second. Delay beyond a transfer's slack costs its job's worth. Two transfers meet as often as one begins while
    the other is under way.
    """
    worth, rate = contention.worth, contention.num_transfers / contention.ideal_s
    p = contention.mean_by_job(contention.bottleneck_s)
    slack = contention.mean_by_job(np.maximum(contention.due_s - contention.release_s - contention.bottleneck_s, 0.0))

    def cost(job: IntArray, delay: FloatArray) -> FloatArray:
        return worth[job] * np.maximum(delay - slack[job], 0.0)

    shared = np.minimum(p[first], p[second])
    lost = cost(first, shared) - (cost(second, p[first]) - cost(second, shared))
    return np.maximum(lost, 0.0) * rate[first] * rate[second] * (p[first] + p[second])
