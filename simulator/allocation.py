"""The allocators of ``controller.policy.rates`` in the one form that the engine calls."""

from controller.policy.enforcement import Allocator
from controller.policy.rates.madd import madd
from controller.policy.rates.max_min import max_min
from controller.policy.rates.network import FloatArray, Network, Order
from controller.policy.rates.order_greedy import order_greedy
from simulator.fluid import Allocate


def allocate_by(allocator: Allocator) -> Allocate:
    """What sets the rates of bundles by this allocator."""

    def allocate(network: Network, order: Order, weights: FloatArray, remaining_bytes: FloatArray) -> FloatArray:
        match allocator:
            case Allocator.MAX_MIN:
                return max_min(network, order, weights)
            case Allocator.MADD:
                return madd(network, order, remaining_bytes)
            case Allocator.ORDER_GREEDY:
                return order_greedy(network, order, remaining_bytes)

    return allocate
