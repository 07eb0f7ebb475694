"""Open-loop flow groups: flows released at given times on a few links, and their simulation under an allocator.

Time advances from event to event, a flow's release or end, and rates are recomputed at each.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from policies.echelonflow.policy import due_s
from policies.rates.echelon import in_order_of_due
from policies.rates.network import Network, Order
from topologies.fabric import Path

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

_ENDED_SHARE = 1e-9
"""A flow with at most this share of its size left has ended."""


@dataclass(frozen=True, slots=True)
class OpenFlow:
    """A flow with its release time. ``seconds`` is its size: the time it takes on a link of capacity 1."""

    links: Path
    release_s: float
    seconds: float
    offset_s: float = 0.0


@dataclass(frozen=True)
class OpenGroup:
    """A flow group; its reference time is the release of its first flow."""

    flows: tuple[OpenFlow, ...]
    weight: float = 1.0

    @property
    def reference_s(self) -> float:
        """The release of the first flow."""
        return min(flow.release_s for flow in self.flows)

    def tardiness_s(self, end_s: Sequence[float]) -> float:
        """Return the group's tardiness, given the end of each flow."""
        return max(end - self.reference_s - flow.offset_s for end, flow in zip(end_s, self.flows, strict=True))


@dataclass(frozen=True)
class OpenCase:
    """Groups that share links."""

    capacities: tuple[float, ...]
    groups: tuple[OpenGroup, ...]

    @cached_property
    def flows(self) -> list[OpenFlow]:
        """All flows, group by group."""
        return [flow for group in self.groups for flow in group.flows]

    @cached_property
    def group_of(self) -> IntArray:
        """The number of each flow's group."""
        return np.repeat(np.arange(len(self.groups)), [len(group.flows) for group in self.groups])

    @cached_property
    def network(self) -> Network:
        """The links with the flows that cross them."""
        return Network.of(np.array(self.capacities), [flow.links for flow in self.flows])

    @cached_property
    def ideal_finish_s(self) -> FloatArray:
        """The ideal finish time of each flow."""
        return np.array(
            [group.reference_s + flow.offset_s for group in self.groups for flow in group.flows], dtype=np.float64
        )

    def tardiness_s(self, end_s: Sequence[float]) -> list[float]:
        """Return the tardiness of each group, given the end of each flow."""
        ends = np.array(end_s)
        return [group.tardiness_s(ends[self.group_of == number]) for number, group in enumerate(self.groups)]

    def weighted_tardiness_s(self, end_s: Sequence[float]) -> float:
        """Return the objective: the weighted sum of tardiness over groups."""
        weights = [group.weight for group in self.groups]
        return sum(weight * late for weight, late in zip(weights, self.tardiness_s(end_s), strict=True))


@dataclass(frozen=True, slots=True)
class Moment:
    """The state that an allocator sees at an event.

    A tier is a group that has an active flow: ``order`` has its active flows, ``open_order`` also those that are not
    released yet. Flows are sorted by ``due_s`` (see ``policies.echelonflow.policy.due_s``). ``tardiness_s``, that of
    ended flows, and ``weights`` are by tier.
    """

    network: Network
    order: Order
    open_order: Order
    remaining_bytes: FloatArray
    due_s: FloatArray
    tardiness_s: FloatArray
    weights: FloatArray


Allocation = Callable[[Moment], tuple[Order, FloatArray]]
"""Returns the tiers in the order in which they are served, and the rate of every flow in that order."""


def end_times(case: OpenCase, allocate: Allocation) -> list[float]:
    """Simulate a case and return the end of every flow.

    Raises:
        RuntimeError: The allocator never serves a flow.
    """
    release_s = np.array([flow.release_s for flow in case.flows], dtype=np.float64)
    sizes = np.array([flow.seconds for flow in case.flows]) / 8
    weights = np.array([group.weight for group in case.groups])
    remaining, end_s = sizes.copy(), np.full(len(sizes), np.inf)
    so_far_s = np.zeros(len(case.groups))
    now_s = float(release_s.min())
    while np.isinf(end_s).any():
        there = np.flatnonzero((release_s <= now_s) & np.isinf(end_s))
        later = release_s[release_s > now_s].min(initial=np.inf)
        step_s, rates = later - now_s, np.zeros(0)
        if len(there):
            due = due_s(case.ideal_finish_s, so_far_s[case.group_of], now_s)
            present = np.unique(case.group_of[there])
            to_come = np.flatnonzero(np.isinf(end_s) & np.isin(case.group_of, present))
            order, open_order = (
                in_order_of_due(Order.by_rank(flows, case.group_of[flows]), due) for flows in (there, to_come)
            )
            moment = Moment(case.network, order, open_order, remaining, due, so_far_s[present], weights[present])
            order, rates = allocate(moment)
            with np.errstate(divide="ignore"):
                step_s = min(step_s, float((remaining[order.flows] * 8 / rates).min()))
            if not step_s < np.inf:
                raise RuntimeError(f"flows {there.tolist()} are never served")
            remaining[order.flows] -= rates * step_s / 8
        now_s += step_s
        ended = there[remaining[there] <= _ENDED_SHARE * sizes[there]]
        remaining[ended] = 0.0
        end_s[ended] = now_s
        np.maximum.at(so_far_s, case.group_of[ended], now_s - case.ideal_finish_s[ended])
    return end_s.tolist()


def random_case(chance: random.Random, most_groups: int = 3, most_flows: int = 4, most_links: int = 2) -> OpenCase:
    """Draw a case with whole sizes and times. A quarter of the groups are coflows, released all at once."""
    num_links = chance.randint(1, most_links)
    paths = [(0,)] if num_links == 1 else [(0,), (1,), (0, 1)]
    groups = []
    for _ in range(chance.randint(1, most_groups)):
        release = chance.randint(0, 6)
        is_coflow = chance.random() < 0.25
        flows, offset = [], 0
        for _ in range(chance.randint(1, most_flows)):
            flows.append(OpenFlow(chance.choice(paths), release, chance.randint(1, 4), offset))
            if not is_coflow:
                release += chance.randint(0, 3)
                offset += chance.randint(0, 3)
        groups.append(OpenGroup(tuple(flows)))
    return OpenCase((1.0,) * num_links, tuple(groups))
