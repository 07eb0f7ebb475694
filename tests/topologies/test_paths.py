import pytest
from hypothesis import given
from hypothesis import strategies as st

from topologies.fabric import Path
from topologies.paths import NO_LINK, Paths

PATHS = st.lists(st.lists(st.integers(0, 99), max_size=4).map(tuple), max_size=4).map(tuple)


@given(PATHS, PATHS)
def test_they_are_read_as_the_tuples_they_are_made_of(paths: tuple[Path, ...], others: tuple[Path, ...]) -> None:
    made = Paths(paths)
    assert tuple(made) == paths
    assert [made[index] for index in range(len(made))] == list(paths)
    assert made[1:] == paths[1:]
    assert made == paths
    assert (made == Paths(others)) == (paths == others)
    assert hash(made) == hash(Paths(paths))
    assert made.shortest == min(map(len, paths), default=-1)
    assert made.highest_link == max((link for path in paths for link in path), default=-1)


def test_rows_of_links_are_filled_up_and_cannot_be_written() -> None:
    paths = Paths([(4, 5, 6), (7,)])
    assert paths.links.tolist() == [[4, 5, 6], [7, NO_LINK, NO_LINK]]
    with pytest.raises(ValueError, match="read-only"):
        paths.links[0, 0] = 1


def test_link_numbers_are_not_negative() -> None:
    with pytest.raises(ValueError, match="must not be negative"):
        Paths([(0, -1)])
