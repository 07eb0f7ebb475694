"""Max-min fair rates where every flow crosses two ports of one big switch, and many flows the same two.

The same progressive filling as ``policies.rates.max_min``. But flows between the same ports have one rate, the
lesser of two shares: that at which its ingress and that at which its egress port is used up. So it is enough to find a
share for every port, and nothing has to be listed or looked up.
"""

import numpy as np

from policies.jit import compiled
from policies.rates.network import FloatArray


@compiled
def port_shares(
    from_ingress: FloatArray, from_egress: FloatArray, capacity: float, left: FloatArray, shares: FloatArray
) -> None:
    """Find the share of every port, ingress ports first: what a flow gets that it stops, infinite where it stops none.

    ``from_ingress[i, e]`` and ``from_egress[e, i]`` are the number of flows from port i to port e. ``left`` is room to
    compute in. O(n) for each of the up to 2 n ports.
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
    """Count the flows of a port that have their share now as fixed at the ports of the other side."""
    for port in range(len(numbers)):
        is_open = shares[port] == np.inf
        weights[port] -= numbers[port] if is_open else 0.0
        left[port] = max(left[port] - share * numbers[port], 0.0)
