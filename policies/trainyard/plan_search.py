"""Search for paths and levels of a component's jobs: hill climbing from known plans, by the model.

A step moves a job or some of its flow groups to a level of their own or to one that they share, exchanges two jobs, or
gives flows other paths. It is kept where the model says that it is no worse, so that no result is worse by the model
than any of the starts.
"""

import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import permutations

import numpy as np

from policies.arrays import FloatArray
from policies.crux.path_selection import least_congested
from policies.job import Job
from policies.traffic import Traffic
from policies.trainyard.assignment import Assignment, JobPaths, moved_tiers
from policies.trainyard.job_model import JobModel, Scored

MIN_GAIN = 1e-6
"""Relative gain that a step needs: the model is no more exact than that."""
_FEW_GROUPS = 6
"""Groups of a job with at most so many move one by one too."""
_MAX_PERMUTED = 5
"""All orders of so many jobs are tried where some job does not get what it must."""
_OWN_WEIGHTS = (1.0, 4.0)
"""How much other flows of the same job weigh where it chooses paths anew."""
_LEAST_USED_WEIGHT = 4
"""How often a job gets the least used paths, beside once those of each start."""
_MANY = 1_000
"""How often paths are chosen anew, roughly: machine code pays."""
_ONE_GROUP = 0.3
"""How often a step gathers the flows of one group instead of all flows of a job."""
_IDLE_STEPS = 20
"""For each job, so many steps in turn may bring nothing before a walk ends."""
_KICK_STEPS = 2
"""After a walk, the next one begins so many steps from the best."""
_FRUITLESS_WALKS = 5
"""So many walks in turn may find nothing that is not known before the search ends."""


