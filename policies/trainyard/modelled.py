"""Decides for a component by the model: its jobs play their task graphs under one plan after another."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from policies.arrays import FloatArray, IntArray
from policies.crux.policy import crux
from policies.job import Job
from policies.model.alone import time_on_s
from policies.snapshot import Snapshot
from policies.trainyard.assignment import Assignment, JobPaths
from policies.trainyard.component import Component, Settings, may_move, ruled_paths
from policies.trainyard.due_share import least_shares
from policies.trainyard.job_model import JobModel, Scored
from policies.trainyard.options import PathRule
from policies.trainyard.order import smith_ratios
from policies.trainyard.outcome import JobOutcome
from policies.trainyard.path_choice import PathChoice, choose_paths, path_choices
from policies.trainyard.plan_search import MIN_GAIN, PlanSearch
from policies.trainyard.score import Scorer

_COMPRESSED_COST_AT_MOST = 0.01
"""Of the computation per second: what it may cost by the model that compressed groups go first."""
_LEAST_GAIN = 1e-3
"""Over no steering and Crux's plan. Jittered computations differ by so much that the model cannot tell less."""
_LEAST_ROOM = 0.05
"""Of a link's rate, is left to the jobs in the model, whatever others send."""


@dataclass(frozen=True, slots=True, eq=False)
class Modelled:
    """The jobs of a component, ready to be decided on.

    Attributes:
        component: The jobs on the paths of the first rule, or those that they have.
        alone_s: By job, the time of an iteration alone.
        model: Plays them.
        search: Finds plans for them.
        settings: Of the Snapshot.
    """

    component: Component
    alone_s: FloatArray
    model: JobModel
    search: PlanSearch
    settings: Settings


def decide_by_model(
    jobs: Sequence[Job],
    in_force: Mapping[str, JobOutcome],
    settings: Settings,
    foreign: FloatArray,
    num_cluster_jobs: int,
) -> list[JobOutcome] | None:
    """Decide for jobs whose candidate paths share links; None where they are too many, or take too long to play.

    Args:
        jobs: The jobs of one component, by candidate paths.
        in_force: The outcomes in force, by name of job.
        settings: Of the Snapshot.
        foreign: By link, the share of its rate that other traffic takes.
        num_cluster_jobs: How many jobs the cluster has.
    """
    options = settings.options
    most = options.event_evaluations if in_force else options.evaluations
    evaluations = int(most * min(1.0, options.full_search_jobs / num_cluster_jobs))
    if len(jobs) > options.max_modelled_jobs or evaluations < options.min_evaluations:
        return None
    modelled = modelled_component(jobs, in_force, settings, foreign, evaluations)
    if modelled is None:
        return None
    known, starts = _starts(modelled, foreign) if may_move(jobs, options) or not in_force else ([], [])
    if not in_force:
        best = modelled.search.best_from(known, starts)
        best = _settled(modelled, best, [modelled.model.play(plan) for plan in known])
        best = _compressed_first(modelled, best)
        return _outcomes(modelled, best, best, in_force)
    kept = _compressed_first(modelled, _kept(modelled, in_force))
    best = modelled.search.best_from([kept.assignment, *known], starts)
    best = _compressed_first(modelled, best)
    is_worth_it = best.score.is_better_than(kept.score, options.min_gain)
    return _outcomes(modelled, best if is_worth_it else kept, kept, in_force)


def modelled_component(
    jobs: Sequence[Job],
    in_force: Mapping[str, JobOutcome],
    settings: Settings,
    foreign: FloatArray,
    evaluations: int,
) -> Modelled | None:
    """Return jobs ready to be decided on; None where a run of the model would be too short or too long."""
    options, rates_bps = settings.options, settings.links.rates_bps
    room_bps = rates_bps * np.maximum(1 - foreign, _LEAST_ROOM)
    kept = {name: outcome.paths for name, outcome in in_force.items()}
    paths = choose_paths(jobs, kept, rates_bps, foreign=foreign)
    component = Component.of(jobs, paths, {}, np.zeros(len(rates_bps)), settings)
    contention = component.search.contention
    times_s = np.array([_alone_s(job, in_force.get(job.name), rates_bps) for job in jobs])
    if not np.isfinite(times_s).all():
        return None
    bounds = options.least_of_bound, options.longest_iteration_s
    least = least_shares(contention, component.search.bound, times_s, *bounds)
    scorer = Scorer(contention.work / times_s, least if len(jobs) > 1 else np.zeros(1), options.max_slowdown)
    by = room_bps, evaluations, options.model_steps, options.min_evaluations, options.model
    model = JobModel(jobs, times_s, scorer, *by)
    if not model.begin(_unsteered(jobs, settings.num_levels)):
        return None
    search = PlanSearch(
        *(jobs, model, times_s, rates_bps, foreign, settings.num_levels),
        may_share=options.may_share,
        seed=settings.seed,
    )
    return Modelled(component, times_s, model, search, settings)


