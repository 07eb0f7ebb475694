"""One component of the contention graph, decided: ways, order and levels, with regard for what is in force there."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain

import numpy as np

from policies.flow_arrays import FloatArray, IntArray
from policies.job import Job
from policies.snapshot import Links
from policies.trainyard.arrangement import NEW, Arrangement, Arranging
from policies.trainyard.components import joined
from policies.trainyard.contention import Contention
from policies.trainyard.fluid_bound import FluidBound, Start
from policies.trainyard.judgement import Judge
from policies.trainyard.options import TrainyardOptions
from policies.trainyard.order import smith_ratios
from policies.trainyard.score import together
from policies.trainyard.strands import Strands
from policies.trainyard.ways import Ways, choose_ways, occupied


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
    jobs: Sequence[Job], in_force: Mapping[str, Outcome], prices: FloatArray, setting: Setting, foreign: FloatArray
) -> tuple[list[Outcome], list[FluidBound]]:
    """Decide for jobs joined by their candidate links; what is in force stays unless another decision gains enough.

    ``prices`` are those of all links by the fluid bounds then; those of now, which do not overlap, are returned too.
    Ways avoid what ``foreign`` takes of links.
    """
    kept = {name: outcome.ways for name, outcome in in_force.items()}
    if not kept:
        lots = best_lots(jobs, prices, setting, foreign)
    else:
        lots = _lots(jobs, choose_ways(jobs, kept, setting.links.rates_bps, foreign=foreign), in_force, prices, setting)
    decided = [_decided(lot, in_force, setting.options) for lot in lots]
    before = dict(chain.from_iterable(each.worth_before() for each in decided))
    if kept and _may_move(jobs, setting.options):
        others = best_lots(jobs, prices, setting, foreign)
        if any(
            lot.ways[job.name].paths != kept[job.name].paths for lot in others for job in lot.jobs if job.name in kept
        ):
            rechosen = [_decided(lot, {}, setting.options) for lot in others]
            score = together(each.arrangement.score for each in decided)
            if together(each.arrangement.score for each in rechosen).is_better_than(score, setting.options.least_gain):
                decided = rechosen
    outcomes = [outcome for each in decided for outcome in each.outcomes(before)]
    return outcomes, [each.lot.arranging.bound for each in decided]


@dataclass(frozen=True, slots=True, eq=False)
class Lot:
    """Jobs that meet on the ways that they have."""

    jobs: Sequence[Job]
    ways: Mapping[str, Ways]
    arranging: Arranging


@dataclass(frozen=True, slots=True, eq=False)
class _Decided:
    """A lot of jobs, with all that was decided for them."""

    lot: Lot
    arrangement: Arrangement
    kept: Arrangement | None

    def worth_before(self) -> Iterator[tuple[str, float]]:
        """What each job, by name, computes per second if nothing in force changes, or as decided if nothing is."""
        worth = (self.kept or self.arrangement).served * self.lot.arranging.contention.worth
        return zip((job.name for job in self.lot.jobs), worth.tolist(), strict=True)

    def outcomes(self, worth_before: Mapping[str, float]) -> Iterator[Outcome]:
        """Job by job."""
        arranging, arrangement = self.lot.arranging, self.arrangement
        contention = arranging.contention
        bounds = np.searchsorted(contention.job_of_group, np.arange(len(self.lot.jobs) + 1)).tolist()
        levels, places = arrangement.levels.tolist(), arrangement.places.tolist()
        ratios = smith_ratios(contention).tolist()
        columns = (
            contention.intensity,
            arranging.bound.share,
            arrangement.served,
            arranging.judge.excess(arrangement.served),
            contention.worth,
        )
        by_job = zip(*(column.tolist() for column in columns), strict=True)
        for number, (job, values) in enumerate(zip(self.lot.jobs, by_job, strict=True)):
            intensity, share, served, excess, worth = values
            groups = slice(bounds[number], bounds[number + 1])
            yield Outcome(
                job=job,
                ways=self.lot.ways[job.name],
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


def _may_move(jobs: Sequence[Job], options: TrainyardOptions) -> bool:
    return sum(len(job.arrays.links) for job in jobs) <= options.most_candidate_links


def best_lots(jobs: Sequence[Job], prices: FloatArray, setting: Setting, foreign: FloatArray) -> list[Lot]:
    """Lots on ways that are chosen afresh by the best of the rules.

    By the first where flows of a group are needed one after the other: their windows are guessed, and what one choice
    is worth beside another hangs on them (docs/trainyard-policy.md).
    """
    rules = setting.options.path_rules
    if not _may_move(jobs, setting.options) or any(job.windows.is_staggered for job in jobs):
        rules = rules[:1]
    tried: list[list[Lot]] = []
    known: list[Mapping[str, Ways]] = []
    for rule in rules:
        ways = choose_ways(jobs, {}, setting.links.rates_bps, rule, foreign)
        if any(all(ways[job.name].paths == other[job.name].paths for job in jobs) for other in known):
            continue
        known.append(ways)
        tried.append(_lots(jobs, ways, {}, prices, setting))
    if len(tried) == 1:
        return tried[0]
    return max(tried, key=lambda lots: together(lot.arranging.promise() for lot in lots))


def _lots(
    jobs: Sequence[Job],
    ways: Mapping[str, Ways],
    in_force: Mapping[str, Outcome],
    prices: FloatArray,
    setting: Setting,
) -> list[Lot]:
    """The jobs that meet on the ways they have, lot by lot."""
    return [_lot(lot, ways, in_force, prices, setting) for lot in joined(jobs, [ways[job.name].links for job in jobs])]


def _lot(
    jobs: Sequence[Job],
    ways: Mapping[str, Ways],
    in_force: Mapping[str, Outcome],
    prices: FloatArray,
    setting: Setting,
) -> Lot:
    options = setting.options
    is_fresh = not any(job.name in in_force for job in jobs)
    shares = [in_force[job.name].share if job.name in in_force else 1.0 for job in jobs]
    on_links = occupied([ways[job.name] for job in jobs], len(setting.links))
    contention = Contention.of(jobs, on_links)
    bound = FluidBound.of(contention, options.bound_steps, None if is_fresh else Start(np.array(shares), prices))
    strands = partial(Strands.of, jobs, ways, contention, setting.links.rates_bps)
    arranging = Arranging(
        contention,
        bound,
        Judge(contention, bound, strands, setting.seed, options),
        on_links,
        setting.links.has_levels,
        setting.num_levels,
        setting.seed,
        options,
    )
    return Lot(jobs, ways, arranging)


def _decided(lot: Lot, in_force: Mapping[str, Outcome], options: TrainyardOptions) -> _Decided:
    """Arrange one lot."""
    if not any(job.name in in_force for job in lot.jobs):
        return _Decided(lot, lot.arranging.fresh(), None)
    kept = lot.arranging.kept(*_in_force(lot.jobs, in_force))
    arrangement = lot.arranging.better_than(kept.score, options.least_gain) or kept
    return _Decided(lot, arrangement, kept)


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
