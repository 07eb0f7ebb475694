from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.papers.microbench.cases import Case, draw_case
from experiments.papers.microbench.optimum import Optimum
from policies.snapshot import Snapshot
from tests.experiments.papers.microbench.enumerated import Enumerated, small_case
from tests.policies.builders import GBPS, make_job, make_links
from workloads.scenario import MeasureWindow

CLOSE = {"rel": 1e-9}


def crux_example_1(*links: int) -> Case:
    """Crux, figure 11: jobs that compute 2 and 1 s, and then send for as long, over one of these links.

    With the first job going first they iterate in 4 and 4 s, else in 6 and 2 s; the window has whole iterations.
    """
    paths = tuple((link,) for link in links)
    jobs = tuple(
        make_job(name, [(seconds * GBPS / 8, paths)], compute_s=seconds) for name, seconds in (("a", 2), ("b", 1))
    )
    snapshot = Snapshot(0.0, make_links(GBPS, GBPS), jobs, num_levels=3)
    drawn = draw_case(1, 0.6)
    window = MeasureWindow(from_s=24.0, to_s=264.0)
    return replace(drawn, scenario=drawn.scenario.model_copy(update={"measure": window}), snapshot=snapshot)


def test_on_one_link_the_order_decides() -> None:
    optimum = Optimum(crux_example_1(0))
    assert optimum.gpu_seconds == pytest.approx(2 * 240.0)
    assert optimum.order == (1, 0)
    assert optimum.computed / optimum.gpu_seconds == pytest.approx(10 / 24, **CLOSE)
    assert optimum.worst_paths() == pytest.approx(optimum.computed, **CLOSE)
    assert optimum.of_levels((0, 2)) == pytest.approx(optimum.computed, **CLOSE)
    assert optimum.of_levels((2, 0)) / optimum.gpu_seconds == pytest.approx(9 / 24, **CLOSE)
    # The wrong order is best with both on one level.
    assert optimum.of_levels((2, 0)) < optimum.of_levels((1, 1)) < optimum.computed
    assert optimum.of_order((0, 1)) == optimum.worst_order() == optimum.of_levels((1, 1))
    assert optimum.worst_compression() == optimum.of_levels((0, 0))


def test_jobs_on_different_links_do_not_wait() -> None:
    optimum = Optimum(crux_example_1(0, 1))
    assert optimum.paths in ((0, 1), (1, 0))
    assert optimum.computed / optimum.gpu_seconds == pytest.approx(1 / 2, **CLOSE)
    assert optimum.worst_order() == pytest.approx(optimum.computed, **CLOSE)
    assert optimum.of_paths((0, 0)) / optimum.gpu_seconds == pytest.approx(10 / 24, **CLOSE)
    assert optimum.worst_paths() == pytest.approx(optimum.of_paths((1, 1)), **CLOSE)


@settings(max_examples=5, deadline=None)
@given(st.integers(1, 10_000), st.integers(2, 3))
def test_the_enumeration_covers_all_relevant_settings(seed: int, num_jobs: int) -> None:
    case = small_case(seed, num_jobs)
    optimum, every = Optimum(case), Enumerated(case)
    assert optimum.computed == pytest.approx(every.best, **CLOSE)
    assert every.of_paths(optimum.paths) == pytest.approx(every.best, **CLOSE)
    assert optimum.worst_paths() == pytest.approx(every.worst_paths(), **CLOSE)
    assert optimum.worst_order() == pytest.approx(every.worst_order(optimum.paths), **CLOSE)
    compressions = every.compressions(optimum.paths, optimum.order)
    assert max(compressions) == pytest.approx(every.best, **CLOSE)
    assert optimum.worst_compression() == pytest.approx(min(compressions), **CLOSE)
    backwards = optimum.order[::-1]
    assert optimum.of_order(backwards) == pytest.approx(max(every.compressions(optimum.paths, backwards)), **CLOSE)
    for (choice, levels), value in every.given.items():
        if choice == optimum.paths:
            assert optimum.of_levels(levels) == pytest.approx(value, **CLOSE)
    for choice in {choice for choice, _ in every.given}:
        assert optimum.of_paths(choice) == pytest.approx(every.of_paths(choice), **CLOSE)


def test_four_jobs_need_a_part_of_all_settings() -> None:
    case = small_case(5, 4, iterations=30)
    optimum, every = Optimum(case), Enumerated(case)
    assert optimum.computed == pytest.approx(every.best, **CLOSE)
    assert optimum.worst_paths() == pytest.approx(every.worst_paths(), **CLOSE)
    assert optimum.worst_order() == pytest.approx(every.worst_order(optimum.paths), **CLOSE)
    assert optimum.windows_run < len(every.given) / 10
