"""Where slices are placed: spread evenly, on few hosts, as a part of a mesh, and by constraints."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.resources.errors import (
    DoesNotFitError,
    InvalidResourceError,
)
from runtime.resources.islands import NewDevice
from runtime.resources.slices import Constraints
from tests.runtime.resources.managers import hosts, loads, manager_of, mesh_of, timers


@given(st.lists(st.integers(1, 12), max_size=20))
def test_load_is_spread_evenly_over_the_devices_of_an_island(sizes: list[int]) -> None:
    manager = manager_of(("a", 3, 4))
    for size in sizes:
        manager.make_virtual_device_set("c").add_slice(size)
        assert max(loads(manager)) - min(loads(manager)) <= 1
    assert sum(loads(manager)) == sum(sizes)


def test_slices_go_to_the_island_that_is_loaded_least() -> None:
    manager = manager_of(("small", 1, 4), ("large", 2, 4))
    placed = [manager.make_virtual_device_set(f"c{at}").add_slice(4).island for at in range(6)]
    assert placed.count("large") == 4
    assert loads(manager) == [2] * 12


def test_equally_loaded_devices_are_taken_from_few_hosts() -> None:
    manager = manager_of(("a", 3, 4))
    device_set = manager.make_virtual_device_set("c")
    assert len(hosts(manager, device_set.add_slice(1))) == 1
    assert len(hosts(manager, device_set.add_slice(4))) == 1
    assert len(hosts(manager, device_set.add_slice(3))) == 1  # beside the first
    assert loads(manager) == [1] * 8 + [0] * 4


def test_virtual_devices_of_a_set_are_different_physical_ones() -> None:
    manager = manager_of(("a", 2, 4))
    device_set = manager.make_virtual_device_set("c")
    first, second = device_set.add_slice(5), device_set.add_slice(3)
    assert sorted(first.devices + second.devices) == list(range(8))
    with pytest.raises(DoesNotFitError, match="slice of 1 devices: fits nowhere: in island 'a' 0 of 8"):
        device_set.add_slice(1)
    assert manager.make_virtual_device_set("c").add_slice(8).devices == tuple(range(8))


def test_a_slice_larger_than_every_island_is_refused_by_name() -> None:
    manager = manager_of(("a", 2, 4), ("b", 1, 4))
    with pytest.raises(DoesNotFitError, match=r"slice of 12 devices.*'a' 8 of 8.*'b' 4 of 4"):
        manager.make_virtual_device_set("c").add_slice(12)
    assert manager.slices("c") == []
    assert loads(manager) == [0] * 12


def test_a_shape_is_a_mesh_row_by_row() -> None:
    manager = mesh_of(4, 4)
    found = manager.make_virtual_device_set("c").add_slice(shape=(2, 3))
    positions = [manager.device(number).position for number in found.devices]
    first = positions[0]
    assert positions == [(first[0] + row, first[1] + column) for row in range(2) for column in range(3)]


def test_a_shape_is_turned_where_it_fits_only_so() -> None:
    manager = mesh_of(4, 2)
    found = manager.make_virtual_device_set("c").add_slice(shape=(2, 4))
    positions = [manager.device(number).position for number in found.devices]
    assert positions == [(column, row) for row in range(2) for column in range(4)]


def test_a_shape_with_fewer_sides_lies_in_a_mesh_with_more() -> None:
    manager = mesh_of(2, 3, 4)
    found = manager.make_virtual_device_set("c").add_slice(shape=(4, 2))
    positions = [manager.device(number).position for number in found.devices]
    steps = {tuple(b - a for a, b in zip(positions[0], positions[at], strict=True)) for at in (1, 2)}
    assert len(positions) == len(set(positions)) == 8
    assert all(sum(step) == 1 for step in steps)  # neighbours along each of its sides are neighbours in the mesh


@given(st.lists(st.sampled_from([(1, 1), (2, 2), (1, 3), (4, 2), (3, 3), (5,)]), max_size=12))
def test_a_shape_gets_the_place_that_is_loaded_least(shapes: list[tuple[int, ...]]) -> None:
    """Against every place and turn, one by one."""
    manager = mesh_of(4, 5)
    for shape in shapes:
        load_at = {device.position: manager.load(device.number) for device in manager.devices()}
        rows, columns = (*shape, 1)[:2]
        best = min(
            (max(cells), sum(cells))
            for height, width in {(rows, columns), (columns, rows)}
            for top in range(4 - height + 1)
            for left in range(5 - width + 1)
            for cells in [[load_at[top + row, left + column] for row in range(height) for column in range(width)]]
        )
        found = manager.make_virtual_device_set("c").add_slice(shape=shape)
        before = [manager.load(number) - 1 for number in found.devices]
        assert (max(before), sum(before)) == best


def test_a_shape_that_no_mesh_has_is_refused_by_name() -> None:
    manager = mesh_of(4, 2)
    manager.add_island("flat")
    manager.add_host("flat0", "flat", timers(64))
    with pytest.raises(DoesNotFitError, match=r"shape 3x3: .*'mesh' of its mesh 4x2 8 of 8.*'flat' has no mesh"):
        manager.make_virtual_device_set("c").add_slice(shape=(3, 3))


def test_constraints_choose_kind_hosts_and_island() -> None:
    manager = manager_of(("a", 2, 2), ("b", 2, 2))
    manager.add_devices("a1", [NewDevice("gpu", 80)] * 2)
    device_set = manager.make_virtual_device_set("c")
    assert hosts(manager, device_set.add_slice(2, constraints=Constraints(kind="gpu"))) == {"a1"}
    assert hosts(manager, device_set.add_slice(2, constraints=Constraints(hosts=("b1",)))) == {"b1"}
    assert device_set.add_slice(1, island="a").island == "a"
    with pytest.raises(DoesNotFitError, match="slice of 3 devices"):
        device_set.add_slice(3, constraints=Constraints(kind="gpu"))


def test_memory_is_reserved_and_never_promised_twice() -> None:
    manager = manager_of(("a", 1, 4))  # 16 bytes each
    ten = Constraints(memory_bytes=10)
    first = manager.make_virtual_device_set("c").add_slice(3, constraints=ten)
    with pytest.raises(DoesNotFitError, match="1 of 4 devices are usable"):
        manager.make_virtual_device_set("d").add_slice(2, constraints=ten)
    assert manager.make_virtual_device_set("d").add_slice(4, constraints=Constraints(memory_bytes=6)).is_mapped
    manager.remove_slice(first.number)
    assert manager.make_virtual_device_set("d").add_slice(4, constraints=ten).is_mapped


@pytest.mark.parametrize(
    "arguments", [{}, {"devices": 1, "shape": (1,)}, {"devices": 0}, {"shape": (2, 0)}, {"shape": ()}]
)
def test_slices_are_of_a_number_or_of_a_shape(arguments: dict[str, object]) -> None:
    with pytest.raises(InvalidResourceError, match="slice"):
        manager_of(("a", 1, 2)).make_virtual_device_set("c").add_slice(**arguments)  # type: ignore[arg-type]
