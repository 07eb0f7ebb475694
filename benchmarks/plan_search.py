"""A search for the best plan of a mix: hill climbing over levels, sharings and paths by the fluid model.

It knows what no policy may: the task graphs as they run. It starts from the plans of all shipped policies, and from the
levels of one on the paths of another.
"""

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise, product

import numpy as np

from benchmarks.played_components import PlayedComponents
from experiments.scenarios.modelled import ModelledScenario
from policies.flows import Flow
from policies.plan import FlowPlan, JobPlan, Plan
from policies.policy import Policy, decide
from policies.registry import find_policy, policy_names
from policies.snapshot import Snapshot
from topologies.fabric import Path
from workloads.measures import Window

_LEAST_EARLY = 0.97
"""A candidate that reaches less than this share of the best's GPU utilisation early in the window is given up."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """Levels by flow group and paths by flow, None for that of the hash; both in the order of the Snapshot."""

    levels: tuple[int, ...]
    paths: tuple[Path | None, ...]


@dataclass(frozen=True, slots=True)
class Score:
    """What a candidate is worth: its GPU utilisation in the window, and in the beginning of it.

    ``whole`` is less by one for every job that completes nothing.
    """

    whole: float
    early: float


class PlanSearch:
    """Finds good plans for the jobs of a scenario in a window."""

    def __init__(self, modelled: ModelledScenario, window: Window, seed: int) -> None:
        self._modelled = modelled
        self._played = PlayedComponents(modelled, window)
        self._window = window
        self._chance = random.Random(seed)
        self._groups = [(job.name, group) for job in modelled.snapshot.jobs for group in job.flow_groups]
        self._flows = [flow for _, group in self._groups for flow in group.flows]
        self._first_flows = list(accumulate((len(job.flows) for job in modelled.snapshot.jobs), initial=0))
        self._groups_of: defaultdict[str, list[int]] = defaultdict(list)
        for number, (job, _) in enumerate(self._groups):
            self._groups_of[job].append(number)
        alike: defaultdict[tuple[str, int, int], list[int]] = defaultdict(list)
        for number, flow in enumerate(self._flows):
            alike[flow.key.job, flow.five_tuple.source_address, flow.five_tuple.destination_address].append(number)
        self._alike = [numbers for numbers in alike.values() if len(self._flows[numbers[0]].candidates) > 1]

    def best(self, num_plans: int) -> Plan:
        """Play so many plans, and return the best of them."""
        starts = list(self._starts())
        best, score = starts[0], self._score(starts[0], None)
        assert score is not None
        for number in range(1, num_plans):
            candidate = starts[number] if number < len(starts) else self._changed(best)
            other = self._score(candidate, score)
            if other is None:
                continue
            # Equal ones, too, once all starts are played: to leave plateaus.
            if other.whole > score.whole or (number >= len(starts) and other.whole == score.whole):
                score, best = other, candidate
        return self._plan(best)

    def _starts(self) -> Iterator[Candidate]:
        plans = [decide(find_policy(name), self._modelled.snapshot) for name in policy_names()]
        own = [self._candidate(plan) for plan in plans]
        hashed = tuple(None for _ in self._flows)
        levels = dict.fromkeys(each.levels for each in own)
        paths = dict.fromkeys((hashed, *(each.paths for each in own)))
        yield from dict.fromkeys((*own, *(Candidate(*both) for both in product(levels, paths))))

    def _candidate(self, plan: Plan) -> Candidate:
        levels = tuple(plan.flows[group.flows[0].key].level for _, group in self._groups)
        return Candidate(levels, tuple(plan.flows[flow.key].path for flow in self._flows))

    def _plan(self, candidate: Candidate) -> Plan:
        places = {level: place for place, level in enumerate(sorted(set(candidate.levels), reverse=True))}
        paths = iter(candidate.paths)
        flows = {
            flow.key: FlowPlan(next(paths), level, places[level])
            for (_, group), level in zip(self._groups, candidate.levels, strict=True)
            for flow in group.flows
        }
        levels = {
            job: max((candidate.levels[number] for number in self._groups_of[job]), default=0)
            for job in (job.name for job in self._modelled.snapshot.jobs)
        }
        ranked = sorted(levels, key=lambda name: (-levels[name], name))
        jobs = (JobPlan(name, rank, levels[name], None, None, None, None, "") for rank, name in enumerate(ranked))
        return Plan("best-known", tuple(jobs), flows)

    def _score(self, candidate: Candidate, best: Score | None) -> Score | None:
        """Return the score of a candidate; None where it falls behind the best early in the window."""
        levels = np.array(candidate.levels, dtype=np.int64)
        orders = np.unique(-levels, return_inverse=True)[1].astype(np.int64)
        paths = [path or flow.hashed_path for flow, path in zip(self._flows, candidate.paths, strict=True)]
        by_job = [paths[first:last] for first, last in pairwise(self._first_flows)]
        parts = [(part, part.order(levels, orders)) for part in self._played.split(by_job)]
        iterations = np.zeros(len(self._modelled.jobs))
        for part, order in parts:
            iterations[list(part.jobs)] = self._played.early(part, order)
        early = self._modelled.utilisation_of(iterations, self._played.early_window)
        if best is not None and early < best.early * _LEAST_EARLY:
            return None
        for part, order in parts:
            iterations[list(part.jobs)] = self._played.whole(part, order)
        starved = int((iterations == 0).sum())
        return Score(self._modelled.utilisation_of(iterations, self._window) - starved, early)

    def _changed(self, candidate: Candidate) -> Candidate:
        """Return a candidate that differs in one thing, now and then in two."""
        changed = candidate
        for _ in range(self._chance.choice((1, 1, 2))):
            changes = (self._with_group_level, self._with_job_level, self._with_swapped_levels, self._with_path)
            changed = self._chance.choice(changes)(changed)
        return changed

    def _with_group_level(self, candidate: Candidate) -> Candidate:
        return self._with_levels(candidate, [self._chance.randrange(len(self._groups))] if self._groups else [])

    def _with_job_level(self, candidate: Candidate) -> Candidate:
        return self._with_levels(candidate, self._chance.choice(list(self._groups_of.values()) or [[]]))

    def _with_levels(self, candidate: Candidate, groups: Sequence[int]) -> Candidate:
        levels = list(candidate.levels)
        level = self._chance.randrange(self._modelled.snapshot.num_levels)
        for group in groups:
            levels[group] = level
        return replace(candidate, levels=tuple(levels))

    def _with_swapped_levels(self, candidate: Candidate) -> Candidate:
        levels = list(candidate.levels)
        one, other = (self._chance.choice(list(self._groups_of.values()) or [[]]) for _ in range(2))
        if one and other:
            first, second = levels[one[0]], levels[other[0]]
            for group in one:
                levels[group] = second
            for group in other:
                levels[group] = first
        return replace(candidate, levels=tuple(levels))

    def _with_path(self, candidate: Candidate) -> Candidate:
        """Give flows between the same NICs one path, or one flow alone another."""
        if not self._alike:
            return self._with_job_level(candidate)
        paths, alike = list(candidate.paths), self._chance.choice(self._alike)
        flows = alike if self._chance.random() < 0.5 else [self._chance.choice(alike)]
        path = self._path(self._flows[flows[0]])
        for flow in flows:
            paths[flow] = path
        return replace(candidate, paths=tuple(paths))

    def _path(self, flow: Flow) -> Path:
        return flow.candidates[self._chance.randrange(len(flow.candidates))]


def policy_of(plan: Plan) -> Policy:
    """Return a policy that gives jobs what a plan says, whatever the state."""

    def fixed(snapshot: Snapshot) -> Plan:
        names = {job.name for job in snapshot.jobs}
        jobs = [job for job in plan.jobs if job.name in names]
        return Plan(
            plan.policy,
            tuple(replace(job, rank=rank) for rank, job in enumerate(jobs)),
            {flow.key: plan.flows[flow.key] for job in snapshot.jobs for flow in job.flows},
        )

    return Policy("best-known", "a plan that a search has found", fixed)
