"""One component of the contention graph, decided: ways, order and levels, with regard for what is in force there."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from controller.policy.flow_arrays import FloatArray, IntArray
from controller.policy.snapshot import Job, Links
from controller.policy.trainyard.arrangement import NEW, Arrangement, Arranging
from controller.policy.trainyard.components import joined
from controller.policy.trainyard.contention import Contention
from controller.policy.trainyard.fluid_bound import FluidBound, Start
from controller.policy.trainyard.judgement import Judge
from controller.policy.trainyard.options import TrainyardOptions
from controller.policy.trainyard.order import smith_ratios
from controller.policy.trainyard.ways import Ways, choose_ways, occupied


@dataclass(frozen=True, slots=True)
class Setting:
    """What all decisions for one Snapshot have in common."""

    links: Links
    num_levels: int
    seed: int
    options: TrainyardOptions


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is decided for one job: its ways, and by group levels and places; and how that looks.

    ``urgency`` is the w / (p + slack) of its most urgent group, ``share`` what the fluid bound serves of its iterations
    alone, ``served`` what it gets by the model; ``excess`` is how far its slowdown is beyond the largest allowed,
    ``worth`` what it computes per second alone, and ``worth_before`` what it would if nothing in force had changed.
    """

    job: Job
    ways: Ways
    levels: Sequence[int]
    places: Sequence[int]
    intensity: float
    urgency: float
    share: float
    served: float
    excess: float
    worth: float
    worth_before: float

    def is_for_flows_as(self, other: "Outcome") -> bool:
        """Whether the flows of the job, one and the same, go as with another outcome."""
        alike = self.job is other.job and self.ways is other.ways
        return alike and self.levels == other.levels and self.places == other.places


def decide_component(
    jobs: Sequence[Job], in_force: Mapping[str, Outcome], prices: FloatArray, setting: Setting
) -> tuple[list[Outcome], list[FluidBound]]:
    """Decide for jobs joined by their candidate links; what is in force stays unless another decision gains enough.

    ``prices`` are those of all links by the fluid bounds then; those of now, which do not overlap, are returned too.
    """
    rates_bps, options = setting.links.rates_bps, setting.options
    kept = {name: outcome.ways for name, outcome in in_force.items()}
    ways = choose_ways(jobs, kept, rates_bps)
    decided = [_decided(lot, ways, in_force, prices, setting) for lot in _lots(jobs, ways)]
    before = dict(chain.from_iterable(each.worth_before() for each in decided))
    if kept and sum(len(job.arrays.links) for job in jobs) <= options.most_candidate_links:
        others = choose_ways(jobs, {}, rates_bps)
        if any(others[name].paths != ways[name].paths for name in kept):
            rechosen = [_decided(lot, others, {}, prices, setting) for lot in _lots(jobs, others)]
            if _total(rechosen) > worth_changing(_total(decided), options.least_gain):
                decided = rechosen
    outcomes = [outcome for each in decided for outcome in each.outcomes(before)]
    return outcomes, [each.arranging.bound for each in decided]


def worth_changing(in_force: float, least_gain: float) -> float:
    """The score beyond which something else is better enough than what is in force."""
    return in_force + least_gain * abs(in_force)


@dataclass(frozen=True, slots=True, eq=False)
class _Decided:
    """A lot of jobs, with all that was decided for them."""

    jobs: Sequence[Job]
    ways: Mapping[str, Ways]
    arranging: Arranging
    arrangement: Arrangement
    kept: Arrangement | None

    def worth_before(self) -> Iterator[tuple[str, float]]:
        """What each job, by name, computes per second if nothing in force changes, or as decided if nothing is."""
        worth = (self.kept or self.arrangement).served * self.arranging.contention.worth
        return zip((job.name for job in self.jobs), worth.tolist(), strict=True)

    def outcomes(self, worth_before: Mapping[str, float]) -> Iterator[Outcome]:
        """Job by job."""
        contention, arrangement = self.arranging.contention, self.arrangement
        bounds = np.searchsorted(contention.job_of_group, np.arange(len(self.jobs) + 1)).tolist()
        levels, places = arrangement.levels.tolist(), arrangement.places.tolist()
        ratios = smith_ratios(contention).tolist()
        columns = (
            contention.intensity,
            self.arranging.bound.share,
            arrangement.served,
            self.arranging.judge.excess(arrangement.served),
            contention.worth,
        )
        by_job = zip(*(column.tolist() for column in columns), strict=True)
        for number, (job, values) in enumerate(zip(self.jobs, by_job, strict=True)):
            intensity, share, served, excess, worth = values
            groups = slice(bounds[number], bounds[number + 1])
            yield Outcome(
                job=job,
                ways=self.ways[job.name],
                levels=levels[groups],
                places=places[groups],
                intensity=intensity,
                urgency=max(ratios[groups]),
                share=share,
                served=served,
                excess=excess,
                worth=worth,
                worth_before=worth_before[job.name],
            )


def _total(decided: Sequence[_Decided]) -> float:
    scores = [each.arrangement.score for each in decided]
    return sum(score for score in scores if score < 0) or sum(scores)


def _lots(jobs: Sequence[Job], ways: Mapping[str, Ways]) -> list[tuple[Job, ...]]:
    """The jobs that meet on the ways they have, lot by lot."""
    return joined(jobs, [ways[job.name].links for job in jobs])


def _decided(
    jobs: Sequence[Job],
    ways: Mapping[str, Ways],
    in_force: Mapping[str, Outcome],
    prices: FloatArray,
    setting: Setting,
) -> _Decided:
    """Arrange one lot."""
    options = setting.options
    is_fresh = not any(job.name in in_force for job in jobs)
    shares = [in_force[job.name].share if job.name in in_force else 1.0 for job in jobs]
    on_links = occupied([ways[job.name] for job in jobs], len(setting.links))
    contention = Contention.of(jobs, on_links)
    arranging = Arranging(
        contention,
        FluidBound.of(contention, options.bound_steps, None if is_fresh else Start(np.array(shares), prices)),
        Judge(contention, setting.seed, options),
        on_links,
        setting.links.has_levels,
        setting.num_levels,
        setting.seed,
        options,
    )
    if is_fresh:
        return _Decided(jobs, ways, arranging, arranging.fresh(), None)
    kept = arranging.kept(*_in_force(jobs, in_force))
    arrangement = arranging.better_than(worth_changing(kept.score, options.least_gain)) or kept
    return _Decided(jobs, ways, arranging, arrangement, kept)


def _in_force(jobs: Sequence[Job], in_force: Mapping[str, Outcome]) -> tuple[IntArray, IntArray]:
    """Levels and places of the groups of all jobs; those of a new job have the level ``NEW``, and the last places."""
    levels: list[int] = []
    places: list[int] = []
    last = sum(len(job.flow_groups) for job in jobs) + max(max(outcome.places) for outcome in in_force.values())
    for job in jobs:
        if (outcome := in_force.get(job.name)) is not None:
            levels += outcome.levels
            places += outcome.places
        else:
            levels += [NEW] * len(job.flow_groups)
            places += [last] * len(job.flow_groups)
    return np.array(levels), np.array(places)
