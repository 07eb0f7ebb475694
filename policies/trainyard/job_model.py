"""The model of a component: its jobs play their task graphs under one assignment after another."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from policies.arrays import FloatArray
from policies.job import Job
from policies.model.alone import LATENCY_S, alone_s
from policies.model.playing_jobs import PlayingJobs
from policies.model.routed_flows import RoutedFlows
from policies.trainyard.assignment import Assignment, JobPaths
from policies.trainyard.options import ModelOptions
from policies.trainyard.score import Score, Scorer

_MOST_ITERATIONS = 4_000
"""Of one job in one run."""
_LINK_DELAY_S = 1e-6
"""Snapshots know no delays. With none at all, more tasks would end at the same moment than in a network."""
_PILOT_ITERATIONS = 2.0
_HOPELESS = 4.0
"""Where every end of a transfer in an iteration setting every rate would take so many budgets, none is tried."""
_LEAST_ITERATIONS = 2
_LONGER = 4.0
"""A run is so many times as long where some job has not done so many iterations."""
_HARM = 1e-3
"""By so much the levels of a job's groups may slow it down where it is alone."""


Part = tuple[int, ...]
"""Numbers of jobs that share links, directly or through each other."""


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """An assignment with what it is worth.

    Attributes:
        assignment: The assignment.
        early: Its score after the first part of the run.
        served: By job, the share of its iterations alone that it gets.
        score: The score of the whole run.
    """

    assignment: Assignment
    early: Score
    served: FloatArray
    score: Score


