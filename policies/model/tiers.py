"""The order in which flows are served: by level and, inside a level, by the order that hosts keep at their NICs."""

from collections.abc import Mapping

import numpy as np

from policies.arrays import IntArray

HOST_QUEUES = 8
"""Queues of a NIC in strict priority, 7 the most urgent."""
HIGHEST_LEVEL = 7


def tiers_of_levels(levels: IntArray, orders: IntArray, first_links: IntArray) -> IntArray:
    """Return tiers by level and, inside a level, by the order among the flows that leave by the same link.

    Flows of a smaller tier are served first.
    """
    return (HIGHEST_LEVEL + 1 - levels) * HOST_QUEUES - 1 - _queues(orders, first_links)


def host_queues(orders: Mapping[int, int], senders: Mapping[int, int]) -> dict[int, int]:
    """Return the queue of each flow, from its order at the host (0 first) and the NIC that sends it.

    Each order at a NIC has a queue of its own, from the top; the eighth and later ones share the last queue.
    """
    by_flow = np.fromiter(orders.values(), np.int64, len(orders))
    queues = _queues(by_flow, np.array([senders[flow] for flow in orders], dtype=np.int64))
    return dict(zip(orders, queues.tolist(), strict=True))


def _queues(orders: IntArray, senders: IntArray) -> IntArray:
    """Do the work of ``host_queues`` on arrays; orders and senders count from 0."""
    num_orders = int(orders.max(initial=0)) + 1
    unique, of_flow = np.unique(senders * num_orders + orders, return_inverse=True)
    first = np.unique(unique // num_orders, return_index=True)[1]
    places = np.arange(len(unique)) - np.repeat(first, np.diff(np.append(first, len(unique))))
    return np.asarray(np.maximum(HOST_QUEUES - 1 - places, 0)[of_flow])
