"""Among islands that static balance finds equal, a slice goes where paths are loaded least."""

from itertools import combinations
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.resources.errors import ResourceError
from runtime.resources.manager import Manager
from runtime.resources.path_loads import PathLoads
from runtime.resources.slices import Constraints
from tests.runtime.resources.managers import manager_of

NAMES = ("a", "b", "c", "d")


def loads(**by_islands: float) -> PathLoads:
    """Loads by two islands, each named by one letter."""
    return PathLoads({frozenset(islands): load for islands, load in by_islands.items()})


def equal_islands(path_loads: PathLoads) -> Manager:
    manager = manager_of(*((name, 2, 2) for name in NAMES))
    manager.set_path_loads(path_loads)
    return manager


def test_a_slice_goes_where_the_path_to_the_clients_other_slice_is_loaded_least() -> None:
    manager = equal_islands(loads(ab=0.9, ac=0.1, ad=0.5, cd=1.0))
    devices = manager.make_virtual_device_set("client")
    assert devices.add_slice(1, island="a").island == "a"
    assert devices.add_slice(1).island == "c"
    assert manager.make_virtual_device_set("other").add_slice(1).island in ("b", "d")


def test_a_path_that_is_not_known_counts_as_idle_and_one_that_is_cut_off_as_the_worst() -> None:
    manager = equal_islands(loads(ab=inf, ac=3.0, ad=0.1))
    devices = manager.make_virtual_device_set("client")
    assert [devices.add_slice(4, island="a").island, devices.add_slice(4).island] == ["a", "d"]
    manager.set_path_loads(loads(ab=inf, ac=3.0, bd=1.0, cd=1.0))
    assert [devices.add_slice(4).island, devices.add_slice(4).island] == ["c", "b"]
    manager = equal_islands(loads(ab=0.1, ac=0.1))
    devices = manager.make_virtual_device_set("client")
    assert [devices.add_slice(1, island="a").island, devices.add_slice(1).island] == ["a", "d"]


def test_the_paths_to_all_other_slices_count_together() -> None:
    manager = equal_islands(loads(ac=0.2, bc=0.7, ad=0.4, bd=0.4))
    devices = manager.make_virtual_device_set("client")
    for island in "ab":
        devices.add_slice(1, island=island)
    assert devices.add_slice(1).island == "d"


def test_the_first_slice_goes_where_the_paths_out_are_loaded_least() -> None:
    manager = equal_islands(loads(ab=0.5, ac=0.5, ad=0.5, bc=0.2, bd=0.2, cd=0.1))
    assert manager.make_virtual_device_set("client").add_slice(1).island == "c"


def test_slices_of_others_do_not_matter() -> None:
    manager = equal_islands(loads(bc=0.9))
    for name, island in (("other", "b"), ("client", "a")):
        manager.make_virtual_device_set(name).add_slice(4, island=island)
    assert manager.make_virtual_device_set("client").add_slice(1).island == "c"


def test_devices_that_are_loaded_less_go_before_the_network() -> None:
    manager = equal_islands(loads(ab=0.9, ac=0.1, ad=0.1))
    for island in "cd":
        manager.make_virtual_device_set("other").add_slice(1, island=island)
    devices = manager.make_virtual_device_set("client")
    devices.add_slice(1, island="a")
    assert devices.add_slice(1).island == "b"


def test_an_island_needs_no_path_to_itself() -> None:
    manager = equal_islands(loads(ab=0.2, ac=0.2, ad=0.2, bc=0.2, bd=0.2, cd=0.2))
    for island in "bcd":
        manager.make_virtual_device_set("other").add_slice(1, island=island)
    devices = manager.make_virtual_device_set("client")
    devices.add_slice(1, island="a")
    assert devices.add_slice(1).island == "a"


def test_what_is_mapped_stays_when_loads_change() -> None:
    manager = equal_islands(PathLoads())
    devices = manager.make_virtual_device_set("client")
    before = devices.add_slice(1, island="a"), devices.add_slice(1)
    manager.set_path_loads(loads(ab=1.0))
    assert (tuple(devices.slices), manager.epoch) == (before, 0)


