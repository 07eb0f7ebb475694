"""Small cases, and the best of all their plans, for ``mixes.py``: how near to it policies come.

A case is two or three jobs on a small fabric: a dumbbell, two ToRs, or two ToRs with a slow path. In every other case
the jobs have a structure (FSDP, ZeRO, pipelines, ...); in the others they compute and send once an iteration. Cases are
drawn by this file alone: the first ones are always the same.

All plans are enumerated: every combination of the candidate paths of flows, and every order of the jobs, ties being
shared levels. They are played by the fluid model, but for choices of paths on which the jobs would be worth too little
if each were alone. The parallel flows of a transfer choose apart; the flows of other transfers between the same
NICs take the same paths. A plan is worth the computation per second of its jobs; the fewer jobs it starves the better,
whatever it is worth.

The ratio of a policy is the worth of its plan over that of the best one enumerated; 0 where it starves more jobs. It
may exceed 1: policies may give the flow groups of a job different paths and levels.
"""

import random
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from math import prod
from operator import itemgetter
from typing import Any, NamedTuple, Self

import numpy as np

from benchmarks.played_components import Component, PlayedComponents
from experiments.scenarios.modelled import ModelledScenario
from policies.arrays import FloatArray, IntArray
from policies.model.alone import alone_s
from policies.plan import Plan
from policies.policy import decide
from policies.registry import find_policy
from policies.snapshot import Snapshot
from policies.task_graph import Transfer
from topologies.fabric import Path
from topologies.paths import Paths
from workloads.measures import Window
from workloads.scenario import Scenario

BASELINES = ("ecmp", "crux")
_FIRST_SEED = 31_000
_MOST_CHOICES = 256
_WARM_UP, _MEASURED = 5, 40
"""Iterations of the slowest job alone."""
_GPUS = 8
_MARGIN = 0.02
"""Beside others, a job may be faster than alone by less than this: its own flows get in each other's way there."""
_SAME = 1e-6


class Worth(NamedTuple):
    """What a plan is worth, to be compared: minus the starved jobs, and the computation per second."""

    minus_starved: int
    per_second: float


class BestPlan(NamedTuple):
    """The best of all plans: its worth, the paths of flows by job, and the levels of jobs."""

    worth: Worth
    paths: list[list[Path]]
    levels: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class SmallCase:
    """A case: its jobs, what a controller knows of them, and the window in which they are played."""

    modelled: ModelledScenario
    snapshot: Snapshot
    window: Window

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Self:
        """Return the case of a scenario."""
        modelled = ModelledScenario.of(Scenario.model_validate(document))
        longest_s = max(map(partial(_shortest_s, modelled), range(len(modelled.jobs))))
        window = Window(_WARM_UP * longest_s, (_WARM_UP + _MEASURED) * longest_s)
        return cls(modelled, modelled.snapshot, window)

    @classmethod
    def draw(cls, number: int) -> Self:
        """Draw the case of a number, counted from 0. It does not depend on other cases."""
        chance = random.Random(_FIRST_SEED + number)
        while True:
            drawn = cls.of(draw_document(chance, is_structured=is_structured(number)))
            if len(drawn.modelled.jobs) > 1 and drawn.num_choices <= _MOST_CHOICES:
                return drawn

    @property
    def num_choices(self) -> int:
        """How many choices of paths there are."""
        return prod(map(len, self.choosers[0]))

    @property
    def num_plans(self) -> int:
        """How many plans there are."""
        return self.num_choices * len(weak_orders(len(self.modelled.jobs)))

    def worth(self, plan: Plan) -> Worth:
        """Return what a plan is worth."""
        return self._worth(range(len(self.modelled.jobs)), self.modelled.iterations(plan, self.window))

    def best(self) -> BestPlan:
        """Return the best of all plans."""
        played = PlayedComponents(self.modelled, self.window)
        candidates, chooser_of = self.choosers
        choices = [
            [[choice[chooser] for chooser in of_job] for of_job in chooser_of] for choice in product(*candidates)
        ]
        bounds = [self._bound(played, paths) * (1 + _MARGIN) for paths in choices]
        known: dict[Component, tuple[Worth, IntArray]] = {}
        best: BestPlan | None = None
        for bound, paths in sorted(zip(bounds, choices, strict=True), key=itemgetter(0), reverse=True):
            if best is not None and not best.worth.minus_starved and bound < best.worth.per_second:
                break
            minus_starved, per_second = 0, 0.0
            levels = np.zeros(len(paths), dtype=np.int64)
            # Components do not touch each other: each has its best order.
            for part in played.split(paths):
                if part not in known:
                    known[part] = self._best_order(played, part)
                worth, levels[list(part.jobs)] = known[part]
                minus_starved, per_second = minus_starved + worth.minus_starved, per_second + worth.per_second
            if best is None or (minus_starved, per_second) > best.worth:
                best = BestPlan(Worth(minus_starved, per_second), paths, tuple(levels.tolist()))
        assert best is not None
        return best

    def ratio(self, plan: Plan, best: BestPlan) -> float:
        """Return the worth of a plan over that of the best one; 0 where it starves more jobs."""
        worth = self.worth(plan)
        return worth.per_second / best.worth.per_second if worth.minus_starved >= best.worth.minus_starved else 0.0

    def _bound(self, played: PlayedComponents, paths: list[list[Path]]) -> float:
        """Return what the jobs would be worth on these paths if each were alone."""
        alone = [played.alone(job, of_job) for job, of_job in enumerate(paths)]
        none = np.zeros(sum(len(job.flow_groups) for job in self.modelled.played), dtype=np.int64)
        return sum(self._worth(part.jobs, played.whole(part, part.order(none, none))).per_second for part in alone)

    def _best_order(self, played: PlayedComponents, part: Component) -> tuple[Worth, IntArray]:
        """Return the worth of a component under the best levels of its jobs, and these."""
        group_jobs = [number for number, job in enumerate(self.modelled.played) for _ in job.flow_groups]
        none = np.zeros(len(group_jobs), dtype=np.int64)
        best: tuple[Worth, IntArray] | None = None
        for ranks in weak_orders(len(part.jobs)):
            levels = np.zeros(len(self.modelled.jobs), dtype=np.int64)
            levels[list(part.jobs)] = ranks
            worth = self._worth(part.jobs, played.whole(part, part.order(levels[group_jobs], none)))
            if best is None or worth > best[0]:
                best = worth, levels[list(part.jobs)]
        assert best is not None
        return best

    def _worth(self, jobs: Sequence[int], iterations: FloatArray) -> Worth:
        work = [self.modelled.jobs[job].computing_gpu_seconds for job in jobs]
        return Worth(-int((iterations == 0).sum()), float(iterations @ work) / self.window.length_s)

    @property
    def choosers(self) -> tuple[list[Paths], list[list[int]]]:
        """Return the candidates of everything that chooses a path, and by job what chooses for each flow.

        One chooses for the flows of a job between the same NICs, one in every transfer.
        """
        choosers: dict[tuple[int, int, int, int], int] = {}
        candidates: list[Paths] = []
        of_jobs = []
        for number, job in enumerate(self.modelled.played):
            of_job = [0] * len(job.flows)
            for task in job.played_graph.tasks:
                if isinstance(task, Transfer):
                    parallel: Counter[tuple[int, int]] = Counter()
                    for place in task.flows:
                        flow = job.flows[place]
                        ends = flow.five_tuple.source_address, flow.five_tuple.destination_address
                        key = number, *ends, parallel[ends]
                        parallel[ends] += 1
                        if key not in choosers:
                            choosers[key] = len(candidates)
                            candidates.append(flow.candidates)
                        of_job[place] = choosers[key]
            of_jobs.append(of_job)
        return candidates, of_jobs


