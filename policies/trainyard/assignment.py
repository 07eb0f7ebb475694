"""Assignments: paths of flows and levels of flow groups, and the steps from one assignment to its neighbours."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

from topologies.fabric import Path

JobPaths = tuple[Path, ...]
"""By flow of a job, its path."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """Paths by job, and levels and places at hosts by flow group; groups are numbered job after job."""

    paths: tuple[JobPaths, ...]
    levels: tuple[int, ...]
    places: tuple[int, ...]

    def with_levels(self, levels: Sequence[int], num_levels: int) -> Self:
        """Return it with these levels; groups of one level share a place at hosts too."""
        return replace(self, levels=tuple(levels), places=tuple(num_levels - 1 - level for level in levels))

    def with_tiers(self, tiers: Sequence[int], num_levels: int) -> Self:
        """Return it with levels in the order of ``tiers``, from the top; the lowest share a level if there are few."""
        place = {tier: number for number, tier in enumerate(sorted(set(tiers), reverse=True))}
        return self.with_levels([max(num_levels - 1 - place[tier], 0) for tier in tiers], num_levels)

    def with_paths(self, job: int, paths: JobPaths) -> Self:
        """Return it with other paths for one job."""
        return replace(self, paths=(*self.paths[:job], paths, *self.paths[job + 1 :]))


def moved_tiers(levels: Sequence[int], groups: Sequence[int], *, may_share: bool) -> Iterator[list[int]]:
    """Yield tiers in which these groups have one of their own, between those of others; or share one of theirs."""
    distinct = sorted({level for group, level in enumerate(levels) if group not in groups})
    tier_of = {level: 2 * number + 1 for number, level in enumerate(distinct)}
    for tier in range(0, 2 * len(distinct) + 1, 1 if may_share else 2):
        yield [tier if group in groups else tier_of[level] for group, level in enumerate(levels)]