class JobModel:
    """Jobs that play together, and the budget for doing so. ``begin`` comes first; ``runs`` counts what is played.

    Jobs that share no link on their paths are played apart, and no part is played twice.

    Args:
        jobs: The jobs.
        alone_s: By job, the time of an iteration alone.
        scorer: Scores what jobs get.
        rates_bps: By link of the fabric, what is there for the jobs.
        evaluations: How many runs there may be.
        max_steps: How many steps they may take together.
        least_runs: So many runs must be affordable.
        options: How long a run is.
    """

    def __init__(
        self,
        jobs: Sequence[Job],
        alone_s: FloatArray,
        scorer: Scorer,
        rates_bps: FloatArray,
        evaluations: int,
        max_steps: float,
        least_runs: int,
        options: ModelOptions,
    ) -> None:
        self._jobs = jobs
        self._alone_s = alone_s
        self.scorer = scorer
        self._rates_bps = rates_bps
        self._evaluations = evaluations
        self.runs = self._num_played = 0
        self._steps_left = max_steps
        self._least_runs = least_runs
        arrivals_s = np.array([job.arrival_s for job in jobs])
        self._begins_s = np.mod(arrivals_s - arrivals_s.min(), alone_s)
        self._options = options
        self._horizon_s = self._warm_up_s = self._early_s = 0.0
        self._known: dict[Assignment, Scored | None] = {}
        self._links: dict[tuple[int, JobPaths], frozenset[int]] = {}
        self._routed: dict[tuple[Part, tuple[JobPaths, ...]], RoutedFlows] = {}
        self._early: dict[tuple[object, ...], FloatArray] = {}
        self._whole: dict[tuple[object, ...], FloatArray] = {}
        """By what distinguishes parts of assignments; links of the same kind are as good. What its jobs get."""
        self._known_alone_s: dict[tuple[int, JobPaths, tuple[int, ...]], float] = {}
        first = np.cumsum([0, *(len(job.flow_groups) for job in jobs)]).tolist()
        self.groups_of = [range(begin, end) for begin, end in pairwise(first)]

    def begin(self, assignment: Assignment) -> bool:
        """Set how long runs are, by a short one; return whether the model can play these jobs at all."""
        options, longest_s = self._options, float(self._alone_s.max())
        everybody = tuple(range(len(self._jobs)))
        playing = self._playing(everybody, self._routed_on(everybody, assignment), assignment)
        transfers = np.array([len(job.transfers.group_of) for job in self._jobs])
        ends = float((transfers * longest_s / self._alone_s).sum())
        if ends * playing.num_bundles * self._least_runs > _HOPELESS * self._steps_left:
            return False
        playing.run(_PILOT_ITERATIONS * longest_s)
        iterations = options.steps / max(playing.steps / _PILOT_ITERATIONS, 1e-9)
        most = min(options.most_iterations, _MOST_ITERATIONS / _LONGER * float(self._alone_s.min()) / longest_s)
        least_steps = options.least_iterations * playing.steps / _PILOT_ITERATIONS
        if most < options.least_iterations or least_steps * self._least_runs > self._steps_left:
            return False
        self._horizon_s = longest_s * min(max(iterations, options.least_iterations), most)
        self._warm_up_s = self._horizon_s * options.warm_up_share
        self._early_s = self._warm_up_s + (self._horizon_s - self._warm_up_s) * options.early_share
        return True

    @property
    def has_budget(self) -> bool:
        """Whether another assignment may be tried."""
        return self.runs < self._evaluations and self._steps_left > 0

    def knows(self, assignment: Assignment) -> bool:
        """Return whether an assignment has been played."""
        return assignment in self._known

    def play(self, assignment: Assignment) -> Scored:
        """Return what an assignment is worth, also when the budget is used up."""
        played = self._known.get(assignment) or self._play(assignment, None)
        assert played is not None, "only what has a rival ends early"
        return played

    def challenge(self, assignment: Assignment, rival: Scored) -> Scored | None:
        """Return what an assignment is worth, or None: the run ends early where it is clearly worse than the rival."""
        if assignment not in self._known:
            self._play(assignment, rival)
        return self._known[assignment]

    def _play(self, assignment: Assignment, rival: Scored | None) -> Scored | None:
        before = self._num_played
        parts = [(part, self._routed_on(part, assignment)) for part in self._parts(assignment.paths)]
        keys = [(part, routed.shape, *self._order(part, assignment)) for part, routed in parts]
        begun: dict[tuple[object, ...], PlayingJobs] = {}
        early, whole = np.zeros(len(self._jobs)), np.zeros(len(self._jobs))
        for (part, routed), key in zip(parts, keys, strict=True):
            if key not in self._early:
                begun[key] = self._playing(part, routed, assignment)
                self._early[key] = self._served(part, begun[key], self._early_s)
            early[list(part)] = self._early[key]
        score = self.scorer.score(early)
        if rival is not None and _is_clearly_worse(score, rival.early, self._options.early_margin):
            played = None
        else:
            for (part, routed), key in zip(parts, keys, strict=True):
                if key not in self._whole:
                    if key not in begun:
                        begun[key] = self._playing(part, routed, assignment)
                    self._whole[key] = self._to_the_end(part, begun[key])
                whole[list(part)] = self._whole[key]
            played = Scored(assignment, score, whole, self.scorer.score(whole))
        self._steps_left -= sum(playing.steps for playing in begun.values())
        self.runs += self._num_played > before
        self._known[assignment] = played
        return played

    def harms(self, assignment: Assignment) -> bool:
        """Return whether the levels of some job's groups would slow it down if it were alone."""
        return any(
            self._is_harmed(number, assignment.paths[number], [assignment.levels[group] for group in groups])
            for number, groups in enumerate(self.groups_of)
        )

    def _parts(self, paths: Sequence[JobPaths]) -> list[Part]:
        """Return the jobs in parts that share no link on these paths."""
        parts: list[tuple[Part, frozenset[int]]] = []
        for job, of_job in enumerate(paths):
            key = job, of_job
            if key not in self._links:
                flows = zip(self._jobs[job].flows, of_job, strict=True)
                crossed = (link for flow, path in flows if flow.sends for link in (*path, *flow.host_links))
                self._links[key] = frozenset(crossed)
            members: Part = (job,)
            links, apart = self._links[key], []
            for part in parts:
                if links.isdisjoint(part[1]):
                    apart.append(part)
                else:
                    members, links = part[0] + members, links | part[1]
            parts = [*apart, (members, links)]
        return [tuple(sorted(members)) for members, _ in parts]

    def _order(self, part: Part, assignment: Assignment) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return what matters of the levels and places of a part."""
        groups = [group for job in part for group in self.groups_of[job]]
        levels, places = ([of[group] for group in groups] for of in (assignment.levels, assignment.places))
        distinct = {level: rank for rank, level in enumerate(sorted(set(levels)))}
        has_one_place = len(set(zip(levels, places, strict=True))) == len(distinct)
        return tuple(distinct[level] for level in levels), () if has_one_place else tuple(places)

    def _playing(self, part: Part, routed: RoutedFlows, assignment: Assignment) -> PlayingJobs:
        groups = [group for job in part for group in self.groups_of[job]]
        levels, places = (np.array(of, np.int64)[groups] for of in (assignment.levels, assignment.places))
        graphs = [self._jobs[job].played_graph for job in part]
        of_flows = routed.num_bundles, routed.size_bytes, routed.bundles(levels, places)
        self._num_played += 1
        # Whom nobody meets no coincidence can help.
        jitter = self._options.compute_jitter if len(part) > 1 else 0.0
        return PlayingJobs(graphs, self._begins_s[list(part)], *of_flows, jitter)

    def _to_the_end(self, part: Part, playing: PlayingJobs) -> FloatArray:
        served = self._served(part, playing, self._horizon_s)
        if playing.iterations.min() < _LEAST_ITERATIONS:
            return self._served(part, playing, self._horizon_s * _LONGER)
        return served

    def _served(self, part: Part, playing: PlayingJobs, until_s: float) -> FloatArray:
        """Continue a run; return by job the share of its iterations alone that it has done after the warm-up."""
        playing.run(until_s)
        per_s = playing.iterations_between(self._warm_up_s, until_s) / (until_s - self._warm_up_s)
        return np.asarray(per_s * self._alone_s[list(part)])

    def _routed_on(self, part: Part, assignment: Assignment) -> RoutedFlows:
        key = part, tuple(assignment.paths[job] for job in part)
        if key not in self._routed:
            jobs, delays_s = [self._jobs[job] for job in part], np.full(len(self._rates_bps), _LINK_DELAY_S)
            self._routed[key] = RoutedFlows.of(jobs, key[1], self._rates_bps, delays_s=delays_s)
        return self._routed[key]

    def _is_harmed(self, number: int, paths: JobPaths, levels: Sequence[int]) -> bool:
        distinct = sorted(set(levels))
        if len(distinct) < 2:
            return False
        tiers = tuple(distinct.index(level) for level in levels)
        return self._alone(number, paths, tiers) > (1 + _HARM) * self._alone(number, paths, (0,) * len(tiers))

    def _alone(self, number: int, paths: JobPaths, tiers: tuple[int, ...]) -> float:
        key = number, paths, tiers
        if key not in self._known_alone_s:
            job, levels = self._jobs[number], np.array(tiers)
            routed = RoutedFlows.of([job], [paths], self._rates_bps)
            self._known_alone_s[key] = alone_s(job, routed, levels, levels.max() - levels, LATENCY_S)
        return self._known_alone_s[key]


def _is_clearly_worse(score: Score, rival: Score, margin: float) -> bool:
    return score.margin <= rival.margin and score.worth < rival.worth - margin * abs(rival.worth)
