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
from runtime.resources.islands import NewDevice
from runtime.resources.manager import Manager
from runtime.resources.slices import Constraints, VirtualSlice


def timers(count: int, memory_bytes: int = 16) -> list[NewDevice]:
    return [NewDevice("timer", memory_bytes)] * count


def manager_of(*islands: tuple[str, int, int]) -> Manager:
    """Return a manager of islands: name, hosts, devices per host."""
    manager = Manager()
    for island, hosts, devices in islands:
        manager.add_island(island)
        for host in range(hosts):
            manager.add_host(f"{island}{host}", island, timers(devices))
    return manager


def mesh_of(*sides: int) -> Manager:
    """Return a manager of one island with a host per row of its mesh."""
    manager = Manager()
    manager.add_island("mesh", sides)
    for row in range(sides[0]):
        count = 1
        for side in sides[1:]:
            count *= side
        manager.add_host(f"row{row}", "mesh", timers(count))
    return manager


def loads(manager: Manager, island: str | None = None) -> list[int]:
    return [manager.load(device.number) for device in manager.devices(island)]


def hosts(manager: Manager, found: VirtualSlice) -> set[str]:
    return {manager.device(number).host for number in found.devices}


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


@pytest.mark.parametrize(
    "arguments", [{}, {"devices": 1, "shape": (1,)}, {"devices": 0}, {"shape": (2, 0)}, {"shape": ()}]
)
def test_slices_are_of_a_number_or_of_a_shape(arguments: dict[str, object]) -> None:
    with pytest.raises(InvalidResourceError, match="slice"):
        manager_of(("a", 1, 2)).make_virtual_device_set("c").add_slice(**arguments)  # type: ignore[arg-type]


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