def _alone_s(job: Job, known: JobOutcome | None, rates_bps: FloatArray) -> float:
    """Return the time of an iteration alone: the better of the hash's paths and of paths that spread its flows."""
    if known is not None and known.is_modelled:
        return known.alone_s
    spread = choose_paths([job], {}, rates_bps, PathRule.SMITH_SPREAD)[job.name].paths
    hashed = tuple(flow.hashed_path for flow in job.flows)
    return min(time_on_s(job, paths, rates_bps) for paths in dict.fromkeys((hashed, tuple(spread))))


def of_levels(modelled: Modelled, levels: IntArray) -> Assignment:
    """Return the assignment that gives every job one level, on the paths of the component."""
    jobs = modelled.component.jobs
    paths = tuple(tuple(modelled.component.paths[job.name].paths) for job in jobs)
    by_group = np.repeat(levels, [len(job.flow_groups) for job in jobs]).tolist()
    return Assignment(paths, (), ()).with_tiers(by_group, modelled.settings.num_levels)


def _starts(modelled: Modelled, foreign: FloatArray) -> tuple[list[Assignment], list[Assignment]]:
    """Return what a search begins with: no steering and Crux's plan; and our orders on all paths."""
    jobs, settings = modelled.component.jobs, modelled.settings
    search, num_levels = modelled.component.search, settings.num_levels
    num_groups = [len(job.flow_groups) for job in jobs]

    def by_group(values: IntArray) -> list[int]:
        return np.repeat(values, num_groups).tolist()

    unsteered = _unsteered(jobs, num_levels)
    crux_paths, levels, ranks = _crux(jobs, settings, foreign)
    of_crux = Assignment(crux_paths, tuple(by_group(levels)), tuple(by_group(ranks)))
    of_rules = (tuple(tuple(paths[job.name].paths) for job in jobs) for paths in ruled_paths(jobs, settings, foreign))
    apart = tuple(_gathered(job, number) for number, job in enumerate(jobs))
    orders = [by_group(levels) for order in search.orders() for levels in search.level_starts(order)]
    if settings.options.may_share:
        orders.insert(0, list(unsteered.levels))
    starts = [
        replace(unsteered, paths=paths).with_tiers(tiers, num_levels)
        for paths in dict.fromkeys((crux_paths, unsteered.paths, apart, *of_rules))
        for tiers in orders
    ]
    return ([unsteered, of_crux], starts) if settings.options.may_share else (starts[:1], starts[1:])


def _settled(modelled: Modelled, best: Scored, known: Sequence[Scored]) -> Scored:
    """Return the best plan where it gains enough over those known, else the best of these.

    Of known plans that are equally good, the one counts that loads the links most evenly: where jobs send more than
    they tell, flows collide on the hash's paths, for which the model has seen room enough.
    """
    top = known[0]
    for plan in known[1:]:
        is_as_good = not top.score.is_better_than(plan.score, MIN_GAIN)
        if plan.score.is_better_than(top.score, MIN_GAIN) or (is_as_good and _is_more_even(modelled, plan, top)):
            top = plan
    return best if best.score.is_better_than(top.score, _LEAST_GAIN) else top


def _compressed_first(modelled: Modelled, plan: Scored) -> Scored:
    """Return the plan with compressed groups on a level above all others; the plan where that costs more than they may.

    What they send is small, and computation waits for it. The model has one transfer for all of it and lets it end just
    in time, so it finds places behind others at which it fits between their transfers. In the network it is several
    transfers at other times, and waits there.
    """
    groups = [group for job in modelled.component.jobs for group in job.flow_groups]
    is_first = [group.is_compressed for group in groups]
    if not any(is_first):
        return plan
    num_levels = modelled.settings.num_levels
    tiers = [num_levels if first else level for first, level in zip(is_first, plan.assignment.levels, strict=True)]
    first = modelled.model.play(plan.assignment.with_tiers(tiers, num_levels))
    costs_more = plan.score.is_better_than(first.score, _COMPRESSED_COST_AT_MOST)
    return plan if costs_more or modelled.model.harms(first.assignment) else first


