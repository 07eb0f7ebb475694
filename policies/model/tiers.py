"""The order in which flows are served: by level and, where they leave their host, inside a level by order."""

from collections.abc import Mapping

import numpy as np

from policies.arrays import IntArray

HOST_QUEUES = 8
"""Queues of a NIC in strict priority, 7 the most urgent."""
HIGHEST_LEVEL = 7


def tiers_and_places(levels: IntArray, orders: IntArray, first_links: IntArray) -> tuple[IntArray, IntArray]:
    """Return tiers, which are levels, and places in the order among the flows of a level that leave by one link.

    Flows of a smaller tier are served first, and those of a smaller place.
    """
    queues = _queues(orders, first_links * (HIGHEST_LEVEL + 1) + levels)
    return HIGHEST_LEVEL - levels, HOST_QUEUES - 1 - queues


def places_on_hops(places: IntArray, num_hops: IntArray, num_outside: IntArray) -> IntArray:
    """Return the places of flows on all their links, one flow after another.

    Only the links by which a flow leaves its host have an order: its NIC's, and that of its PCIe switch, which follows
    the ``num_outside`` links of the network. Empty where all places are 0.
    """
    if not places.any():
        return np.zeros(0, dtype=np.int64)
    by_hop = np.zeros(num_hops.sum(), dtype=np.int64)
    first = np.cumsum(num_hops) - num_hops
    by_hop[first] = places
    inside = num_outside < num_hops
    by_hop[(first + num_outside)[inside]] = places[inside]
    return by_hop


def host_queues(orders: Mapping[int, tuple[int, int]], senders: Mapping[int, int]) -> dict[int, int]:
    """Return the queue of each flow, from its level and order (0 first) and the NIC that sends it.

    Each level, and in it each order at a NIC, has a queue of its own, from the top; the eighth and later ones share the
    last queue.
    """
    num_orders = 1 + max((order for _, order in orders.values()), default=0)
    by_flow = [(HIGHEST_LEVEL - level) * num_orders + order for level, order in orders.values()]
    queues = _queues(np.array(by_flow, dtype=np.int64), np.array([senders[flow] for flow in orders], dtype=np.int64))
    return dict(zip(orders, queues.tolist(), strict=True))


def _queues(orders: IntArray, senders: IntArray) -> IntArray:
    """Return the queue of each flow among those of its sender; orders and senders count from 0."""
    num_orders = int(orders.max(initial=0)) + 1
    unique, of_flow = np.unique(senders * num_orders + orders, return_inverse=True)
    first = np.unique(unique // num_orders, return_index=True)[1]
    places = np.arange(len(unique)) - np.repeat(first, np.diff(np.append(first, len(unique))))
    return np.asarray(np.maximum(HOST_QUEUES - 1 - places, 0)[of_flow])
