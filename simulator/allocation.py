"""The allocators of ``controller.policy.rates`` in the one form that the engine calls."""

from collections.abc import Mapping

from controller.policy.enforcement import Allocator
from controller.policy.rates.echelon import echelon_madd
from controller.policy.rates.madd import madd
from controller.policy.rates.max_min import max_min
from controller.policy.rates.order_greedy import order_greedy
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
