"""What an arrangement of flow groups is worth, as modelled."""

from collections.abc import Callable

import numpy as np

from policies.flow_arrays import FloatArray, IntArray
from policies.trainyard.contention import Contention
from policies.trainyard.fluid_bound import FluidBound
from policies.trainyard.fluid_model import FluidModel, fewest_steps
from policies.trainyard.options import TrainyardOptions
from policies.trainyard.order import served_in_turn
from policies.trainyard.score import Score
from policies.trainyard.strands import Strands


class Judge:
    """Tells what jobs get where groups have these levels, or this order: by the fluid model where that is affordable.

    Where it is not, jobs take in turn what is left of every link's time, which knows capacity but no delay. ``strands``
    makes those of the jobs. A search may run the model ``evaluations`` times, 0 without it: no oftener than is
    ``affordable``.
    """

    def __init__(
        self,
        contention: Contention,
        bound: FluidBound,
        strands: Callable[[], Strands],
        seed: int,
        options: TrainyardOptions,
    ) -> None:
        self._contention = contention
        self._max_slowdown = options.max_slowdown
        self.affordable = 0
        if 1 < len(contention.job_of_group) <= options.most_groups:
            most_steps = options.model_steps / max(options.fewest_evaluations, 1)
            # Strands take a while to find, so only where there is a chance.
            if fewest_steps(contention, options.model) <= most_steps:
                self._model = FluidModel.of(contention, strands(), seed, options.model)
                if self._model.steps <= most_steps:
                    self.affordable = int(options.model_steps / self._model.steps)
        runs = min(options.evaluations, self.affordable)
        self.evaluations = runs if runs >= options.fewest_evaluations else 0
        self._least = options.least_of_bound * bound.share if self.evaluations else np.zeros(len(bound.share))

    def served(self, urgency: IntArray) -> FloatArray:
        """By job the share of its iterations alone that it gets; groups of more urgency first, equals share."""
        if self.evaluations:
            return self._model.served(urgency)
        return served_in_turn(self._contention, np.argsort(-urgency, kind="stable"))

    def score(self, served: FloatArray) -> Score:
        """What it is worth that jobs get so much.

        Where the model tells, what they miss of a part of their shares in the fluid bound counts twice, so that none is
        starved for little.
        """
        missed = np.maximum(self._least - served, 0.0)
        return Score(-float(self.excess(served).sum()), float((served - missed) @ self._contention.worth))

    def excess(self, served: FloatArray) -> FloatArray:
        """By job, how far its slowdown is beyond the largest allowed, relative to that; 0 where it is not."""
        if self._max_slowdown is None:
            return np.zeros(len(served))
        with np.errstate(divide="ignore"):
            return np.clip(1 / (served * self._max_slowdown) - 1, 0.0, 1e6)
