"""The order that hosts keep: a plan's ranks as the few queues that an emulated NIC has."""

from collections.abc import Mapping

import numpy as np

from policies.rates.network import IntArray

HOST_QUEUES = 8
"""Queues of a NIC in strict priority, 7 the most urgent."""


def host_queues(orders: Mapping[int, int], senders: Mapping[int, int]) -> dict[int, int]:
    """A queue per flow, from its order at the host (0 first) and the NIC it leaves by.

    The orders that meet at a NIC get a queue each from the top; what comes behind the eighth shares the last.
    """
    by_flow = np.fromiter(orders.values(), np.int64, len(orders))
    queues = queues_of(by_flow, np.array([senders[flow] for flow in orders], dtype=np.int64))
    return dict(zip(orders, queues.tolist(), strict=True))


def queues_of(orders: IntArray, senders: IntArray) -> IntArray:
    """The same of flows as arrays; orders and senders from 0."""
    num_orders = int(orders.max(initial=0)) + 1
    met, of_flow = np.unique(senders * num_orders + orders, return_inverse=True)
    first = np.unique(met // num_orders, return_index=True)[1]
    places = np.arange(len(met)) - np.repeat(first, np.diff(np.append(first, len(met))))
    return np.asarray(np.maximum(HOST_QUEUES - 1 - places, 0)[of_flow])