def _is_more_even(modelled: Modelled, plan: Scored, other: Scored) -> bool:
    """Return whether a plan loads links more evenly: the sum of the squares of their utilisations is less."""
    one, two = (modelled.search.utilisation(each) for each in (plan, other))
    return float(one @ one) < float(two @ two) * (1 - MIN_GAIN)


def _unsteered(jobs: Sequence[Job], num_levels: int) -> Assignment:
    """Return the hash's paths, and one level for all."""
    hashed = tuple(tuple(flow.hashed_path for flow in job.flows) for job in jobs)
    one_level = [num_levels - 1] * sum(len(job.flow_groups) for job in jobs)
    return Assignment(hashed, (), ()).with_levels(one_level, num_levels)


def _gathered(job: Job, number: int) -> JobPaths:
    """Return for all flows of a job paths of one number: where jobs have different ones, they keep apart."""
    return tuple(flow.candidates[number % len(flow.candidates)] for flow in job.flows)


def _crux(
    jobs: Sequence[Job], settings: Settings, foreign: FloatArray
) -> tuple[tuple[JobPaths, ...], IntArray, IntArray]:
    """Return the paths, levels and ranks that Crux gives to the jobs."""
    links = settings.links
    loads_bps = {int(link): float(foreign[link] * links[link].rate_bps) for link in np.flatnonzero(foreign)}
    plan = crux(Snapshot(0.0, links, tuple(jobs), settings.num_levels, foreign_loads_bps=loads_bps, seed=settings.seed))
    by_name = {job.name: job for job in plan.jobs}
    return (
        tuple(tuple(plan.flows[flow.key].path or flow.hashed_path for flow in job.flows) for job in jobs),
        np.array([by_name[job.name].level for job in jobs]),
        np.array([by_name[job.name].rank for job in jobs]),
    )


def _kept(modelled: Modelled, in_force: Mapping[str, JobOutcome]) -> Scored:
    """Return what is in force, with the best level by the model for each job that is new."""
    jobs, num_levels = modelled.component.jobs, modelled.settings.num_levels
    paths = tuple(tuple(modelled.component.paths[job.name].paths) for job in jobs)
    levels: list[int] = []
    places: list[int] = []
    new = []
    for number, job in enumerate(jobs):
        outcome = in_force.get(job.name)
        if outcome is None:
            new.append(number)
            outcome_levels, outcome_places = [0] * len(job.flow_groups), [num_levels - 1] * len(job.flow_groups)
        else:
            outcome_levels, outcome_places = list(outcome.levels), list(outcome.places)
        levels += outcome_levels
        places += outcome_places
    kept = modelled.model.play(Assignment(paths, tuple(levels), tuple(places)))
    for number in new:
        groups = modelled.model.groups_of[number]
        for level in reversed(range(num_levels)):
            of_groups = [level if group in groups else known for group, known in enumerate(kept.assignment.levels)]
            other = modelled.model.play(kept.assignment.with_levels(of_groups, num_levels))
            if other.score.is_better_than(kept.score, 0.0):
                kept = other
    return kept


def _outcomes(
    modelled: Modelled, decided: Scored, kept: Scored, in_force: Mapping[str, JobOutcome]
) -> list[JobOutcome]:
    """Return the outcome of each job."""
    jobs, settings, assignment = modelled.component.jobs, modelled.settings, decided.assignment
    search, scorer = modelled.component.search, modelled.model.scorer
    before = kept.served * scorer.worth
    lacks, excess = scorer.lacks(decided.served), scorer.excess(decided.served)
    ratios = smith_ratios(search.contention)
    outcomes = []
    for number, (job, groups) in enumerate(zip(jobs, modelled.model.groups_of, strict=True)):
        outcomes.append(
            JobOutcome(
                job=job,
                paths=_choice(job, assignment.paths[number], in_force.get(job.name), settings),
                levels=[assignment.levels[group] for group in groups],
                places=[assignment.places[group] for group in groups],
                intensity=float(search.contention.intensity[number]),
                urgency=float(ratios[number]),
                alone_s=float(modelled.alone_s[number]),
                bound_share=float(search.bound.share[number]),
                served=float(decided.served[number]),
                lacks=float(lacks[number]),
                excess=float(excess[number]),
                worth=float(scorer.worth[number]),
                worth_before=float(before[number]),
                is_modelled=True,
            )
        )
    return outcomes


def _choice(job: Job, paths: JobPaths, known: JobOutcome | None, settings: Settings) -> PathChoice:
    if known is not None and tuple(known.paths.paths) == paths:
        return known.paths
    (choice,) = path_choices([job], [paths], settings.links.rates_bps)
    return choice