def _shortest_s(modelled: ModelledScenario, number: int) -> float:
    """Return the time of an iteration of a job alone whose flows take turns on the fastest paths."""
    job, rates_bps = modelled.played[number], modelled.snapshot.links.rates_bps
    paths, turn = [], Counter[Paths]()
    for flow in job.flows:
        rates = [rates_bps[list(path)].min() for path in flow.candidates]
        fastest = [path for path, rate in zip(flow.candidates, rates, strict=True) if rate == max(rates)]
        paths.append(fastest[turn[flow.candidates] % len(fastest)])
        turn[flow.candidates] += 1
    none = np.zeros(len(job.flow_groups), dtype=np.int64)
    return alone_s(job, modelled.routed([number], [paths]), none, none)


def weak_orders(num: int) -> list[tuple[int, ...]]:
    """Return all orders of so many things, with ties: the rank of each, counted from 0."""
    return [ranks for ranks in product(range(num), repeat=num) if set(ranks) == set(range(max(ranks) + 1))]


def is_structured(number: int) -> bool:
    """Whether the jobs of a case have a structure."""
    return number % 2 == 1


def draw_document(chance: random.Random, *, is_structured: bool) -> dict[str, Any]:
    """Draw a scenario."""
    hosts_per_side, uplink_gbps = chance.choice((2, 3)), chance.choice((100, 200))
    topology = _topology(chance, hosts_per_side, uplink_gbps)
    free = dict.fromkeys((f"h{number}" for number in range(2 * hosts_per_side)), _GPUS)
    jobs: list[dict[str, Any]] = []
    num_jobs = chance.choice((2, 3, 3))
    while len(jobs) < num_jobs:
        gpus = chance.choice((2, 4, 4, 8))
        sides = [
            [host for host in hosts if free[host] >= gpus]
            for hosts in (list(free)[:hosts_per_side], list(free)[hosts_per_side:])
        ]
        if not all(sides):
            if gpus == 2:
                break
            continue
        left, right = (chance.sample(side, chance.choice((1, 1, 1, 2)) if len(side) > 1 else 1) for side in sides)
        hosts = [*left, *right]
        chance.shuffle(hosts)
        for host in hosts:
            free[host] -= gpus
        draw = _structured if is_structured else _phases
        jobs.append(
            {"name": f"j{len(jobs)}", "hosts": hosts, "gpus_per_host": gpus, "iterations": 1}
            | {"workload": draw(chance, len(hosts), uplink_gbps * 1e9 / 8)}
        )
    return {"name": "small", "topology": topology, "jobs": jobs, "seed": chance.randrange(1_000)}


