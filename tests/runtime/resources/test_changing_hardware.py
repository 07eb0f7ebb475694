"""Hosts and devices come and go: slices that lose some move, and the others stay."""

import pytest

from runtime.resources.errors import (
    DoesNotFitError,
    InvalidResourceError,
    UnknownResourceError,
)
from runtime.resources.islands import NewDevice
from runtime.resources.manager import Manager
from tests.runtime.resources.managers import hosts, loads, manager_of, mesh_of, timers


def test_slices_that_lose_devices_keep_the_others() -> None:
    manager = manager_of(("a", 3, 2))
    hit = manager.make_virtual_device_set("c").add_slice(4)
    other = manager.make_virtual_device_set("d").add_slice(2)
    lost = manager.device(hit.devices[0]).host
    change = manager.remove_host(lost)
    assert [found.number for found in change.remapped] == [hit.number]
    assert change.epoch == manager.epoch == 1
    now = manager.slice(hit.number)
    assert now.epoch == 1
    assert now.devices[2:] == hit.devices[2:]
    assert set(now.devices).isdisjoint(device.number for device in change.left)
    assert len(set(now.devices)) == 4
    assert manager.slice(other.number) == other
    assert sum(loads(manager)) == 6


def test_a_host_is_vacated_and_leaves_unnoticed() -> None:
    manager = manager_of(("a", 3, 2))
    hit = manager.make_virtual_device_set("c").add_slice(4)
    left = manager.device(hit.devices[0]).host
    change = manager.vacate_host(left)
    assert change.remapped == (manager.slice(hit.number),)
    assert manager.slice(hit.number).devices[2:] == hit.devices[2:]
    assert left not in hosts(manager, manager.slice(hit.number))
    assert manager.epoch == 1
    with pytest.raises(DoesNotFitError, match="4 of 6 devices are usable"):
        manager.make_virtual_device_set("d").add_slice(5)
    with pytest.raises(InvalidResourceError, match=f"host '{left}': is leaving already"):
        manager.vacate_host(left)
    manager.remove_host(left)
    assert manager.epoch == 1


def test_a_host_whose_slices_fit_nowhere_else_stays() -> None:
    manager = manager_of(("a", 2, 2))
    small, large = (manager.make_virtual_device_set(client).add_slice(size) for client, size in (("c", 1), ("d", 3)))
    before = loads(manager)
    host = manager.device(small.devices[0]).host
    with pytest.raises(
        DoesNotFitError, match=f"host '{host}': cannot leave: slice {large.number} of client 'd', slice of 3 devices"
    ):
        manager.vacate_host(host)
    assert [manager.slice(each.number) for each in (small, large)] == [small, large]
    assert (loads(manager), manager.epoch) == (before, 0)
    assert manager.make_virtual_device_set("e").add_slice(4).is_mapped


def test_a_check_that_fails_undoes_that_a_host_leaves() -> None:
    manager = manager_of(("a", 2, 2))
    found = manager.make_virtual_device_set("c").add_slice(2)
    host = manager.device(found.devices[0]).host

    def refuse(_: object) -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        manager.vacate_host(host, refuse)
    assert manager.slice(found.number) == found
    assert manager.vacate_host(host).epoch == 1


def test_a_slice_moves_to_another_island_where_its_own_is_too_small() -> None:
    manager = manager_of(("a", 2, 2), ("b", 2, 2))
    free = manager.make_virtual_device_set("c").add_slice(4)
    bound = manager.make_virtual_device_set("d").add_slice(4, island="a")
    assert free.island == "a"
    change = manager.remove_host("a0")
    assert manager.slice(free.number).island == "b"
    assert [found.number for found in change.unmapped] == [bound.number]
    assert manager.slice(bound.number).devices == ()
    assert loads(manager, "a") == [0, 0]
    change = manager.add_host("a2", "a", timers(2))
    assert [found.number for found in change.remapped] == [bound.number]
    assert manager.slice(bound.number).is_mapped
    assert len(change.joined) == 2


