import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.workloads.schedulers.builders import CLUSTER, ask, rack_of, state_without, states
from workloads.schedulers.cluster import ClusterState
from workloads.schedulers.hived import GpuCell, free_cells, place_in_cells

WHOLE = tuple(range(8))


@pytest.mark.parametrize(
    ("free", "cells"),
    [
        (WHOLE, [GpuCell(8, 0)]),
        ((1, 2, 3, 4), [GpuCell(1, 1), GpuCell(1, 4), GpuCell(2, 2)]),  # 1 and 2 are no buddies
        ((0, 1, 2, 3, 6, 7), [GpuCell(2, 6), GpuCell(4, 0)]),
        ((), []),
    ],
)
def test_free_cells_are_aligned_and_as_large_as_can_be(free: tuple[int, ...], cells: list[GpuCell]) -> None:
    assert list(free_cells(free, 8)) == cells


@pytest.mark.parametrize(
    ("gpus", "host", "taken"),
    [
        (1, "a1", (1,)),  # the single one, not one of a pair
        (2, "a1", (2, 3)),
        (4, "b0", (4, 5, 6, 7)),
        (3, "a1", (1, 2, 3)),  # a pair and a single one
        (8, "a0", WHOLE),
        (6, "b0", (0, 2, 4, 5, 6, 7)),
    ],
)
def test_the_smallest_cell_that_holds_a_request_is_taken(gpus: int, host: str, taken: tuple[int, ...]) -> None:
    state = state_without(a1=(0, 4, 5, 6, 7), b0=(1, 3))
    assert place_in_cells(state, ask(1, gpus)) == {host: taken}


def test_hosts_come_from_the_lowest_cell_that_has_enough() -> None:
    def hosts(num_hosts: int, state: ClusterState) -> set[str]:
        return set(place_in_cells(state, ask(num_hosts, 8)) or ())

    whole = state_without()
    assert hosts(2, whole) == {"a0", "a1"}  # the rack with the fewest to spare
    assert hosts(4, whole) == {"c0", "c1", "c2", "c3"}
    assert hosts(5, whole) == {"a0", "a1", "b0", "b1", "b2"}  # a pod, before any from another
    assert {rack_of(host) for host in hosts(4, state_without(c0=(0,)))} == {"a", "b"}
    assert len(hosts(9, whole)) == 9


@given(state=states, exponent=st.integers(0, 3))
def test_no_larger_cell_is_split_where_one_of_the_size_is_free(state: ClusterState, exponent: int) -> None:
    size = 1 << exponent
    cells = [cell for host in CLUSTER.hosts for cell in free_cells(state.free[host], 8)]
    assume(any(cell.size == size for cell in cells))
    allocation = place_in_cells(state, ask(1, size))
    assert allocation is not None
    after = [cell for host in CLUSTER.hosts for cell in free_cells(state.take(allocation).free[host], 8)]
    for larger in (2, 4, 8):
        if larger > size:
            assert sum(cell.size == larger for cell in after) == sum(cell.size == larger for cell in cells)


@given(state=states, exponent=st.integers(0, 3))
def test_powers_of_two_get_one_aligned_cell_where_there_is_one(state: ClusterState, exponent: int) -> None:
    size = 1 << exponent
    assume(any(cell.size >= size for host in CLUSTER.hosts for cell in free_cells(state.free[host], 8)))
    allocation = place_in_cells(state, ask(1, size))
    assert allocation is not None
    (gpus,) = allocation.values()
    assert gpus == tuple(range(gpus[0], gpus[0] + size))
    assert gpus[0] % size == 0
