"""A component of the contention graph: jobs on chosen paths, and the best paths of several rules."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from policies.arrays import FloatArray
from policies.job import Job
from policies.snapshot import Links
from policies.trainyard.contention import Contention, connected_jobs
from policies.trainyard.fluid_bound import FluidBound, WarmStart
from policies.trainyard.options import TrainyardOptions
from policies.trainyard.path_choice import PathChoice, choose_paths, occupied_seconds
from policies.trainyard.priorities import PrioritySearch
from policies.trainyard.score import Scorer, total_score


@dataclass(frozen=True, slots=True)
class Settings:
    """What all decisions for one Snapshot have in common."""

    links: Links
    num_levels: int
    seed: int
    options: TrainyardOptions


@dataclass(frozen=True, slots=True, eq=False)
class Component:
    """Jobs that contend on the paths they have, and the search for their priorities."""

    jobs: Sequence[Job]
    paths: Mapping[str, PathChoice]
    search: PrioritySearch

    @classmethod
    def of(
        cls,
        jobs: Sequence[Job],
        paths: Mapping[str, PathChoice],
        bound_shares: Mapping[str, float],
        prices: FloatArray,
        settings: Settings,
    ) -> Self:
        """Set up the search for jobs on these paths.

        Args:
            jobs: The jobs of the component.
            paths: Paths by name of job, for these jobs and maybe others.
            bound_shares: By name, the shares in the fluid bound of jobs that the decision in force knows. Without any,
                the bound is solved from scratch.
            prices: By link of the fabric, its price in the decision in force.
            settings: Of the Snapshot.
        """
        options = settings.options
        is_known = any(job.name in bound_shares for job in jobs)
        shares = [bound_shares.get(job.name, 1.0) for job in jobs]
        occupied_s = occupied_seconds([paths[job.name] for job in jobs], len(settings.links))
        contention = Contention.of(jobs, occupied_s)
        start = WarmStart(np.array(shares), prices) if is_known else None
        bound = FluidBound.of(contention, options.bound_steps, start)
        search = PrioritySearch(
            contention,
            bound,
            Scorer(contention.worth, np.zeros(len(jobs)), options.max_slowdown),
            occupied_s,
            settings.links.has_levels,
            settings.num_levels,
            settings.seed,
            options,
        )
        return cls(jobs, paths, search)


def path_components(
    jobs: Sequence[Job],
    paths: Mapping[str, PathChoice],
    bound_shares: Mapping[str, float],
    prices: FloatArray,
    settings: Settings,
) -> list[Component]:
    """Return the components of jobs by the links of their chosen paths; arguments as for ``Component.of``."""
    return [
        Component.of(connected, paths, bound_shares, prices, settings)
        for connected in connected_jobs(jobs, [paths[job.name].links for job in jobs])
    ]


def best_components(
    jobs: Sequence[Job], prices: FloatArray, settings: Settings, foreign: FloatArray
) -> list[Component]:
    """Return components on new paths, chosen by the rule that promises the best score."""
    tried = [path_components(jobs, paths, {}, prices, settings) for paths in ruled_paths(jobs, settings, foreign)]
    return max(tried, key=lambda components: total_score(component.search.promise() for component in components))


def ruled_paths(jobs: Sequence[Job], settings: Settings, foreign: FloatArray) -> list[Mapping[str, PathChoice]]:
    """Return the different paths that the rules choose for jobs, by the first rule first."""
    rules = settings.options.path_rules if may_move(jobs, settings.options) else settings.options.path_rules[:1]
    found: dict[tuple[object, ...], Mapping[str, PathChoice]] = {}
    for rule in rules:
        paths = choose_paths(jobs, {}, settings.links.rates_bps, rule, foreign)
        found.setdefault(tuple(tuple(paths[job.name].paths) for job in jobs), paths)
    return list(found.values())


def may_move(jobs: Sequence[Job], options: TrainyardOptions) -> bool:
    """Return whether jobs have few enough candidate paths that flows which have a path may get another."""
    return sum(len(job.arrays.links) for job in jobs) <= options.max_candidate_links
