"""Constraints of slices, against every choice of devices, one by one."""

from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.resources.errors import DoesNotFitError, UnknownResourceError
from runtime.resources.islands import Device, NewDevice
from runtime.resources.manager import Manager
from runtime.resources.slices import Constraints, VirtualSlice

KINDS = st.sampled_from(["core", "gpu"])
CONSTRAINTS = st.builds(
    Constraints,
    kind=st.sampled_from([None, "core", "gpu"]),
    memory_bytes=st.sampled_from([0, 4, 8]),
    same_host=st.booleans(),
    contiguous=st.booleans(),
)


def manager_of(*hosts: list[NewDevice], mesh: tuple[int, ...] | None = None) -> Manager:
    manager = Manager()
    manager.add_island("a", mesh)
    for number, devices in enumerate(hosts):
        manager.add_host(f"h{number}", "a", devices)
    return manager


def cores(count: int) -> list[NewDevice]:
    return [NewDevice("core", 16)] * count


def hosts(manager: Manager, found: VirtualSlice) -> set[str]:
    return {manager.device(number).host for number in found.devices}


def is_block(manager: Manager, chosen: list[Device], mesh: tuple[int, ...] | None) -> bool:
    """Whether devices follow each other, or fill a block of the mesh."""
    if mesh is None:
        order = [device.number for device in manager.devices()]
        places = sorted(order.index(device.number) for device in chosen)
        return places == list(range(places[0], places[0] + len(places)))
    ranges = [range(min(at), max(at) + 1) for at in zip(*(device.position for device in chosen), strict=True)]
    return {device.position for device in chosen} == set(product(*ranges))


def holds(manager: Manager, asked: Constraints, chosen: list[Device], mesh: tuple[int, ...] | None) -> bool:
    return (
        all(asked.kind in (None, device.kind) and asked.memory_bytes <= device.memory_bytes for device in chosen)
        and (not asked.same_host or len({device.host for device in chosen}) == 1)
        and (not asked.contiguous or is_block(manager, chosen, mesh))
    )


@given(
    st.lists(st.lists(st.builds(NewDevice, KINDS, st.sampled_from([3, 7, 9])), min_size=1, max_size=3), max_size=3),
    st.booleans(),
    CONSTRAINTS,
    st.integers(1, 4),
)
def test_a_slice_fits_where_some_choice_of_devices_does_and_nowhere_else(
    devices: list[list[NewDevice]], has_mesh: bool, asked: Constraints, count: int
) -> None:
    mesh = (3, 3) if has_mesh else None
    manager = manager_of(*devices, mesh=mesh)
    fits = any(holds(manager, asked, list(chosen), mesh) for chosen in combinations(manager.devices(), count))
    try:
        found = manager.make_virtual_device_set("c").add_slice(count, constraints=asked)
    except DoesNotFitError:
        assert not fits
    else:
        assert fits
        assert holds(manager, asked, [manager.device(number) for number in found.devices], mesh)


@given(st.data())
def test_constraints_hold_whoever_comes_and_goes(data: st.DataObject) -> None:
    manager = manager_of(cores(3), cores(2), cores(4), [NewDevice("gpu", 16)] * 3)
    added: list[int] = []
    there, leaving = ["h0", "h1", "h2", "h3"], set[str]()
    for _ in range(data.draw(st.integers(1, 12))):
        step = data.draw(st.sampled_from(["add", "add", "vacate", "lose", "join", "suspend", "resume", "migrate"]))
        try:
            if step == "add":
                asked = data.draw(CONSTRAINTS)
                apart = data.draw(st.sets(st.sampled_from(added), max_size=2)) if added else set[int]()
                asked = Constraints(
                    asked.kind, asked.memory_bytes, None, asked.same_host, asked.contiguous, tuple(apart)
                )
                size = data.draw(st.integers(1, 4))
                added.append(manager.make_virtual_device_set("c").add_slice(size, constraints=asked).number)
            elif step == "join":
                there.append(f"h{len(there)}")
                manager.add_host(there[-1], "a", cores(data.draw(st.integers(1, 4))))
            elif step == "vacate":
                host = data.draw(st.sampled_from(there))
                manager.vacate_host(host)
                leaving.add(host)
            elif step == "lose":
                manager.remove_host(data.draw(st.sampled_from(there)))
            elif step == "suspend":
                manager.suspend("c")
            elif step == "resume":
                manager.resume("c")
            else:
                manager.migrate("c")
        except (DoesNotFitError, ValueError):
            pass
        for number in added:
            found = manager.slice(number)
            asked = found.request.constraints
            if found.is_mapped:
                assert holds(manager, asked, [manager.device(each) for each in found.devices], None)
                assert leaving.isdisjoint(hosts(manager, found))
                for other in asked.apart_from:
                    assert hosts(manager, found).isdisjoint(hosts(manager, manager.slice(other)))


