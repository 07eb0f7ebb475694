"""The order that hosts keep: a plan's ranks as the few queues that an emulated NIC has."""

from collections import defaultdict
from collections.abc import Mapping

HOST_QUEUES = 8
"""Queues of a NIC in strict priority, 7 the most urgent."""


def host_queues(orders: Mapping[int, int], senders: Mapping[int, int]) -> dict[int, int]:
    """A queue per flow, from its order at the host (0 first) and the NIC it leaves by.

    The orders that meet at a NIC get a queue each from the top; what comes behind the eighth shares the last.
    """
    met: defaultdict[int, set[int]] = defaultdict(set)
    for flow, order in orders.items():
        met[senders[flow]].add(order)
    places = {nic: {order: place for place, order in enumerate(sorted(found))} for nic, found in met.items()}
    return {flow: max(HOST_QUEUES - 1 - places[senders[flow]][order], 0) for flow, order in orders.items()}
