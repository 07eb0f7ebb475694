"""What priorities of flow groups are worth: a score, and the evaluator that computes it.

The objective is computation per second over all jobs. The evaluator runs the fluid model where a decision can afford
it. Elsewhere it lets jobs take link time greedily in order, which knows capacity but no delay.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from policies.arrays import FloatArray, IntArray
from policies.jit import Kernel
from policies.trainyard.contention import Contention
from policies.trainyard.flow_bundles import FlowBundles
from policies.trainyard.fluid_bound import FluidBound
from policies.trainyard.fluid_model import FluidModel, min_model_steps
from policies.trainyard.options import TrainyardOptions


class Score(NamedTuple):
    """How good priorities are. Scores compare as tuples: the greater one is better.

    Attributes:
        margin: 0 where no job exceeds ``max_slowdown``, else minus the sum of what jobs exceed it by.
        worth: Computation per second, less a penalty for starved jobs (``Evaluator.score``).
    """

    margin: float
    worth: float

    def is_better_than(self, other: "Score", min_gain: float) -> bool:
        """Return whether this score gains more than the fraction ``min_gain`` over another one.

        Where either has jobs beyond ``max_slowdown``, only the margins count.
        """
        if self.margin or other.margin:
            return self.margin * (1 + min_gain) > other.margin
        return self.worth > other.worth + min_gain * abs(other.worth)


def total_score(scores: Iterable[Score]) -> Score:
    """Return the score of several components together."""
    margins, worths = zip(*scores, strict=True)
    return Score(sum(margins), sum(worths))


class Evaluator:
    """Tells what the jobs of a component get when their flow groups have given priorities.

    Attributes:
        affordable: How many runs of the fluid model ``TrainyardOptions.model_steps`` allows.
        evaluations: How many of these a search may use; 0 where the model is not run at all.
    """

    def __init__(
        self,
        contention: Contention,
        bound: FluidBound,
        make_bundles: Callable[[], FlowBundles],
        seed: int,
        options: TrainyardOptions,
    ) -> None:
        self._contention = contention
        self._max_slowdown = options.max_slowdown
        self.affordable = 0
        if 1 < len(contention.job_of_group) <= options.max_groups:
            max_steps = options.model_steps / max(options.min_evaluations, 1)
            # Finding the bundles takes a while, so rule out hopeless cases first.
            if min_model_steps(contention, options.model) <= max_steps:
                self._model = FluidModel.of(contention, make_bundles(), seed, options.model)
                if self._model.steps <= max_steps:
                    self.affordable = int(options.model_steps / self._model.steps)
        runs = min(options.evaluations, self.affordable)
        self.evaluations = runs if runs >= options.min_evaluations else 0
        self._min_share = options.min_bound_share * bound.share if self.evaluations else np.zeros(len(bound.share))

    def served(self, urgency: IntArray) -> FloatArray:
        """Return by job the share of its iterations alone that it gets, where groups have this urgency.

        Groups of higher urgency go first; equal ones share.
        """
        if self.evaluations:
            return self._model.served(urgency)
        return served_in_turn(self._contention, np.argsort(-urgency, kind="stable"))

    def score(self, served: FloatArray) -> Score:
        """Return the score of jobs that get these shares.

        Where the fluid model runs, what a job lacks of ``min_bound_share`` times its share in the fluid bound counts
        twice, so that no job starves for a small gain.
        """
        missed = np.maximum(self._min_share - served, 0.0)
        return Score(-float(self.excess(served).sum()), float((served - missed) @ self._contention.worth))

    def excess(self, served: FloatArray) -> FloatArray:
        """Return by job how far its slowdown exceeds ``max_slowdown``, as a fraction of that; 0 where it does not."""
        if self._max_slowdown is None:
            return np.zeros(len(served))
        with np.errstate(divide="ignore"):
            return np.clip(1 / (served * self._max_slowdown) - 1, 0.0, 1e6)


def served_in_turn(contention: Contention, order: IntArray) -> FloatArray:
    """Return by job the share of its iterations alone that it gets if jobs take the links' time greedily in order.

    This is the fluid bound made greedy: a job waits only for lack of capacity. A job has the place of its most urgent
    group in ``order``.
    """
    job = contention.job_of_group
    loads = contention.by_job
    turns = job[order][np.sort(np.unique(job[order], return_index=True)[1])]
    take = _take.for_steps(16 * len(loads.data))
    return take(
        turns,
        loads.indptr.astype(np.int64),
        loads.indices.astype(np.int64),
        loads.data,
        contention.ideal_s,
        contention.num_links,
    )


@Kernel
def _take(
    turns: IntArray, first: IntArray, links: IntArray, seconds: FloatArray, ideal: FloatArray, num_links: int
) -> FloatArray:
    left = np.ones(num_links)
    served = np.zeros(len(ideal))
    for job in turns:
        rate = 1 / ideal[job]
        for entry in range(first[job], first[job + 1]):
            rate = min(rate, left[links[entry]] / seconds[entry])
        for entry in range(first[job], first[job + 1]):
            left[links[entry]] = max(left[links[entry]] - rate * seconds[entry], 0.0)
        served[job] = rate * ideal[job]
    return served