def test_slices_apart_from_each_other_share_no_host() -> None:
    manager = manager_of(cores(2), cores(2), cores(2))
    one = manager.make_virtual_device_set("c").add_slice(3)
    other = manager.make_virtual_device_set("c").add_slice(2, constraints=Constraints(apart_from=(one.number,)))
    assert hosts(manager, one).isdisjoint(hosts(manager, other))
    with pytest.raises(
        DoesNotFitError, match=r"2 of 6 devices are usable \(4 are of hosts of slices that it is to be ap"
    ):
        manager.make_virtual_device_set("c").add_slice(3, constraints=Constraints(apart_from=(one.number,)))
    with pytest.raises(UnknownResourceError, match=f"slice {one.number}: is not a slice of client 'd'"):
        manager.make_virtual_device_set("d").add_slice(1, constraints=Constraints(apart_from=(one.number,)))
    (left,) = hosts(manager, other)
    with pytest.raises(DoesNotFitError, match=f"host '{left}': cannot leave: slice {other.number}"):
        manager.vacate_host(left)
    manager.remove_slice(one.number)
    manager.vacate_host(left)
    assert manager.slice(other.number).is_mapped


def test_a_slice_of_one_host_moves_to_one_host() -> None:
    manager = manager_of(cores(3), cores(1), cores(3))
    found = manager.make_virtual_device_set("c").add_slice(3, constraints=Constraints(same_host=True))
    manager.remove_devices(found.devices[:1])
    assert len(hosts(manager, manager.slice(found.number))) == 1
    with pytest.raises(DoesNotFitError, match="6 of 6 devices are usable, not so many on one host"):
        manager.make_virtual_device_set("c").add_slice(4, constraints=Constraints(same_host=True))


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (Constraints(kind="gpu"), "0 of 4 devices are usable .4 are not of kind 'gpu'"),
        (Constraints(memory_bytes=1000), "4 are with less than 1,000 bytes left"),
        (Constraints(hosts=("h0",)), "2 of 4 devices are usable .2 are not of the hosts h0"),
        (
            Constraints(contiguous=True),
            "3 of 4 devices are usable .1 are of other slices of its set., not so many that",
        ),
    ],
)
def test_what_cannot_hold_is_named(asked: Constraints, says: str) -> None:
    manager = manager_of(cores(2), cores(2))
    device_set = manager.make_virtual_device_set("c")
    first, _ = device_set.add_slice(1), device_set.add_slice(1)
    manager.remove_slice(first.number)
    used = device_set if asked.contiguous else manager.make_virtual_device_set("c")
    with pytest.raises(DoesNotFitError, match=says):
        used.add_slice(3, constraints=asked)


def test_more_devices_than_there_could_be_are_refused_at_once() -> None:
    manager = manager_of(cores(4), mesh=(2, 2))
    with pytest.raises(DoesNotFitError):
        manager.make_virtual_device_set("c").add_slice(10**15, constraints=Constraints(contiguous=True))
