"""The model of a component: its jobs play their task graphs under one assignment after another."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from policies.arrays import FloatArray
from policies.job import Job
from policies.model.alone import alone_s
from policies.model.playing_jobs import PlayingJobs
from policies.model.routed_flows import RoutedFlows
from policies.trainyard.assignment import Assignment, JobPaths
from policies.trainyard.options import ModelOptions
from policies.trainyard.score import Score, Scorer

_MOST_ITERATIONS = 4_000
"""Of one job in one run."""
LINK_DELAY_S = 1e-6
LATENCY_S = 5e-6
"""Snapshots know no delays. With none at all, more tasks would end at the same moment than in a network."""
_PILOT_ITERATIONS = 2.0
_HOPELESS = 4.0
"""Where every end of a transfer in an iteration setting every rate would take so many budgets, none is tried."""
_LEAST_ITERATIONS = 2
_LONGER = 4.0
"""A run is so many times as long where some job has not done so many iterations."""
_HARM = 1e-3
"""By so much the levels of a job's groups may slow it down where it is alone."""


class Scored:
    """An assignment with what it is worth.

    Attributes:
        assignment: The assignment.
        early: Its score after the first part of the run.
        served: By job, the share of its iterations alone that it gets; None where the run ended early.
        score: The score of the whole run; None where it ended early.
    """

    def __init__(
        self, assignment: Assignment, early: Score, served: FloatArray | None = None, score: Score | None = None
    ) -> None:
        self.assignment = assignment
        self.early = early
        self.served = served
        self.score = score


class JobModel:
    """Jobs that play together, and the budget for doing so. ``begin`` comes first; ``runs`` counts what is played.

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
        self.runs = 0
        self._steps_left = max_steps
        self._least_runs = least_runs
        self._jitter = options.compute_jitter if len(jobs) > 1 else 0.0
        arrivals_s = np.array([job.arrival_s for job in jobs])
        self._begins_s = np.mod(arrivals_s - arrivals_s.min(), alone_s)
        self._options = options
        self._horizon_s = self._warm_up_s = self._early_s = 0.0
        self._known: dict[Assignment, Scored] = {}
        self._alike: dict[tuple[bytes, tuple[int, ...], tuple[int, ...]], Scored] = {}
        """By what distinguishes assignments: paths over other links of the same kind are as good."""
        self._routed: dict[tuple[JobPaths, ...], RoutedFlows] = {}
        self._known_alone_s: dict[tuple[int, JobPaths, tuple[int, ...]], float] = {}
        first = np.cumsum([0, *(len(job.flow_groups) for job in jobs)]).tolist()
        self.groups_of = [range(begin, end) for begin, end in pairwise(first)]

    def begin(self, assignment: Assignment) -> bool:
        """Set how long runs are, by a short one; return whether the model can play these jobs at all."""
        options, longest_s = self._options, float(self._alone_s.max())
        playing = self._playing(assignment)
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

    def play(self, assignment: Assignment, rival: Scored | None = None) -> Scored:
        """Return what an assignment is worth, also when the budget is used up.

        The run ends early where it is clearly worse than the rival.
        """
        if (known := self._known.get(assignment)) is not None and (known.score is not None or rival is not None):
            return known
        routed = self._routed_on(assignment.paths)
        shape = routed.shape, assignment.levels, assignment.places
        alike = self._alike.get(shape)
        if alike is not None and (alike.score is not None or rival is not None):
            self._known[assignment] = Scored(assignment, alike.early, alike.served, alike.score)
            return self._known[assignment]
        self.runs += 1
        playing = self._playing(assignment)
        played = Scored(assignment, self.scorer.score(self._served(playing, self._early_s)))
        if rival is None or not _is_clearly_worse(played.early, rival.early, self._options.early_margin):
            played.served = self._served(playing, self._horizon_s)
            if playing.iterations.min() < _LEAST_ITERATIONS:
                played.served = self._served(playing, self._horizon_s * _LONGER)
            played.score = self.scorer.score(played.served)
        self._steps_left -= playing.steps
        self._known[assignment] = self._alike[shape] = played
        return played

    def harms(self, assignment: Assignment) -> bool:
        """Return whether the levels of some job's groups would slow it down if it were alone."""
        return any(
            self._is_harmed(number, assignment.paths[number], [assignment.levels[group] for group in groups])
            for number, groups in enumerate(self.groups_of)
        )

    def _playing(self, assignment: Assignment) -> PlayingJobs:
        routed = self._routed_on(assignment.paths)
        bundles = routed.bundles(np.array(assignment.levels, np.int64), np.array(assignment.places, np.int64))
        graphs = [job.played_graph for job in self._jobs]
        return PlayingJobs(graphs, self._begins_s, routed.num_bundles, routed.size_bytes, bundles, self._jitter)

    def _served(self, playing: PlayingJobs, until_s: float) -> FloatArray:
        """Continue a run; return by job the share of its iterations alone that it has done after the warm-up."""
        playing.run(until_s)
        per_s = playing.iterations_between(self._warm_up_s, until_s) / (until_s - self._warm_up_s)
        return np.asarray(per_s * self._alone_s)

    def _routed_on(self, paths: tuple[JobPaths, ...]) -> RoutedFlows:
        if paths not in self._routed:
            delays_s = np.full(len(self._rates_bps), LINK_DELAY_S)
            self._routed[paths] = RoutedFlows.of(self._jobs, paths, self._rates_bps, delays_s=delays_s)
        return self._routed[paths]

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
