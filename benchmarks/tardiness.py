"""How far the tardiness that policies leave is from the least there can be, on cases small enough to solve.

Up to three groups of up to four flows on one link or two, released at given times whatever happens; every policy with
rates of its own, set anew at each release and end.
"""

import random
from collections.abc import Mapping

import numpy as np

from benchmarks.open_loop import Allocation, FloatArray, Moment, OpenCase, end_times, random_case
from benchmarks.tardiness_optima import least_tardiness_s
from controller.policy.echelonflow import Rank, group_order
from controller.policy.rates.echelon import echelon_madd, further_tardiness_s
from controller.policy.rates.loads import remaining_by_link
from controller.policy.rates.madd import madd
from controller.policy.rates.max_min import max_min
from controller.policy.rates.network import Order
from controller.policy.rates.order_greedy import order_greedy
from controller.policy.varys import bottleneck_times

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
    order = moment.order.rearranged(
        group_order(Rank.GAMMA, needed_s(moment, moment.open_order), moment.tardiness_s, moment.weights)
    )
    return order, madd(moment.network, order, moment.remaining_bytes)


def echelonflow(rank: Rank) -> Allocation:
    """Groups by rank, each kept in formation."""

    def allocate(moment: Moment) -> tuple[Order, FloatArray]:
        order = ranked(moment, rank, moment.open_order)
        return order, echelon_madd(moment.network, order, moment.remaining_bytes, moment.due_s)

    return allocate


def ranked(moment: Moment, rank: Rank, by: Order) -> Order:
    """The groups under way, ranked by the flows of ``by``."""
    further_s = further_tardiness_s(moment.network, by, moment.remaining_bytes, moment.due_s)
    tardiness_s = moment.tardiness_s + np.maximum(further_s, 0.0)
    return moment.order.rearranged(group_order(rank, needed_s(moment, by), tardiness_s, moment.weights))


def by_released_flows(moment: Moment) -> tuple[Order, FloatArray]:
    """Gamma of what is under way alone, blind to what is to come of a group."""
    order = ranked(moment, Rank.GAMMA, moment.order)
    return order, echelon_madd(moment.network, order, moment.remaining_bytes, moment.due_s)


def one_by_one(moment: Moment) -> tuple[Order, FloatArray]:
    """Gamma, but a group's flows at full rate one after the other, in order of ideal finish."""
    order = ranked(moment, Rank.GAMMA, moment.open_order)
    return order, order_greedy(moment.network, order, moment.remaining_bytes)


POLICIES: Mapping[str, Allocation] = {
    "echelonflow": echelonflow(Rank.GAMMA),
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


def tardiness_gaps(seed: int, num_cases: int = CASES) -> dict[str, object]:
    """Tardiness over the least there can be, less 1: mean, 90th percentile and largest, for each policy."""
    chance = random.Random(seed)
    cases = [random_case(chance) for _ in range(num_cases)]
    optima = [optimum_s(case) for case in cases]
    figures: dict[str, object] = {}
    for name, allocate in POLICIES.items():
        gaps = [
            case.weighted_tardiness_s(end_times(case, allocate)) / optimum - 1
            for case, optimum in zip(cases, optima, strict=True)
        ]
        figures |= {
            f"tardiness_gap_{name}_mean": round(float(np.mean(gaps)), 4),
            f"tardiness_gap_{name}_p90": round(float(np.percentile(gaps, 90)), 4),
            f"tardiness_gap_{name}_max": round(max(gaps), 4),
        }
    return figures
