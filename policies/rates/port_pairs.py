"""Max-min fair rates on one big switch, where every flow crosses two ports and many flows cross the same two.

This is the progressive filling of ``policies.rates.max_min``. Flows between the same ports have one rate: the lesser of
the shares at which their ingress and their egress port are used up. So a share for every port is enough, and there are
no paths to list or look up.
"""

import numpy as np

from policies.jit import compiled
from policies.rates.network import FloatArray


@compiled
def port_shares(
    from_ingress: FloatArray, from_egress: FloatArray, capacity: float, left: FloatArray, shares: FloatArray
) -> None:
    """Find the share of every port, ingress ports first: the rate of a flow that the port limits.

    It is infinite for a port that limits no flow. ``from_ingress[i, e]`` and ``from_egress[e, i]`` are the number of
    flows from port i to port e. ``left`` is scratch space. O(n) for each of the up to 2 n ports.
    """
    num_ports = len(from_ingress)
    weights = np.zeros(2 * num_ports)
    for port in range(num_ports):
        weights[port] = from_ingress[port].sum()
        weights[num_ports + port] = from_egress[port].sum()
    left[:] = capacity
    shares[:] = np.inf
    while True:
        bottleneck, least = -1, np.inf
        for port in range(2 * num_ports):
            if weights[port] > 0.0 and left[port] < least * weights[port]:
                bottleneck, least = port, left[port] / weights[port]
        if bottleneck < 0:
            return
        shares[bottleneck] = least
        weights[bottleneck] = 0.0
        if bottleneck < num_ports:
            _take(from_ingress[bottleneck], least, shares[num_ports:], weights[num_ports:], left[num_ports:])
        else:
            _take(from_egress[bottleneck - num_ports], least, shares, weights, left)


@compiled
def _take(numbers: FloatArray, share: float, shares: FloatArray, weights: FloatArray, left: FloatArray) -> None:
    """Subtract the flows of a port, whose share is now fixed, from the ports of the other side."""
    for port in range(len(numbers)):
        is_open = shares[port] == np.inf
        weights[port] -= numbers[port] if is_open else 0.0
        left[port] = max(left[port] - share * numbers[port], 0.0)
