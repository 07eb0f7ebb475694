"""Rate allocators in the one form that the engine calls: those of ``policies.rates``, and any other."""

from collections.abc import Mapping

from policies.enforcement import Allocator, RateAllocator
from policies.rates.echelon import echelon_madd
from policies.rates.madd import madd
from policies.rates.max_min import max_min
from policies.rates.order_greedy import order_greedy
from simulator.fluid import Allocation

_ALLOCATIONS: Mapping[Allocator, Allocation] = {
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


def allocation(allocator: Allocator | RateAllocator) -> Allocation:
    """How an allocator sets the rates of bundles; one that is not ours gets whole tiers, whatever it does with them."""
    return _ALLOCATIONS[allocator] if isinstance(allocator, Allocator) else Allocation(allocator, joins_tiers=True)
