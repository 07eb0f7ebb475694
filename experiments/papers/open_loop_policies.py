"""How far the tardiness that policies leave is from the least there can be, on cases small enough to solve.

Up to three groups of up to four flows on one link or two, released at given times whatever happens; every policy with
rates of its own, set anew at each release and end.
"""

import random
from collections.abc import Iterator, Mapping

import numpy as np

from experiments.papers.open_loop import Allocation, FloatArray, Moment, OpenCase, end_times, random_case
from experiments.papers.open_loop_optimum import least_tardiness_s
from policies.baselines.varys import bottleneck_times
from policies.echelonflow.policy import Rank, group_order
from policies.rates.echelon import echelon_madd, further_tardiness_s, pressing_s
from policies.rates.loads import remaining_by_link
from policies.rates.madd import madd
from policies.rates.max_min import max_min
from policies.rates.network import Order
from policies.rates.order_greedy import order_greedy

CASES = 200


def needed_s(moment: Moment, order: Order) -> FloatArray:
    """How long each tier's bytes take the link that takes longest."""
    by_link = remaining_by_link(moment.network, order, moment.remaining_bytes)
    by_link.data = by_link.data * 8 / moment.network.capacities_bps[by_link.indices]
    return bottleneck_times(by_link)


def fair(moment: Moment) -> tuple[Order, FloatArray]:
    """All flows share alike."""
    one_level = Order.by_rank(moment.order.flows, np.zeros_like(moment.order.flows))
    return one_level, max_min(moment.network, one_level, np.ones(moment.network.num_flows))


def varys(moment: Moment) -> tuple[Order, FloatArray]:
    """Every group as a coflow: the one with least to send first, all its flows to end together."""
    order = moment.order.rearranged(group_order(Rank.GAMMA, needed_s(moment, moment.open_order), moment.weights))
    return order, madd(moment.network, order, moment.remaining_bytes)


def echelonflow(rank: Rank) -> Allocation:
    """Groups by rank, each kept in formation."""

    def allocate(moment: Moment) -> tuple[Order, FloatArray]:
        order = ranked(moment, rank, moment.open_order)
        return order, echelon_madd(moment.network, order, moment.remaining_bytes, moment.due_s)

    return allocate


def ranked(moment: Moment, rank: Rank, by: Order) -> Order:
    """The groups under way, ranked by the flows of ``by``."""
    match rank:
        case Rank.GAMMA:
            key_s = needed_s(moment, by)
        case Rank.PRESSING:
            key_s = pressing_s(moment.network, by, moment.remaining_bytes, moment.due_s)
        case Rank.TARDINESS_ASCENDING | Rank.TARDINESS_DESCENDING:
            further_s = further_tardiness_s(moment.network, by, moment.remaining_bytes, moment.due_s)
            key_s = moment.tardiness_s + np.maximum(further_s, 0.0)
    return moment.order.rearranged(group_order(rank, key_s, moment.weights))


def by_released_flows(moment: Moment) -> tuple[Order, FloatArray]:
    """By what is under way alone, blind to what is to come of a group."""
    order = ranked(moment, Rank.PRESSING, moment.order)
    return order, echelon_madd(moment.network, order, moment.remaining_bytes, moment.due_s)


def one_by_one(moment: Moment) -> tuple[Order, FloatArray]:
    """A group's flows at full rate one after the other, in order of ideal finish."""
    order = ranked(moment, Rank.PRESSING, moment.open_order)
    return order, order_greedy(moment.network, order, moment.remaining_bytes)


POLICIES: Mapping[str, Allocation] = {
    "echelonflow": echelonflow(Rank.PRESSING),
    "echelonflow_gamma": echelonflow(Rank.GAMMA),
    "echelonflow_tardiness_ascending": echelonflow(Rank.TARDINESS_ASCENDING),
    "echelonflow_tardiness_descending": echelonflow(Rank.TARDINESS_DESCENDING),
    "echelonflow_released_only": by_released_flows,
    "echelonflow_one_by_one": one_by_one,
    "varys": varys,
    "fair": fair,
}
"""Those compared, by the names that their figures have."""


def optimum_s(case: OpenCase) -> float:
    """The least weighted tardiness; times and sizes must be whole seconds and capacities 1."""
    return least_tardiness_s(case, slot_s=1.0 if len(case.capacities) == 1 else 0.5)


def tardiness_gaps(seed: int, num_cases: int = CASES) -> Iterator[dict[str, float]]:
    """By policy, tardiness over the least there can be, less 1: one random case after the other."""
    chance = random.Random(seed)
    for _ in range(num_cases):
        case = random_case(chance)
        optimum = optimum_s(case)
        yield {
            name: case.weighted_tardiness_s(end_times(case, allocate)) / optimum - 1
            for name, allocate in POLICIES.items()
        }
