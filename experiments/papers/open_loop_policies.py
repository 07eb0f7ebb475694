"""The tardiness of policies against the optimum, on open-loop cases that are small enough to solve.

A case has up to three groups of up to four flows on one or two links. Every policy allocates rates of its own,
recomputed at each release and end.
"""

import random
from collections.abc import Mapping

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
    """Return the time that each tier's bytes take on the slowest of their links."""
    by_link = remaining_by_link(moment.network, order, moment.remaining_bytes)
    by_link.data = by_link.data * 8 / moment.network.capacities_bps[by_link.indices]
    return bottleneck_times(by_link)


def fair(moment: Moment) -> tuple[Order, FloatArray]:
    """Share max-min fairly among all flows."""
    one_level = Order.by_rank(moment.order.flows, np.zeros_like(moment.order.flows))
    return one_level, max_min(moment.network, one_level, np.ones(moment.network.num_flows))


def varys(moment: Moment) -> tuple[Order, FloatArray]:
    """Serve every group as a coflow: the shortest first, with all its flows ending together."""
    order = moment.order.rearranged(group_order(Rank.GAMMA, needed_s(moment, moment.open_order), moment.weights))
    return order, madd(moment.network, order, moment.remaining_bytes)


def echelonflow(rank: Rank) -> Allocation:
    """Return an allocator that serves groups by rank and keeps the spacing of each group's flows."""

    def allocate(moment: Moment) -> tuple[Order, FloatArray]:
        order = ranked(moment, rank, moment.open_order)
        return order, echelon_madd(moment.network, order, moment.remaining_bytes, moment.due_s)

    return allocate


def ranked(moment: Moment, rank: Rank, by: Order) -> Order:
    """Return the active groups, ranked by the flows of ``by``."""
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
    """Rank groups by their active flows alone, without those that are not released yet."""
    order = ranked(moment, Rank.PRESSING, moment.order)
    return order, echelon_madd(moment.network, order, moment.remaining_bytes, moment.due_s)


def one_by_one(moment: Moment) -> tuple[Order, FloatArray]:
    """Serve a group's flows at full rate one after the other, in order of ideal finish."""
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
"""The policies compared, by their names in the results."""


def optimum_s(case: OpenCase) -> float:
    """Return the least weighted tardiness; times and sizes must be whole seconds and capacities 1."""
    return least_tardiness_s(case, slot_s=1.0 if len(case.capacities) == 1 else 0.5)


def random_cases(seed: int, num_cases: int = CASES) -> list[OpenCase]:
    """Draw cases."""
    chance = random.Random(seed)
    return [random_case(chance) for _ in range(num_cases)]


def tardiness_gap(case: OpenCase) -> dict[str, float]:
    """Return each policy's tardiness over the optimum, minus 1. Raises RuntimeError where HiGHS finds no optimum."""
    optimum = optimum_s(case)
    return {
        name: case.weighted_tardiness_s(end_times(case, allocate)) / optimum - 1 for name, allocate in POLICIES.items()
    }
