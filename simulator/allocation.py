"""The allocators of ``policies.rates`` in the one form that the engine calls."""

from collections.abc import Mapping

from policies.enforcement import Allocator
from policies.rates.echelon import echelon_madd
from policies.rates.madd import madd
from policies.rates.max_min import max_min
from policies.rates.order_greedy import order_greedy
from simulator.fluid import Allocation

ALLOCATIONS: Mapping[Allocator, Allocation] = {
    Allocator.MAX_MIN: Allocation(
        lambda network, order, weights, _remaining, _due: max_min(network, order, weights), False
    ),
    Allocator.MADD: Allocation(lambda network, order, _weights, remaining, _due: madd(network, order, remaining), True),
    Allocator.ECHELON_MADD: Allocation(
        lambda network, order, _weights, remaining, due: echelon_madd(network, order, remaining, due), True
    ),
    Allocator.ORDER_GREEDY: Allocation(
        lambda network, order, _weights, remaining, _due: order_greedy(network, order, remaining), False
    ),
}
"""How each of them sets the rates of bundles."""
