"""How fast the transfers of one job can send together on the best fractional paths of an empty fabric.

At every moment, the transfer that is needed first sends as fast as the fabric lets it, the next as fast as that leaves
room for, and so on; flows may split over their candidate paths in any proportion, which may change from one moment to
the next.

Where paths are alike, even splitting is the best: ``are_alike`` tells. Elsewhere every rate is that of a linear
program.
"""

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog

from topologies.routing import Routing
from workloads.demand import Demand, sparse_matrix

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

LinkSeconds = tuple[IntArray, FloatArray]
"""Links, and how many seconds each needs, more than 0."""

LEAST_SHARE = 1e-12
"""A smaller share of a transfer counts as nothing."""
_UNIT_BITS = 1e9


def are_alike(demand: Demand, routing: Routing) -> bool:
    """Return whether the alternative paths of every commodity are alike, so that no split is better than an even one.

    They are where colour refinement cannot tell them apart: a linear program has an optimum that is the same for all
    that it cannot tell apart (Grohe, Kersting, Mladenov and Selman, "Dimension Reduction via Colour Refinement", ESA
    2014, Theorem 1).
    """
    fixed: defaultdict[int, list[tuple[int, float]]] = defaultdict(list)
    for (link, number), bits in demand.fixed_bits.items():
        fixed[link].append((number, bits))
    paths = [(commodity, path) for commodity, of in enumerate(demand.commodity_bits) for path in of]
    crossing: defaultdict[int, list[int]] = defaultdict(list)
    for number, (_, path) in enumerate(paths):
        for link in path:
            crossing[link].append(number)
    rates_bps = routing.fabric.rates_bps
    of_link = _numbered({link: (rates_bps[link], tuple(sorted(fixed[link]))) for link in crossing})
    of_path = {number: commodity for number, (commodity, _) in enumerate(paths)}
    num_colours = 0
    while len(set(of_link.values())) + len(set(of_path.values())) > num_colours:
        num_colours = len(set(of_link.values())) + len(set(of_path.values()))
        of_path = _numbered(
            {
                number: (of_path[number], *sorted(of_link[link] for link in path))
                for number, (_, path) in enumerate(paths)
            }
        )
        of_link = _numbered(
            {link: (of_link[link], *sorted(of_path[number] for number in on)) for link, on in crossing.items()}
        )
    return len(set(of_path.values())) == len(demand.commodity_bits)


def _numbered(colours: Mapping[int, Hashable]) -> dict[int, int]:
    numbers: dict[Hashable, int] = {}
    return {vertex: numbers.setdefault(colour, len(numbers)) for vertex, colour in colours.items()}


class EvenPaths:
    """Transfers whose flows split evenly; ``seconds`` by transfer is how long each occupies its links."""

    def __init__(self, seconds: Mapping[int, LinkSeconds], num_links: int) -> None:
        self._seconds = seconds
        self._free = np.ones(num_links)

    def shares(self, ordered: Sequence[int]) -> dict[int, float]:
        """Return the share of each transfer sent per second, in the order of their urgency."""
        shares: dict[int, float] = {}
        free = self._free
        for number in ordered:
            links, needs = self._seconds[number]
            free_here = free[links]
            share = float((free_here / needs).min(initial=np.inf))
            shares[number] = share if share > LEAST_SHARE else 0.0
            free[links] = np.maximum(free_here - shares[number] * needs, 0.0)
        for number in ordered:
            free[self._seconds[number][0]] = 1.0
        return shares


class BestPaths:
    """Transfers whose flows split as is best at every moment."""

    def __init__(self, demand: Demand, numbers: Sequence[int], routing: Routing) -> None:
        self._row = {number: row for row, number in enumerate(numbers)}
        self._rates_bps = routing.fabric.rates_bps
        self._fixed = [(link, row, bits / self._rates_bps[link]) for (link, row), bits in demand.fixed_bits.items()]
        self._commodities = list(demand.commodity_bits.items())
        self._known: dict[tuple[int, ...], dict[int, float]] = {}

    def shares(self, ordered: Sequence[int]) -> dict[int, float]:
        """Return the share of each transfer sent per second, in the order of their urgency.

        Raises RuntimeError if the solver finds no optimum.
        """
        asked = tuple(ordered)
        if asked not in self._known:
            self._known[asked] = self._solved(asked)
        return self._known[asked]

    def _solved(self, ordered: tuple[int, ...]) -> dict[int, float]:
        column = {self._row[number]: position for position, number in enumerate(ordered)}
        paths = [path for of_commodity, _ in self._commodities for path in of_commodity]
        num_links, columns = len(self._rates_bps), len(ordered) + len(paths)
        capacity = [(link, column[row], seconds) for link, row, seconds in self._fixed if row in column]
        capacity += [
            (link, len(ordered) + number, _UNIT_BITS / self._rates_bps[link])
            for number, path in enumerate(paths)
            for link in path
        ]
        conservation, first = [], len(ordered)
        for row, (of_commodity, bits_of) in enumerate(self._commodities):
            conservation += [(row, first + number, 1.0) for number in range(len(of_commodity))]
            conservation += [(row, column[of], -bits / _UNIT_BITS) for of, bits in bits_of.items() if of in column]
            first += len(of_commodity)
        least = np.zeros(len(ordered))
        for position in range(len(ordered)):
            goal = np.zeros(columns)
            goal[position] = -1.0
            # One that is fixed may sink by a rounding error; otherwise the next program might have no solution.
            bounds = [(share * (1 - 1e-9), share if share else None) for share in least]
            result = linprog(
                goal,
                A_ub=sparse_matrix(capacity, num_links, columns),
                b_ub=np.ones(num_links),
                A_eq=sparse_matrix(conservation, len(self._commodities), columns) if self._commodities else None,
                b_eq=np.zeros(len(self._commodities)) if self._commodities else None,
                bounds=[(0.0, 0.0) if later > position else bound for later, bound in enumerate(bounds)]
                + [(0.0, None)] * len(paths),
                method="highs",
            )
            if not result.success:
                raise RuntimeError(f"best paths: {result.message}")
            least[position] = result.x[position]
        return {
            number: float(share) if share > LEAST_SHARE else 0.0 for number, share in zip(ordered, least, strict=True)
        }