def two_slices(path_loads: PathLoads) -> tuple[Manager, int]:
    """A client with a slice on island a, and one elsewhere whose number is returned: on b."""
    manager = equal_islands(PathLoads())
    devices = manager.make_virtual_device_set("client")
    devices.add_slice(4, island="a")
    moving = devices.add_slice(4)
    assert moving.island == "b"
    manager.set_path_loads(path_loads)
    return manager, moving.number


def test_a_slice_that_loses_its_island_moves_by_loads() -> None:
    manager, number = two_slices(loads(ac=0.4, ad=0.3))
    manager.remove_island("b")
    assert manager.slice(number).island == "d"


def test_slices_that_all_lost_their_island_go_where_the_paths_out_are_loaded_least() -> None:
    manager = equal_islands(loads(bc=0.4, bd=0.4, cd=0.1))
    devices = manager.make_virtual_device_set("client")
    numbers = [devices.add_slice(2).number for _ in range(2)]
    manager.migrate("client", "a")
    manager.remove_island("a")
    assert [manager.slice(number).island for number in numbers] == ["c", "d"]


def test_a_slice_whose_host_leaves_moves_by_loads() -> None:
    manager, number = two_slices(loads(ac=0.4, ad=0.3))
    manager.vacate_host("b0")
    assert manager.slice(number).island == "d"


@pytest.mark.parametrize("is_suspended", [True, False])
def test_slices_that_are_resumed_or_migrated_are_placed_by_loads(is_suspended: bool) -> None:
    manager, number = two_slices(loads(ab=0.9, ac=0.4, ad=0.3))
    if is_suspended:
        manager.suspend("client")
        manager.resume("client")
    else:
        manager.migrate("client")
    assert [found.island for found in manager.slices("client")] == ["a", "d"]
    assert manager.slice(number).island == "d"


_SHARES = st.sampled_from((0.0, 0.1, 0.5, 2.0, inf))
_LOADS = st.fixed_dictionaries({"".join(pair): _SHARES for pair in combinations(NAMES, 2)})
_REQUESTS = st.lists(st.tuples(st.sampled_from("pq"), st.integers(1, 4), st.booleans()), min_size=1, max_size=12)


@given(_REQUESTS, _LOADS)
def test_loads_never_overrule_static_balance(
    requests: list[tuple[str, int, bool]], by_islands: dict[str, float]
) -> None:
    """Against the burdens that a slice would have on each island by itself."""
    manager = equal_islands(loads(**by_islands))
    for client, size, same_host in requests:
        constraints = Constraints(same_host=same_host)
        burdens = {}
        for island in NAMES:
            try:
                tried = manager.make_virtual_device_set(client).add_slice(size, island=island, constraints=constraints)
            except ResourceError:
                continue
            manager.remove_slice(tried.number)
            before = [manager.load(device) for device in tried.devices]
            burdens[island] = (
                max(before),
                sum(before),
                sum(manager.load(each.number) for each in manager.devices(island)),
            )
        if burdens:
            found = manager.make_virtual_device_set(client).add_slice(size, constraints=constraints)
            assert found.island is not None
            assert burdens[found.island] == min(burdens.values())


@given(_REQUESTS, st.sampled_from((0.0, None)))
def test_where_all_paths_are_idle_nothing_changes(requests: list[tuple[str, int, bool]], share: float | None) -> None:
    without = manager_of(*((name, 2, 2) for name in NAMES))
    idle = {} if share is None else {"".join(pair): share for pair in combinations(NAMES, 2)}
    known = equal_islands(loads(**idle))
    for manager in (without, known):
        for number, (client, size, same_host) in enumerate(requests):
            devices = manager.make_virtual_device_set(client)
            if size < 3 or not same_host:
                devices.add_slice(size, constraints=Constraints(same_host=same_host))
            if number == 5:
                manager.migrate(client)
        manager.remove_host("b0")
    for client in "pq":
        assert without.slices(client) == known.slices(client)
