"""Levels against the figures of Crux, section 4.3, and against enumeration of all cuts."""

from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from policies.crux import compression


@dataclass(frozen=True)
class Contender:
    """A job with a unique rank (0 the most urgent), and the links with levels that it uses."""

    name: str
    rank: int
    intensity: float
    links: frozenset[int]


def compress(contenders: list[Contender], num_levels: int, seed: int, num_orders: int | None = None) -> dict[str, int]:
    ranked = sorted(contenders, key=lambda job: job.rank)
    shares = [[high.rank < low.rank and bool(high.links & low.links) for low in ranked] for high in ranked]
    sharing = csr_array(np.array(shares, dtype=bool).reshape(len(ranked), len(ranked)))
    levels = compression.compress([job.intensity for job in ranked], sharing, num_levels, seed, num_orders)
    return {job.name: level for job, level in zip(ranked, levels, strict=True)}


def contenders(intensities: dict[str, float], shared: list[tuple[str, str]]) -> list[Contender]:
    """Jobs in order of rank; every pair in ``shared`` has a link of its own."""
    return [
        Contender(name, rank, intensity, frozenset(link for link, pair in enumerate(shared) if name in pair))
        for rank, (name, intensity) in enumerate(intensities.items())
    ]


def groups(levels: dict[str, int]) -> list[set[str]]:
    return [{name for name in levels if levels[name] == level} for level in sorted(set(levels.values()), reverse=True)]


def weight_cut(jobs: list[Contender], levels: dict[str, int]) -> float:
    return sum(
        min(pair, key=lambda job: job.rank).intensity
        for pair in combinations(jobs, 2)
        if pair[0].links & pair[1].links and levels[pair[0].name] != levels[pair[1].name]
    )


def is_valid(jobs: list[Contender], levels: dict[str, int]) -> bool:
    return all(
        levels[high.name] >= levels[low.name]
        for high, low in combinations(sorted(jobs, key=lambda job: job.rank), 2)
        if high.links & low.links
    )


def largest_cut(jobs: list[Contender], num_levels: int) -> float:
    """By enumeration."""
    assignments = (
        dict(zip((job.name for job in jobs), levels, strict=True))
        for levels in product(range(num_levels), repeat=len(jobs))
    )
    return max(weight_cut(jobs, levels) for levels in assignments if is_valid(jobs, levels))


@st.composite
def contending_jobs(draw: st.DrawFn, max_size: int) -> list[Contender]:
    size = draw(st.integers(0, max_size))
    ranks = draw(st.permutations(range(size)))
    links = st.frozensets(st.integers(0, 4), max_size=3)
    return [Contender(f"job-{n}", rank, draw(st.integers(0, 9)), draw(links)) for n, rank in enumerate(ranks)]


def test_figure_13() -> None:
    jobs = contenders({"1": 4, "2": 3, "3": 2, "4": 1}, [("1", "2"), ("3", "4")])
    assert compress(jobs, num_levels=2, seed=1) == {"1": 1, "2": 0, "3": 1, "4": 0}


def test_figure_14() -> None:
    edges = [("1", "2"), ("1", "3"), ("1", "4"), ("1", "5"), ("2", "3"), ("5", "4")]
    jobs = contenders({"1": 5, "5": 4, "4": 3, "2": 2, "3": 1}, edges)
    levels = compress(jobs, num_levels=3, seed=1)
    assert groups(levels) == [{"1"}, {"2", "5"}, {"3", "4"}]
    assert weight_cut(jobs, levels) == 5 * 4 + 2 + 4


@settings(max_examples=40)
@given(contending_jobs(max_size=4), st.integers(1, 3))
def test_many_orders_find_the_largest_cut(jobs: list[Contender], num_levels: int) -> None:
    levels = compress(jobs, num_levels, seed=1, num_orders=200)
    assert weight_cut(jobs, levels) == (largest_cut(jobs, num_levels) if jobs else 0)


@given(contending_jobs(max_size=9), st.integers(1, 8), st.integers())
def test_cut_is_valid_within_the_levels_and_repeatable(jobs: list[Contender], num_levels: int, seed: int) -> None:
    levels = compress(jobs, num_levels, seed)
    assert levels.keys() == {job.name for job in jobs}
    assert is_valid(jobs, levels)
    assert all(0 <= level < num_levels for level in levels.values())
    assert compress(jobs[::-1], num_levels, seed) == levels


def test_each_contender_has_its_own_level_where_there_are_enough() -> None:
    jobs = [Contender(f"job-{rank}", rank, 1.0, frozenset({0})) for rank in range(3)]
    assert compress(jobs, num_levels=8, seed=1) == {"job-0": 7, "job-1": 6, "job-2": 5}


def test_job_without_contention_has_the_highest_level() -> None:
    jobs = contenders({"a": 3, "b": 2, "c": 1}, [("a", "b")])
    assert compress(jobs, num_levels=8, seed=1) == {"a": 7, "b": 6, "c": 7}


def test_intensity_decides_who_shares_a_level() -> None:
    """Three jobs on one link and two levels: the job with the larger intensity is set apart."""
    jobs = [Contender(name, rank, weight, frozenset({0})) for rank, (name, weight) in enumerate([("a", 5), ("b", 1)])]
    jobs.append(Contender("c", 2, 1.0, frozenset({0})))
    assert groups(compress(jobs, num_levels=2, seed=1)) == [{"a"}, {"b", "c"}]
    jobs[0] = Contender("a", 0, 1.0, frozenset({0}))
    jobs[1] = Contender("b", 1, 5.0, frozenset({0}))
    assert groups(compress(jobs, num_levels=2, seed=1)) == [{"a", "b"}, {"c"}]


def test_jobs_that_never_meet_have_levels_by_their_own_intensities() -> None:
    """Two links, the ranks of whose jobs alternate."""
    on_links = [(0, 5.0), (1, 1.0), (0, 1.0), (1, 5.0), (0, 1.0), (1, 1.0)]
    jobs = [Contender(str(rank), rank, weight, frozenset({link})) for rank, (link, weight) in enumerate(on_links)]
    assert groups(compress(jobs, num_levels=2, seed=1)) == [{"0", "1", "3"}, {"2", "4", "5"}]


@pytest.mark.parametrize("num_levels", [1, 8])
def test_no_jobs(num_levels: int) -> None:
    assert compress([], num_levels, seed=1) == {}