class PlanSearch:
    """Finds good assignments for the jobs of a component.

    Args:
        jobs: The jobs.
        model: Plays them.
        alone_s: By job, the time of an iteration alone.
        rates_bps: By link of the fabric, its rate.
        foreign: By link of the fabric, the share of its rate that other traffic takes.
        num_levels: How many levels there are.
        may_share: Whether jobs may share a level although there are levels enough.
        seed: Of the steps.
    """

    def __init__(
        self,
        jobs: Sequence[Job],
        model: JobModel,
        alone_s: FloatArray,
        rates_bps: FloatArray,
        foreign: FloatArray,
        num_levels: int,
        *,
        may_share: bool,
        seed: int,
    ) -> None:
        self._jobs = jobs
        self._model = model
        self._rates_bps = rates_bps
        self._foreign = foreign
        self._num_levels = num_levels
        self._may_share = may_share
        self._chance = random.Random(seed)
        self._starts: Sequence[Assignment] = ()
        self._traffic = [Traffic.with_candidates([job]) for job in jobs]
        amounts = [traffic.size_bytes * 8 for traffic in self._traffic]
        self._amounts = [amount / time_s for amount, time_s in zip(amounts, alone_s.tolist(), strict=True)]
        self._alike = [(number, alike) for number, job in enumerate(jobs) for alike in _alike_flows(job)]
        self._movable = sorted({number for number, _ in self._alike})
        self._units = [unit for number, job in enumerate(jobs) for unit in _units(job, model.groups_of[number])]
        steps: list[tuple[Callable[[Scored], Assignment | None], int]] = [(self._move_job, 3), (self._exchange, 1)]
        if self._units:
            steps.append((self._move_groups, 2))
        if self._movable:
            steps += [(self._reroute, 1), (self._move_flows, 2), (self._gather, 2)]
        self._kinds = [step for step, _ in steps], [weight for _, weight in steps]

    def best_from(self, known: Sequence[Assignment], starts: Sequence[Assignment]) -> Scored:
        """Return the best assignment found; of equally good ones the first.

        Args:
            known: At least one that no result is to be worse than by the model.
            starts: Others to begin with, as far as the budget lasts.
        """
        self._starts = list(dict.fromkeys((*known, *starts)))
        best = self._model.play(known[0])
        for other in known[1:]:
            best = self._better(best, self._model.play(other))
        for start in self._starts:
            if self._model.has_budget and not self._model.knows(start) and not self._model.harms(start):
                best = self._better(best, self._model.challenge(start, best))
        return self._climb(self._permuted(best) if best.score.margin < 0 else best)

    def _better(self, best: Scored, other: Scored | None) -> Scored:
        return other if other is not None and other.score.is_better_than(best.score, MIN_GAIN) else best

    def _climb(self, best: Scored) -> Scored:
        """Walk on from the best, also along steps that change nothing; and from near it where that leads nowhere."""
        here, fruitless = best, 0
        while self._model.has_budget and fruitless < _FRUITLESS_WALKS:
            runs = self._model.runs
            reached = self._walk(here)
            fruitless = 0 if self._model.runs > runs else fruitless + 1
            best = self._better(best, reached)
            here = self._kicked(best)
        return best

    def _walk(self, here: Scored) -> Scored:
        """Return the best that steps lead to, one after another."""
        best, idle = here, 0
        while self._model.has_budget and idle < _IDLE_STEPS * len(self._jobs):
            idle += 1
            other = self._step(here)
            if other is None or self._model.knows(other) or self._model.harms(other):
                continue
            played = self._model.challenge(other, here)
            if played is None or here.score.is_better_than(played.score, 0.0):
                continue
            here = played
            if self._better(best, here) is here:
                best, idle = here, 0
        return best

    def _kicked(self, best: Scored) -> Scored:
        """Take a few steps from the best, wherever they lead."""
        here = best
        for _ in range(_KICK_STEPS):
            other = self._step(here)
            if other is not None and self._model.has_budget and not self._model.harms(other):
                here = self._model.play(other)
        return here

    def _step(self, here: Scored) -> Assignment | None:
        """Return a neighbour."""
        (step,) = self._chance.choices(*self._kinds)
        return step(here)

    def _permuted(self, best: Scored) -> Scored:
        """Try all orders of few jobs, as far as the budget lasts."""
        numbers = [number for number, groups in enumerate(self._model.groups_of) if len(groups)]
        for order in permutations(numbers) if len(numbers) <= _MAX_PERMUTED else ():
            tiers = [0] * len(best.assignment.levels)
            for tier, number in enumerate(order):
                for group in self._model.groups_of[number]:
                    tiers[group] = tier
            if self._model.has_budget:
                best = self._better(best, self._model.play(best.assignment.with_tiers(tiers, self._num_levels)))
        return best

    def _move_job(self, here: Scored) -> Assignment | None:
        return self._moved(here, self._chance.choice(self._model.groups_of))

    def _move_groups(self, here: Scored) -> Assignment | None:
        return self._moved(here, self._chance.choice(self._units))

    def _moved(self, here: Scored, groups: Sequence[int]) -> Assignment | None:
        moved = list(moved_tiers(here.assignment.levels, groups, may_share=self._may_share))
        return here.assignment.with_tiers(self._chance.choice(moved), self._num_levels) if groups else None

    def _exchange(self, here: Scored) -> Assignment | None:
        """Exchange the levels of two jobs, each at that of its first group."""
        one, other = (self._chance.choice(self._model.groups_of) for _ in range(2))
        if one == other or not (len(one) and len(other)):
            return None
        levels = list(here.assignment.levels)
        level_of_one, level_of_other = levels[one[0]], levels[other[0]]
        for group in one:
            levels[group] = level_of_other
        for group in other:
            levels[group] = level_of_one
        return here.assignment.with_tiers(levels, self._num_levels)

    def _reroute(self, here: Scored) -> Assignment:
        """Give a job other paths: those of a start, or the least used ones given all or the more urgent others."""
        number = self._chance.choice(self._movable)
        known = list(dict.fromkeys(start.paths[number] for start in self._starts))
        chosen = self._chance.randrange(len(known) + _LEAST_USED_WEIGHT)
        paths = known[chosen] if chosen < len(known) else self._least_used(number, here)
        return here.assignment.with_paths(number, paths)

    def _least_used(self, number: int, here: Scored) -> JobPaths:
        levels = here.assignment.levels
        highest = [max((levels[group] for group in groups), default=0) for groups in self._model.groups_of]
        least = self._chance.choice((0, highest[number]))
        counted = [other for other in range(len(self._jobs)) if other != number and highest[other] >= least]
        placed = self._foreign + sum(self._utilisation(other, here) for other in counted)
        first, amounts = np.zeros(1, dtype=np.int64), self._amounts[number]
        by = amounts, self._rates_bps, placed, 2, self._chance.choice(_OWN_WEIGHTS)
        return tuple(least_congested(self._traffic[number], first, *by, calls=_MANY).first_paths)

    def utilisation(self, here: Scored) -> FloatArray:
        """Return by link the share of time for which the jobs use it."""
        return np.asarray(sum(self._utilisation(number, here) for number in range(len(self._jobs))))

    def _utilisation(self, number: int, here: Scored) -> FloatArray:
        """Return by link the share of time for which a job uses it."""
        load = np.zeros(len(self._rates_bps))
        for amount, path in zip(self._amounts[number].tolist(), here.assignment.paths[number], strict=True):
            load[list(path)] += amount
        return np.asarray(load / self._rates_bps * here.served[number])

    def _move_flows(self, here: Scored) -> Assignment:
        """Give the flows between two NICs another path, or one of them alone."""
        number, alike = self._chance.choice(self._alike)
        candidates = self._jobs[number].flows[alike[0]].candidates
        path = candidates[self._chance.randrange(len(candidates))]
        paths = list(here.assignment.paths[number])
        for position in alike if self._chance.random() < 0.5 else [self._chance.choice(alike)]:
            paths[position] = path
        return here.assignment.with_paths(number, tuple(paths))

    def _gather(self, here: Scored) -> Assignment:
        """Give all flows of a job, or those of one group, paths of few numbers.

        The flows between two NICs either spread over these paths, or all take one of them.
        """
        number = self._chance.choice(self._movable)
        job, paths = self._jobs[number], list(here.assignment.paths[number])
        num_paths = max(len(flow.candidates) for flow in job.flows if flow.sends)
        taken = self._chance.sample(range(num_paths), self._chance.randint(1, num_paths))
        group = self._chance.choice(job.flow_groups).name if self._chance.random() < _ONE_GROUP else None
        spread = self._chance.random() < 0.5
        for alike in (alike for owner, alike in self._alike if owner == number):
            candidates = job.flows[alike[0]].candidates
            by_turn = taken if spread else [self._chance.choice(taken)]
            for turn, position in enumerate(alike):
                if group is None or job.flows[position].key.group == group:
                    paths[position] = candidates[by_turn[turn % len(by_turn)] % len(candidates)]
        return here.assignment.with_paths(number, tuple(paths))


def _alike_flows(job: Job) -> list[list[int]]:
    """Return the positions of flows with the same candidate paths, where these are several."""
    alike: defaultdict[bytes, list[int]] = defaultdict(list)
    for position, flow in enumerate(job.flows):
        if flow.sends and len(flow.candidates) > 1:
            alike[flow.candidates.links.tobytes()].append(position)
    return list(alike.values())


def _units(job: Job, groups: Sequence[int]) -> list[tuple[int, ...]]:
    """Return which groups of a job move together: those that may wait, and each alone where they are few.

    Where nobody knows when groups are needed they stay together.
    """
    if job.played_graph.is_guessed:
        return []
    may_wait = np.zeros(len(groups), dtype=np.bool_)
    may_wait[job.transfers.group_of[job.transfers.due_s > job.transfers.release_s]] = True
    units = [tuple(group for group, may in zip(groups, may_wait, strict=True) if may)]
    if len(groups) <= _FEW_GROUPS:
        units += [(group,) for group in groups]
    return [unit for unit in dict.fromkeys(units) if 0 < len(unit) < len(groups)]
