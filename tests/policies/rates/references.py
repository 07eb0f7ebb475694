"""Plain and slow versions of the allocators on lists, and small networks to compare them on."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from policies.rates.network import FloatArray, Network, Order
from topologies.fabric import Path

Tiers = Sequence[Sequence[int]]


@dataclass(frozen=True)
class Case:
    """Flows by path, in tiers of flow numbers, with a value for each: its weight or the bytes it has left."""

    capacities: list[float]
    paths: list[Path]
    tiers: list[list[int]]
    values: list[float]

    @property
    def arguments(self) -> tuple[Network, Order, FloatArray]:
        """What an allocator takes."""
        flows = [flow for tier in self.tiers for flow in tier]
        ends = np.cumsum([0, *map(len, self.tiers)])
        return (
            Network.of(np.array(self.capacities), self.paths),
            Order(np.array(flows, dtype=np.int64), ends[:-1], ends[1:]),
            np.array(self.values, dtype=np.float64),
        )

    def carried(self, rates: FloatArray) -> list[float]:
        """What every link carries at the rates that an allocator gave."""
        carried = [0.0] * len(self.capacities)
        for flow, rate in zip((flow for tier in self.tiers for flow in tier), rates, strict=True):
            for link in self.paths[flow]:
                carried[link] += float(rate)
        return carried


@st.composite
def cases(draw: st.DrawFn, smallest_value: int = 0) -> Case:
    """Up to eight flows on five links, some of them not active; coarse numbers, so that ties are common."""
    num_links = 5
    capacities = draw(st.lists(st.sampled_from([0.0, 1.0, 2.0, 3.0, 10.0]), min_size=num_links, max_size=num_links))
    path = st.lists(st.integers(0, num_links - 1), min_size=1, max_size=3, unique=True).map(tuple)
    paths = draw(st.lists(path, min_size=1, max_size=8))
    values = draw(st.lists(st.integers(smallest_value, 5).map(float), min_size=len(paths), max_size=len(paths)))
    active = draw(st.permutations(range(len(paths))))[: draw(st.integers(0, len(paths)))]
    tier_of = [draw(st.integers(0, 3)) for _ in active]
    tiers = [[flow for flow, tier in zip(active, tier_of, strict=True) if tier == number] for number in range(4)]
    return Case(capacities, paths, [tier for tier in tiers if tier], values)


def plain_max_min(case: Case) -> list[float]:
    """Raise all rates of a tier together and stop those that meet a full link, again and again."""
    left = list(case.capacities)
    rates = []
    for tier in case.tiers:
        tier_rates = dict.fromkeys(tier, 0.0)
        growing = {flow for flow in tier if case.values[flow] > 0}
        while growing:
            weight_on = [
                sum(case.values[flow] for flow in growing if link in case.paths[flow]) for link in range(len(left))
            ]
            shares = {link: left[link] / weight for link, weight in enumerate(weight_on) if weight > 0}
            share = min(shares.values())
            full = {link for link in shares if shares[link] <= share * (1 + 1e-12)}
            for flow in growing:
                tier_rates[flow] += share * case.values[flow]
            left = [left[link] - share * weight_on[link] if link not in full else 0.0 for link in range(len(left))]
            growing = {flow for flow in growing if not full & set(case.paths[flow])}
        rates += [tier_rates[flow] for flow in tier]
    return rates


def plain_madd(case: Case) -> list[float]:
    """Tier by tier, then what is left flow by flow."""
    left = list(case.capacities)
    rates: dict[int, float] = {}
    for tier in case.tiers:
        bytes_on = [
            math.fsum(case.values[flow] for flow in tier if link in case.paths[flow]) for link in range(len(left))
        ]
        used = [link for link in range(len(left)) if bytes_on[link] > 0]
        possible = used and all(left[link] > 1e-9 for link in used)
        duration = max(bytes_on[link] / left[link] for link in used) if possible else math.inf
        for flow in tier:
            rates[flow] = case.values[flow] / duration
        left = [max(left[link] - bytes_on[link] / duration, 0.0) for link in range(len(left))]
    return _backfilled(case, left, rates)


def plain_echelon_madd(case: Case, due: list[float]) -> list[float]:
    """Tier by tier: how late it gets, then its stages, each no faster than that; then what is left flow by flow.

    ``due`` by flow, in the unit of a value over a capacity.
    """
    left = list(case.capacities)
    rates: dict[int, float] = dict.fromkeys((flow for tier in case.tiers for flow in tier), 0.0)
    for tier in case.tiers:
        stages = sorted({due[flow] for flow in tier if case.values[flow] > 0})
        late = [0.0]
        for link in range(len(left)):
            for stage in stages:
                so_far = [case.values[flow] for flow in tier if link in case.paths[flow] and due[flow] <= stage]
                if sum(so_far) > 0:
                    late.append((sum(so_far) / left[link] if left[link] > 1e-9 else math.inf) - stage)
        for stage in stages if max(late) < math.inf else []:
            members = [flow for flow in tier if due[flow] == stage]
            on_link = [
                sum(case.values[flow] for flow in members if link in case.paths[flow]) for link in range(len(left))
            ]
            times = [
                load / left[link] if left[link] > 1e-9 else math.inf for link, load in enumerate(on_link) if load > 0
            ]
            duration = max(stage + max(late), *times)
            for flow in members:
                rates[flow] = case.values[flow] / duration
            left = [max(left[link] - on_link[link] / duration, 0.0) for link in range(len(left))]
    return _backfilled(case, left, rates)


def plain_pressing(case: Case, due: list[float], margin: float) -> list[float]:
    """By tier the work that is due within twice itself, of the link with most of it, and the time to spare.

    ``due`` as of ``plain_echelon_madd``; work within ``margin`` of counting counts, or does not where that is negative.
    """
    found = []
    for tier in case.tiers:
        stages = sorted({due[flow] for flow in tier if case.values[flow] > 0})
        work = {
            (link, stage): sum(case.values[flow] for flow in tier if link in case.paths[flow] and due[flow] <= stage)
            / capacity
            for link, capacity in enumerate(case.capacities)
            for stage in stages
        }
        late = max((so_far - stage for (_, stage), so_far in work.items() if so_far > 0), default=0.0)
        counting = [so_far for (_, stage), so_far in work.items() if 2 * so_far >= stage + max(late, 0.0) - margin]
        found.append(max(counting, default=0.0) + max(-late, 0.0))
    return found


def plain_order_greedy(case: Case) -> list[float]:
    """Flow by flow all that is left."""
    return _backfilled(case, list(case.capacities), {})


def _backfilled(case: Case, left: list[float], rates: dict[int, float]) -> list[float]:
    for tier in case.tiers:
        for flow in tier:
            extra = min(left[link] for link in case.paths[flow]) if case.values[flow] > 0 else 0.0
            rates[flow] = rates.get(flow, 0.0) + extra
            for link in case.paths[flow]:
                left[link] -= extra
    return [rates[flow] for tier in case.tiers for flow in tier]
