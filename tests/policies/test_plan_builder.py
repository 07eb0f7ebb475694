import pytest

from policies.plan_builder import equal_classes, own_levels


def test_sincronia_gives_one_level_each_to_the_first_seven() -> None:
    assert own_levels(10, 8) == [7, 6, 5, 4, 3, 2, 1, 0, 0, 0]


def test_figure_13() -> None:
    assert own_levels(4, 2) == [1, 0, 0, 0]
    assert equal_classes(4, 2) == [1, 1, 0, 0]


@pytest.mark.parametrize(
    ("num_jobs", "num_levels", "levels"),
    [(0, 8, []), (1, 8, [7]), (3, 8, [7, 6, 5]), (5, 2, [1, 1, 1, 0, 0]), (3, 1, [0, 0, 0])],
)
def test_classes_are_balanced_and_filled_from_the_top(num_jobs: int, num_levels: int, levels: list[int]) -> None:
    assert equal_classes(num_jobs, num_levels) == levels


@pytest.mark.parametrize("num_jobs", range(1, 20))
@pytest.mark.parametrize("num_levels", [1, 2, 3, 8])
def test_classes_differ_by_at_most_one(num_jobs: int, num_levels: int) -> None:
    levels = equal_classes(num_jobs, num_levels)
    sizes = [levels.count(level) for level in set(levels)]
    assert len(sizes) == min(num_jobs, num_levels)
    assert max(sizes) - min(sizes) <= 1
