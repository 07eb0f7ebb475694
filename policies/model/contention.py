"""Contention index: the flows on every link, and all flows that a change on some links can affect.

Every link has a doubly linked list of hops of the network. Adding, removing and searching cost time in proportion to
the hops concerned, however many flows there are.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from policies.jit import compiled
from policies.rates.network import IntArray, Network

BoolArray = npt.NDArray[np.bool_]

NO_HOP = -1
"""End of a link's list."""


@dataclass(frozen=True, slots=True, eq=False)
class Contention:
    """The active flows of a network, by link.

    ``first[link]`` is the first hop in a link's list; ``following`` and ``preceding`` connect hops, and ``flow_of_hop``
    has their flows. The other arrays are scratch space for searches.
    """

    network: Network
    first: IntArray
    following: IntArray
    preceding: IntArray
    flow_of_hop: IntArray
    is_found: BoolArray
    is_seen: BoolArray
    found: IntArray
    seen: IntArray

    @classmethod
    def of(cls, network: Network) -> Self:
        """Return an index without active flows."""
        num_hops, num_links = len(network.links), len(network.capacities_bps)
        return cls(
            network,
            first=np.full(num_links, NO_HOP),
            following=np.full(num_hops, NO_HOP),
            preceding=np.full(num_hops, NO_HOP),
            flow_of_hop=np.repeat(np.arange(network.num_flows), np.diff(network.starts)),
            is_found=np.zeros(network.num_flows, dtype=np.bool_),
            is_seen=np.zeros(num_links, dtype=np.bool_),
            found=np.empty(network.num_flows, dtype=np.int64),
            seen=np.empty(num_links, dtype=np.int64),
        )

    def join(self, flows: IntArray) -> None:
        """Add flows."""
        join_links(self.network.starts, self.network.links, flows, self.first, self.following, self.preceding)

    def leave(self, flows: IntArray) -> None:
        """Remove flows."""
        leave_links(self.network.starts, self.network.links, flows, self.first, self.following, self.preceding)

    def reach(self, flows: IntArray) -> IntArray:
        """Return all active flows connected to a link of these flows through shared links, ascending."""
        where = self.network.starts, self.network.links, flows
        lists = self.first, self.following, self.flow_of_hop
        number = reach_flows(*where, *lists, self.is_found, self.is_seen, self.found, self.seen)
        return np.sort(self.found[:number])


@compiled
def join_links(
    first_hop: IntArray, links: IntArray, flows: IntArray, first: IntArray, following: IntArray, preceding: IntArray
) -> None:
    """Add flows to the lists of their links."""
    for flow in flows:
        for hop in range(first_hop[flow], first_hop[flow + 1]):
            head = first[links[hop]]
            following[hop], preceding[hop] = head, NO_HOP
            if head != NO_HOP:
                preceding[head] = hop
            first[links[hop]] = hop


@compiled
def leave_links(
    first_hop: IntArray, links: IntArray, flows: IntArray, first: IntArray, following: IntArray, preceding: IntArray
) -> None:
    """Remove flows from the lists of their links."""
    for flow in flows:
        for hop in range(first_hop[flow], first_hop[flow + 1]):
            before, after = preceding[hop], following[hop]
            if after != NO_HOP:
                preceding[after] = before
            if before != NO_HOP:
                following[before] = after
            else:
                first[links[hop]] = after


@compiled
def reach_flows(
    first_hop: IntArray,
    links: IntArray,
    flows: IntArray,
    first: IntArray,
    following: IntArray,
    flow_of_hop: IntArray,
    is_found: BoolArray,
    is_seen: BoolArray,
    found: IntArray,
    seen: IntArray,
) -> int:
    """Write the connected flows to ``found``; return their number. ``is_found`` and ``is_seen`` are reset."""
    num_found, num_seen, num_searched = 0, 0, 0
    for flow in flows:
        for hop in range(first_hop[flow], first_hop[flow + 1]):
            if not is_seen[links[hop]]:
                is_seen[links[hop]] = True
                seen[num_seen] = links[hop]
                num_seen += 1
    while num_searched < num_seen:
        hop = first[seen[num_searched]]
        num_searched += 1
        while hop != NO_HOP:
            flow = flow_of_hop[hop]
            if not is_found[flow]:
                is_found[flow] = True
                found[num_found] = flow
                num_found += 1
                for other in range(first_hop[flow], first_hop[flow + 1]):
                    if not is_seen[links[other]]:
                        is_seen[links[other]] = True
                        seen[num_seen] = links[other]
                        num_seen += 1
            hop = following[hop]
    for index in range(num_found):
        is_found[found[index]] = False
    for index in range(num_seen):
        is_seen[seen[index]] = False
    return num_found
