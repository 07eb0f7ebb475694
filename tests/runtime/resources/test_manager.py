"""Clients of a manager: they are suspended, migrate and leave, and its books stay right."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.resources.errors import (
    DoesNotFitError,
    InvalidResourceError,
    ResourceError,
    SuspendedError,
    UnknownResourceError,
)
from runtime.resources.slices import Constraints
from tests.runtime.resources.managers import hosts, loads, manager_of, timers


def test_a_client_is_suspended_and_resumed_without_its_help() -> None:
    manager = manager_of(("a", 1, 4))
    device_set = manager.make_virtual_device_set("c")
    found = device_set.add_slice(3)
    change = manager.suspend("c")
    assert change.unmapped == (manager.slice(found.number),)
    assert not manager.slice(found.number).is_mapped
    assert loads(manager) == [0] * 4
    with pytest.raises(SuspendedError, match="'c': is suspended"):
        device_set.add_slice(1)
    with pytest.raises(SuspendedError, match="'c'"):
        manager.suspend("c")
    with pytest.raises(SuspendedError, match="'c'"):
        manager.migrate("c")
    manager.add_host("a9", "a", timers(4))
    assert not manager.slice(found.number).is_mapped  # room that joins is not for the suspended
    change = manager.resume("c")
    assert change.epoch == manager.epoch == 2
    assert manager.slice(found.number).is_mapped
    assert sum(loads(manager)) == 3
    with pytest.raises(SuspendedError, match="'c': is not suspended"):
        manager.resume("c")


def test_a_client_that_does_not_fit_stays_suspended() -> None:
    manager = manager_of(("a", 2, 2))
    first, second = (manager.make_virtual_device_set("c").add_slice(size) for size in (2, 4))
    manager.suspend("c")
    manager.remove_host("a0")
    with pytest.raises(DoesNotFitError, match="slice of 4 devices"):
        manager.resume("c")
    assert not manager.slice(first.number).is_mapped
    assert loads(manager) == [0, 0]
    manager.add_host("a2", "a", timers(2))
    manager.resume("c")
    assert manager.slice(second.number).is_mapped


def test_a_client_migrates_with_all_its_slices_or_none() -> None:
    manager = manager_of(("a", 2, 2), ("b", 1, 4), ("c", 1, 2))
    device_set = manager.make_virtual_device_set("c")
    first, second = device_set.add_slice(2, island=None), device_set.add_slice(2)
    change = manager.migrate("c", "b")
    assert {found.island for found in manager.slices("c")} == {"b"}
    assert all(found in manager.slices("c") for found in change.remapped)
    assert sum(loads(manager, "b")) == 4
    before = manager.slices("c")
    with pytest.raises(DoesNotFitError, match="'c' 0 of 2"):
        manager.migrate("c", "c")  # only one of them would fit
    assert manager.slices("c") == before
    assert sum(loads(manager, "b")) == 4
    assert [found.number for found in before] == [first.number, second.number]
    with pytest.raises(UnknownResourceError, match="'nowhere'"):
        manager.migrate("c", "nowhere")


def test_a_slice_bound_to_an_island_does_not_migrate() -> None:
    manager = manager_of(("a", 1, 2), ("b", 1, 2))
    found = manager.make_virtual_device_set("c").add_slice(2, island="a")
    with pytest.raises(DoesNotFitError, match=f"slice {found.number}: is bound to island 'a', not 'b'"):
        manager.migrate("c", "b")


def test_a_client_that_leaves_gives_everything_back() -> None:
    manager = manager_of(("a", 1, 4))
    found = manager.make_virtual_device_set("c").add_slice(3)
    manager.make_virtual_device_set("c").add_slice(4)
    manager.suspend("c")
    manager.remove_client("c")
    assert manager.slices("c") == []
    assert loads(manager) == [0] * 4
    assert manager.make_virtual_device_set("c").add_slice(4).is_mapped
    with pytest.raises(UnknownResourceError, match=f"slice {found.number}"):
        manager.slice(found.number)


@given(st.data())
def test_books_stay_right_whoever_comes_and_goes(data: st.DataObject) -> None:
    """Loads and memory are those of the slices, one to one within a set; a slice's epoch says when it moved."""
    manager = manager_of(("a", 2, 2), ("b", 1, 3))
    manager.add_island("mesh", (2, 3))
    manager.add_host("m0", "mesh", timers(6))
    sets = [manager.make_virtual_device_set(client) for client in "ccd"]
    there = ["a0", "a1", "b0", "m0"]
    leaving: set[str] = set()
    for _ in range(data.draw(st.integers(1, 25))):
        before = {found.number: found for client in "cd" for found in manager.slices(client)}
        epoch = manager.epoch
        steps = ["slice", "slice", "mesh", "lose", "vacate", "leave", "join", "suspend", "resume", "migrate"]
        step = data.draw(st.sampled_from(steps))
        client = data.draw(st.sampled_from("cd"))
        try:
            if step == "slice":
                constraints = Constraints(memory_bytes=data.draw(st.sampled_from([0, 5, 9])))
                data.draw(st.sampled_from(sets)).add_slice(data.draw(st.integers(1, 5)), constraints=constraints)
            elif step == "mesh":
                data.draw(st.sampled_from(sets)).add_slice(shape=data.draw(st.sampled_from([(2, 2), (3,), (3, 2)])))
            elif step == "vacate" and there:
                host = data.draw(st.sampled_from(list(there)))
                manager.vacate_host(host)
                leaving.add(host)
            elif step == "leave" and leaving:
                host = data.draw(st.sampled_from(sorted(leaving)))
                change = manager.remove_host(host)
                assert change.remapped == change.unmapped == ()  # what is vacated goes unnoticed
                leaving.remove(host)
                there.remove(host)
            elif step == "lose" and manager.devices():
                numbers = [device.number for device in manager.devices()]
                manager.remove_devices(data.draw(st.lists(st.sampled_from(numbers), max_size=4)))
            elif step == "join":
                name = f"new{len(there)} {epoch}"
                manager.add_host(name, data.draw(st.sampled_from(["a", "b", "mesh"])), timers(1))
                there.append(name)
            elif step == "suspend":
                manager.suspend(client)
            elif step == "resume":
                manager.resume(client)
            elif step == "migrate":
                manager.migrate(client, data.draw(st.sampled_from([None, "a", "b"])))
        except ResourceError:
            assert before == {found.number: found for client in "cd" for found in manager.slices(client)}
        slices = [found for client in "cd" for found in manager.slices(client)]
        for device in manager.devices():
            users = [found for found in slices if device.number in found.devices]
            assert manager.load(device.number) == len(users)
            assert sum(found.request.constraints.memory_bytes for found in users) <= device.memory_bytes
        for device_set in sets:
            used = [number for found in device_set.slices for number in found.devices]
            assert len(used) == len(set(used))
        for found in slices:
            assert len(found.devices) in (0, found.request.num_devices)
            assert {manager.device(number).island for number in found.devices} <= {found.island}
            assert leaving.isdisjoint(hosts(manager, found))
            old = before.get(found.number)
            if old is not None:
                has_moved = found.devices != old.devices
                assert (found.epoch == manager.epoch > epoch) if has_moved else found == old


def test_names_that_are_not_there_and_those_that_are_there_twice_are_refused() -> None:
    manager = manager_of(("a", 1, 2))
    device_set = manager.make_virtual_device_set("c")
    with pytest.raises(InvalidResourceError, match="island 'a'"):
        manager.add_island("a")
    with pytest.raises(InvalidResourceError, match="host 'a0'"):
        manager.add_host("a0", "a", timers(1))
    with pytest.raises(UnknownResourceError, match="island 'x'"):
        manager.add_host("x0", "x", timers(1))
    with pytest.raises(UnknownResourceError, match="island 'x'"):
        device_set.add_slice(1, island="x")
    with pytest.raises(UnknownResourceError, match="host 'x0'"):
        device_set.add_slice(1, constraints=Constraints(hosts=("x0",)))
    with pytest.raises(UnknownResourceError, match="host 'x0'"):
        manager.remove_host("x0")
    with pytest.raises(UnknownResourceError, match="device 9"):
        manager.remove_devices([0, 9])
    with pytest.raises(UnknownResourceError, match="island 'x'"):
        manager.remove_island("x")
    assert len(manager.devices()) == 2
