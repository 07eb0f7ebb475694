"""Damping: what is in force stays, unless another decision gains enough to be worth the change."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from policies.arrays import FloatArray, IntArray
from policies.job import Job
from policies.trainyard.component import Component, Settings, best_components, may_move, path_components
from policies.trainyard.fluid_bound import FluidBound
from policies.trainyard.options import TrainyardOptions
from policies.trainyard.order import smith_ratios
from policies.trainyard.outcome import JobOutcome
from policies.trainyard.path_choice import choose_paths
from policies.trainyard.priorities import UNASSIGNED, Priorities
from policies.trainyard.score import total_score


def decide_by_capacity(
    jobs: Sequence[Job], in_force: Mapping[str, JobOutcome], prices: FloatArray, settings: Settings, foreign: FloatArray
) -> tuple[list[JobOutcome], list[FluidBound]]:
    """Decide for jobs whose candidate paths share links, without the model.

    Args:
        jobs: The jobs of one component, by candidate paths.
        in_force: The outcomes in force, by name of job.
        prices: By link, its price in the decision in force.
        settings: Of the Snapshot.
        foreign: By link, the share of its rate that other traffic takes; paths avoid it.

    Returns:
        The outcomes, and the fluid bounds of the components by chosen paths, which have no link in common.
    """
    kept = {name: outcome.paths for name, outcome in in_force.items()}
    if not kept:
        components = best_components(jobs, prices, settings, foreign)
    else:
        paths = choose_paths(jobs, kept, settings.links.rates_bps, foreign=foreign)
        shares = {name: outcome.bound_share for name, outcome in in_force.items()}
        components = path_components(jobs, paths, shares, prices, settings)
    decided = [_decide(component, in_force, settings.options) for component in components]
    before = dict(chain.from_iterable(each.worth_before() for each in decided))
    if kept and may_move(jobs, settings.options):
        others = best_components(jobs, prices, settings, foreign)
        if any(
            component.paths[job.name].paths != kept[job.name].paths
            for component in others
            for job in component.jobs
            if job.name in kept
        ):
            rechosen = [_decide(component, {}, settings.options) for component in others]
            score = total_score(each.priorities.score for each in decided)
            new_score = total_score(each.priorities.score for each in rechosen)
            if new_score.is_better_than(score, settings.options.min_gain):
                decided = rechosen
    outcomes = [outcome for each in decided for outcome in each.outcomes(before)]
    return outcomes, [each.component.search.bound for each in decided]


@dataclass(frozen=True, slots=True, eq=False)
class _Decision:
    """The priorities decided for a component; ``kept`` are those in force, None where none are."""

    component: Component
    priorities: Priorities
    kept: Priorities | None

    def worth_before(self) -> Iterator[tuple[str, float]]:
        """Yield each job's name and computation per second if what is in force stays; as decided where nothing is."""
        worth = (self.kept or self.priorities).served * self.component.search.contention.worth
        return zip((job.name for job in self.component.jobs), worth.tolist(), strict=True)

    def outcomes(self, worth_before: Mapping[str, float]) -> Iterator[JobOutcome]:
        """Yield the outcome of each job."""
        search, priorities = self.component.search, self.priorities
        contention = search.contention
        columns = (
            priorities.levels,
            priorities.places,
            contention.intensity,
            smith_ratios(contention),
            contention.ideal_s,
            search.bound.share,
            priorities.served,
            search.scorer.excess(priorities.served),
            contention.worth,
        )
        by_job = zip(*(column.tolist() for column in columns), strict=True)
        for job, values in zip(self.component.jobs, by_job, strict=True):
            level, place, intensity, urgency, alone_s, bound_share, served, excess, worth = values
            num_groups = len(job.flow_groups)
            yield JobOutcome(
                job=job,
                paths=self.component.paths[job.name],
                levels=[level] * num_groups,
                places=[place] * num_groups,
                intensity=intensity,
                urgency=urgency,
                alone_s=alone_s,
                bound_share=bound_share,
                served=served,
                lacks=0.0,
                excess=excess,
                worth=worth,
                worth_before=worth_before[job.name],
                is_modelled=False,
            )


def _decide(component: Component, in_force: Mapping[str, JobOutcome], options: TrainyardOptions) -> _Decision:
    """Decide the priorities of one component."""
    if not any(job.name in in_force for job in component.jobs):
        return _Decision(component, component.search.best(), None)
    kept = component.search.kept(*_in_force(component.jobs, in_force))
    return _Decision(component, component.search.better_than(kept.score, options.min_gain) or kept, kept)


def _in_force(jobs: Sequence[Job], in_force: Mapping[str, JobOutcome]) -> tuple[IntArray, IntArray]:
    """Return levels and places of all jobs; a new job is ``UNASSIGNED`` and comes last."""
    last = len(jobs) + max(max(outcome.places) for outcome in in_force.values())
    known = [in_force.get(job.name) for job in jobs]
    levels = [UNASSIGNED if outcome is None else max(outcome.levels) for outcome in known]
    places = [last if outcome is None else min(outcome.places) for outcome in known]
    return np.array(levels), np.array(places)