def _topology(chance: random.Random, hosts_per_side: int, uplink_gbps: int) -> dict[str, Any]:
    """Draw two switches, or two ToRs under one or two others, of which one may be slow."""
    kind, paths = chance.choice(("dumbbell", "dumbbell", "clos", "clos", "graph")), chance.choice((1, 2, 2))
    host_gbps, nics = chance.choice((200, 400)), chance.choice((1, 1, 1, 2))
    regular = {"kind": kind, "gpus_per_host": _GPUS, "nics_per_host": nics, "host_link_gbps": host_gbps}
    if kind == "dumbbell":
        sizes = {"hosts_per_side": hosts_per_side, "bottleneck_gbps": uplink_gbps, "bottleneck_links": paths}
        return regular | sizes
    if kind == "clos":
        return regular | {"tors": 2, "aggs": paths, "hosts_per_tor": hosts_per_side, "uplink_gbps": uplink_gbps}
    hosts = [f"h{number}" for number in range(2 * hosts_per_side)]
    rates = {"a0": uplink_gbps, "a1": uplink_gbps / chance.choice((2, 4))}
    links = [
        {"ends": [host, f"t{number // hosts_per_side}"], "gbps": host_gbps / nics}
        for number, host in enumerate(hosts)
        for _ in range(nics)
    ]
    links += [{"ends": [tor, agg], "gbps": rate} for tor in ("t0", "t1") for agg, rate in rates.items()]
    switches = ["t0", "t1", *rates]
    return {"kind": kind, "gpus_per_host": _GPUS, "hosts": hosts, "switches": switches, "links": links}


def _phases(chance: random.Random, num_hosts: int, bytes_per_s: float) -> dict[str, Any]:
    compute_s = round(0.2 * 5 ** chance.random(), 3)
    return {
        "type": "phases",
        "compute_s": compute_s,
        "comm_start": chance.choice((0.0, 0.3, 0.5, 0.8, 1.0)),
        "bytes": round(bytes_per_s * compute_s * chance.uniform(0.2, 1.5)),
        "pattern": chance.choice(("ring", "all_to_all", *(["pairs"] if num_hosts % 2 == 0 else []))),
        "flows_per_pair": chance.choice((1, 1, 2)),
    }


def _structured(chance: random.Random, _: int, __: float) -> dict[str, Any]:
    keys: dict[str, dict[str, Any]] = {
        "dp": {"buckets": chance.choice((2, 4))},
        "fsdp": {"layer_groups": chance.choice((2, 3))},
        "moe": {"layers": 1, "chunks": chance.choice((1, 2))},
        "pp": {"micro_batches": chance.choice((2, 4)), "schedule": chance.choice(("gpipe", "1f1b"))},
        "tp": {"layers": chance.choice((1, 2))},
        "zero": {"buckets": 2, "overlap": chance.random() < 0.7},
    }
    kind = chance.choice(list(keys))
    return {"type": kind, "model": chance.choice(("gpt", "bert", "resnet"))} | keys[kind]


class Ratios(NamedTuple):
    """The ratios of policies in a case, by name, and how many plans it has."""

    by_policy: dict[str, float]
    num_plans: int


def ratios(policy: str, number: int) -> Ratios:
    """Return the ratios of a policy and of the baselines."""
    case = SmallCase.draw(number)
    best = case.best()
    names = dict.fromkeys((*BASELINES, policy))
    plans = {name: decide(find_policy(name), case.snapshot) for name in names}
    return Ratios({name: case.ratio(plan, best) for name, plan in plans.items()}, case.num_plans)


def figures(found: Mapping[int, Ratios], policy: str) -> dict[str, object]:
    """Return the figures of cases, by number."""
    own = {number: of.by_policy[policy] for number, of in found.items()}
    structured = [ratio for number, ratio in own.items() if is_structured(number)]
    below = [of.by_policy["crux"] < of.by_policy["ecmp"] * (1 - _SAME) for of in found.values()]
    means = {
        f"small_ratio_mean_{name}": round(statistics.mean(of.by_policy[name] for of in found.values()), 5)
        for name in BASELINES
    }
    return {
        "small_cases": len(found),
        "small_ratio_mean": round(statistics.mean(own.values()), 5),
        "small_ratio_p10": round(float(np.quantile(list(own.values()), 0.1)), 5),
        "small_ratio_worst": round(min(own.values()), 5),
        "small_worst_case": min(own, key=own.__getitem__),
        "small_ratio_mean_structured": round(statistics.mean(structured), 5) if structured else None,
        **means,
        "small_starving": {name: sum(not of.by_policy[name] for of in found.values()) for name in (*BASELINES, policy)},
        "small_crux_below_ecmp": round(statistics.mean(below), 4),
        "small_plans_mean": round(statistics.mean(of.num_plans for of in found.values()), 1),
    }
