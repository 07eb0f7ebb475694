"""Input of every rate allocator: a network with its flows, and the order in which flows are served.

Everything is arrays, so that a simulator can call an allocator at every event without building anything: the network
stays, and only the order, or the order of its tiers, changes from event to event. A call costs time for what its order
touches, however large the network is.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Self

import numpy as np

from policies.arrays import FloatArray as FloatArray
from policies.arrays import IntArray as IntArray
from policies.jit import compiled
from topologies.fabric import Path


@dataclass(frozen=True, slots=True, eq=False)
class Scratch:
    """Scratch space of an allocator, one place for each link.

    ``sums`` and ``counts`` are 0 between calls; the other arrays have no meaning then.
    """

    left: FloatArray
    sums: FloatArray
    counts: IntArray
    ends: IntArray
    used: IntArray
    shares: FloatArray

    @classmethod
    def of(cls, num_links: int) -> Self:
        """Return scratch space for so many links."""
        floats, integers = np.zeros((3, num_links)), np.zeros((3, num_links), dtype=np.int64)
        return cls(floats[0], floats[1], integers[0], integers[1], integers[2], floats[2])


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """Links with their capacities, and all flows with the links they cross. It serves one call at a time.

    Attributes:
        capacities_bps: By link; 0 for a link that is down.
        starts: Flow f crosses ``links[starts[f]:starts[f + 1]]``, each link once.
        links: The links of all flows.
        places: The places of flows on their ``links``, 0 the first, if a link serves its flows of one tier in an order;
            empty if none does. Max-min knows places, the other allocators do not.
        longest_path: The largest number of links that a flow crosses.
        scratch: Scratch space of the allocators.

    Raises:
        ValueError: A capacity is negative or not finite, or a flow crosses no link or an unknown one; the message names
            the link or the flow. Or places do not fit the links.
    """

    capacities_bps: FloatArray
    starts: IntArray
    links: IntArray
    places: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    longest_path: int = field(init=False)
    scratch: Scratch = field(init=False, repr=False)

    def __post_init__(self) -> None:
        num_links = len(self.capacities_bps)
        sound = np.isfinite(self.capacities_bps) & (self.capacities_bps >= 0)
        if not sound.all():
            link = int((~sound).argmax())
            capacity_bps = self.capacities_bps[link]
            raise ValueError(f"link {link}: its capacity must be finite and not negative, not {capacity_bps}")
        if not len(self.starts) or self.starts[0] != 0 or self.starts[-1] != len(self.links):
            raise ValueError("starts must begin with 0 and end with the number of hops")
        if ((hops := np.diff(self.starts)) < 1).any():
            raise ValueError(f"flow {int((hops < 1).argmax())}: it crosses no link")
        if (unknown := (self.links < 0) | (self.links >= num_links)).any():
            flow = int(self.starts.searchsorted(unknown.argmax(), "right")) - 1
            raise ValueError(f"flow {flow}: its links must lie between 0 and {num_links - 1}")
        if len(self.places) not in (0, len(self.links)):
            raise ValueError(f"expected places on {len(self.links)} hops, got {len(self.places)}")
        object.__setattr__(self, "longest_path", int(hops.max(initial=0)))
        object.__setattr__(self, "scratch", Scratch.of(num_links))

    @classmethod
    def of(cls, capacities_bps: FloatArray, paths: Sequence[Path], places: IntArray | None = None) -> Self:
        """Return a network of flows with these paths, and with these places on all links one after another."""
        starts = np.cumsum([0, *map(len, paths)], dtype=np.int64)
        links = np.fromiter(chain.from_iterable(paths), dtype=np.int64, count=int(starts[-1]))
        return cls(capacities_bps, starts, links, *([] if places is None else [places]))

    def with_capacities(self, capacities_bps: FloatArray) -> Self:
        """Return the same flows on links of other capacities."""
        return type(self)(capacities_bps, self.starts, self.links, self.places)

    @property
    def num_flows(self) -> int:
        """How many flows there are."""
        return len(self.starts) - 1

    def full_capacities(self, order: "Order") -> FloatArray:
        """Return the whole capacity of every link that the order's flows cross, in ``scratch.left``."""
        left = self.scratch.left
        if len(order.flows) < len(left):
            fill(self.starts, self.links, order.flows, self.capacities_bps, left)
        else:
            left[:] = self.capacities_bps
        return left


@dataclass(frozen=True, slots=True, eq=False)
class Order:
    """The active flows in tiers, most urgent first: tier ``t`` is ``flows[starts[t]:stops[t]]``.

    A tier is what an allocator serves as one: flows of one level, which share fairly, or flows of one group, which
    finish together. Tiers may stand in ``flows`` in any order and must not overlap. A flow outside all tiers gets
    nothing.

    Raises:
        ValueError: A tier is not a part of ``flows``.
    """

    flows: IntArray
    starts: IntArray
    stops: IntArray

    def __post_init__(self) -> None:
        if not ((self.starts >= 0) & (self.starts <= self.stops) & (self.stops <= len(self.flows))).all():
            raise ValueError(f"tiers must lie within the {len(self.flows)} flows")

    @classmethod
    def by_rank(cls, flows: IntArray, ranks: IntArray) -> Self:
        """Return an order with a tier for every rank, lowest first; inside a tier flows keep their order."""
        order = ranks.argsort(kind="stable")
        is_first = np.ones(len(ranks) + 1, dtype=bool)
        is_first[1:-1] = np.diff(ranks[order]) > 0
        bounds = np.flatnonzero(is_first) if len(ranks) else np.zeros(1, dtype=np.int64)
        return cls(flows[order], bounds[:-1], bounds[1:])

    def rearranged(self, tiers: IntArray) -> Self:
        """Return the same tiers in another order, given as their present numbers."""
        return type(self)(self.flows, self.starts[tiers], self.stops[tiers])


def check_values(values: FloatArray, name: str, network: Network, order: Order) -> None:
    """Check that values of active flows are finite and not negative.

    Raises:
        ValueError: One is not; the message names the flow.
    """
    if len(values) != network.num_flows:
        raise ValueError(f"expected {name} of {network.num_flows} flows, got {len(values)}")
    active = values[order.flows]
    if not (active.min(initial=0.0) >= 0 and active.max(initial=0.0) < np.inf):
        flow = int(order.flows[(~(np.isfinite(active) & (active >= 0))).argmax()])
        raise ValueError(f"flow {flow}: {name} must be finite and not negative, not {values[flow]}")


@compiled
def fill(first_hop: IntArray, links: IntArray, flows: IntArray, capacities: FloatArray, left: FloatArray) -> None:
    """Set ``left`` to the whole capacity on all links that flows cross."""
    for flow in flows:
        for hop in range(first_hop[flow], first_hop[flow + 1]):
            left[links[hop]] = capacities[links[hop]]