def test_a_mesh_slice_moves_as_a_whole() -> None:
    manager = mesh_of(4, 4)
    found = manager.make_virtual_device_set("c").add_slice(shape=(2, 2))
    change = manager.remove_devices([found.devices[3]])
    now = manager.slice(found.number)
    assert change.remapped == (now,)
    corner = manager.device(now.devices[0]).position
    assert [manager.device(number).position for number in now.devices] == [
        (corner[0] + row, corner[1] + column) for row in range(2) for column in range(2)
    ]


def test_devices_join_at_the_places_of_those_that_left() -> None:
    manager = mesh_of(2, 2)
    device_set = manager.make_virtual_device_set("c")
    found = device_set.add_slice(shape=(2, 2))
    gone = manager.remove_devices([1])
    assert gone.unmapped == (manager.slice(found.number),)
    change = manager.add_devices("row0", timers(1))
    assert [device.position for device in change.joined] == [(0, 1)]
    assert manager.slice(found.number).devices == (0, 4, 2, 3)  # numbers are never given again
    assert device_set.slices == [manager.slice(found.number)]


def test_what_changes_no_mapping_begins_no_epoch() -> None:
    manager = manager_of(("a", 2, 2))
    manager.make_virtual_device_set("c").add_slice(2, island="a")
    manager.add_host("a9", "a", timers(2))
    manager.remove_host("a9")
    manager.remove_slice(manager.make_virtual_device_set("d").add_slice(1).number)
    assert manager.migrate("nobody").remapped == ()
    assert manager.epoch == 0


def test_a_slice_that_still_fits_nowhere_has_not_changed() -> None:
    manager = manager_of(("a", 1, 3), ("b", 1, 1))
    found = manager.make_virtual_device_set("c").add_slice(3)
    manager.make_virtual_device_set("d").add_slice(1, island="b")
    manager.remove_devices([0])
    unmapped = manager.slice(found.number)
    manager.remove_devices([3])
    assert manager.epoch == 2
    change = manager.add_host("b1", "b", timers(1))
    assert [moved.client for moved in change.remapped] == ["d"]
    assert manager.epoch == 3
    assert manager.slice(found.number) == unmapped
    assert unmapped.epoch == 1


def test_positions_lie_inside_of_the_mesh_and_apart() -> None:
    manager = Manager()
    with pytest.raises(InvalidResourceError, match="island 'bad': mesh"):
        manager.add_island("bad", (2, 0))
    manager.add_island("a", (2, 2))
    for position, what in [((2, 0), "outside"), ((0,), "outside"), ((0, -1), "outside")]:
        with pytest.raises(InvalidResourceError, match=what):
            manager.add_host("a0", "a", [NewDevice("timer", 1, position)])
    with pytest.raises(InvalidResourceError, match="occupied"):
        manager.add_host("a0", "a", [NewDevice("timer", 1, (1, 1))] * 2)
    change = manager.add_host("a0", "a", [NewDevice("timer", 1, (0, 1)), *timers(2)])
    assert [device.position for device in change.joined] == [(0, 1), (0, 0), (1, 0)]
    with pytest.raises(InvalidResourceError, match="no place for so many"):
        manager.add_host("a1", "a", timers(2))
    with pytest.raises(InvalidResourceError, match="memory_bytes"):
        manager.add_host("a1", "a", timers(1, memory_bytes=-1))
    manager.add_island("flat")
    with pytest.raises(InvalidResourceError, match="'flat': has no mesh"):
        manager.add_host("f0", "flat", [NewDevice("timer", 1, (0, 0))])


def test_an_island_leaves_with_its_hosts() -> None:
    manager = manager_of(("a", 2, 2), ("b", 1, 4))
    found = manager.make_virtual_device_set("c").add_slice(4)
    change = manager.remove_island("a")
    assert len(change.left) == 4
    assert manager.slice(found.number).island == "b"
    with pytest.raises(UnknownResourceError, match="host 'a0'"):
        manager.remove_host("a0")
