"""Managers of small islands, and what is on their devices."""

from runtime.resources.islands import NewDevice
from runtime.resources.manager import Manager
from runtime.resources.slices import VirtualSlice


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
