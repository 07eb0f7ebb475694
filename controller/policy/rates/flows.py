"""What every rate allocator is given: the links of flows, and who is served before whom.

All of it is arrays, so that a simulator calls an allocator at every event without building anything: the links of flows
are laid down once, and from event to event only the order changes, or no more than the order of its tiers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Self

import numpy as np
import numpy.typing as npt

from topologies.fabric import Path

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class FlowLinks:
    """Links of all flows as compressed rows: flow ``f`` crosses ``links[starts[f]:starts[f + 1]]``, each once.

    Raises ValueError, naming the flow, for one that crosses no link or one outside 0 to ``num_links - 1``.
    """

    starts: IntArray
    links: IntArray
    num_links: int

    def __post_init__(self) -> None:
        if not len(self.starts) or self.starts[0] != 0 or self.starts[-1] != len(self.links):
            raise ValueError("starts must lead from 0 to the number of hops")
        if ((hops := np.diff(self.starts)) < 1).any():
            raise ValueError(f"flow {int((hops < 1).argmax())}: it crosses no link")
        if (unknown := (self.links < 0) | (self.links >= self.num_links)).any():
            flow = int(self.starts.searchsorted(unknown.argmax(), "right")) - 1
            raise ValueError(f"flow {flow}: its links must lie between 0 and {self.num_links - 1}")

    @classmethod
    def of(cls, paths: Sequence[Path], num_links: int) -> Self:
        """Flows in the order of their paths."""
        starts = np.cumsum([0, *map(len, paths)], dtype=np.int64)
        return cls(starts, np.fromiter(chain.from_iterable(paths), dtype=np.int64, count=int(starts[-1])), num_links)

    @property
    def num_flows(self) -> int:
        return len(self.starts) - 1

    def num_hops(self, flows: IntArray) -> int:
        """Hops of some flows together."""
        return int((self.starts[flows + 1] - self.starts[flows]).sum())


@dataclass(frozen=True, slots=True, eq=False)
class Order:
    """The active flows in tiers, most urgent first: tier ``t`` is ``flows[starts[t]:stops[t]]``.

    A tier is what an allocator treats as one: flows of one level, which share fairly, or the flows of one flow group,
    which finish together. Tiers may stand in ``flows`` in any order; a flow outside all tiers gets nothing, one in two
    is a mistake that nobody looks for. Raises ValueError for a tier that is not a part of ``flows``.
    """

    flows: IntArray
    starts: IntArray
    stops: IntArray

    def __post_init__(self) -> None:
        if not ((self.starts >= 0) & (self.starts <= self.stops) & (self.stops <= len(self.flows))).all():
            raise ValueError(f"tiers must lie within the {len(self.flows)} flows")

    @classmethod
    def by_rank(cls, flows: IntArray, ranks: IntArray) -> Self:
        """A tier for every rank, lowest first; inside a tier flows stay in the order given."""
        order = ranks.argsort(kind="stable")
        is_first = np.ones(len(ranks) + 1, dtype=bool)
        is_first[1:-1] = np.diff(ranks[order]) > 0
        bounds = np.flatnonzero(is_first) if len(ranks) else np.zeros(1, dtype=np.int64)
        return cls(flows[order], bounds[:-1], bounds[1:])

    def rearranged(self, tiers: IntArray) -> Self:
        """The same tiers in another order, given as their present numbers."""
        return type(self)(self.flows, self.starts[tiers], self.stops[tiers])


def check_capacities(capacities_bps: FloatArray, links: FlowLinks) -> None:
    """Raise ValueError, naming the link, for a capacity that is not finite or is negative; 0 is a link that is down."""
    if len(capacities_bps) != links.num_links:
        raise ValueError(f"expected the capacities of {links.num_links} links, got {len(capacities_bps)}")
    sound = np.isfinite(capacities_bps) & (capacities_bps >= 0)
    if not sound.all():
        link = int((~sound).argmax())
        raise ValueError(f"link {link}: its capacity must be finite and not negative, not {capacities_bps[link]}")


def check_values(values: FloatArray, name: str, links: FlowLinks, order: Order) -> None:
    """Raise ValueError, naming the flow, where a value of an active flow is not finite or negative."""
    if len(values) != links.num_flows:
        raise ValueError(f"expected {name} of {links.num_flows} flows, got {len(values)}")
    active = values[order.flows]
    if not (active.min(initial=0.0) >= 0 and active.max(initial=0.0) < np.inf):
        flow = int(order.flows[(~(np.isfinite(active) & (active >= 0))).argmax()])
        raise ValueError(f"flow {flow}: {name} must be finite and not negative, not {values[flow]}")
