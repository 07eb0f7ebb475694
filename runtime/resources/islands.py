"""Islands of hosts of devices: what is there, and what of it is in use."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from runtime.resources.errors import InvalidResourceError, UnknownResourceError


@dataclass(frozen=True, slots=True)
class NewDevice:
    """A device that joins.

    Attributes:
        kind: What it is, such as ``"timer"``, ``"core"`` or ``"gpu"``.
        memory_bytes: What it can hold.
        position: Its place in the mesh of its island; None for the first free one, row by row.
    """

    kind: str
    memory_bytes: int
    position: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Device:
    """A physical device.

    Attributes:
        number: Unique over all islands, and never given again.
        host: The host that drives it.
        island: The island whose private interconnect it is on.
        kind: What it is.
        memory_bytes: What it can hold.
        position: Its place in the mesh; empty where the island has none.
    """

    number: int
    host: str
    island: str
    kind: str
    memory_bytes: int
    position: tuple[int, ...]


class Island:
    """Devices on one private interconnect.

    Attributes:
        name: Unique.
        mesh: The shape of the interconnect, such as (8, 4); None where it has none.
        devices: By number, in order.
    """

    def __init__(self, name: str, mesh: tuple[int, ...] | None) -> None:
        if mesh is not None and (not mesh or min(mesh) < 1):
            raise InvalidResourceError(f"island {name!r}: mesh: every side must be positive, not {mesh}")
        self.name = name
        self.mesh = mesh
        self.devices: dict[int, Device] = {}

    def positions_for(self, devices: Sequence[NewDevice]) -> list[tuple[int, ...]]:
        """Return where devices that join stand in the mesh.

        Raises:
            InvalidResourceError: A position is outside, or occupied; or the mesh is full.
        """
        if self.mesh is None:
            if any(device.position is not None for device in devices):
                raise InvalidResourceError(f"island {self.name!r}: has no mesh, so no device has a position")
            return [()] * len(devices)
        occupied = {device.position for device in self.devices.values()}
        for position in [device.position for device in devices if device.position is not None]:
            is_inside = len(position) == len(self.mesh) and all(
                0 <= at < side for at, side in zip(position, self.mesh, strict=True)
            )
            if not is_inside or position in occupied:
                what = "is occupied" if is_inside else f"is outside of the mesh {self.mesh}"
                raise InvalidResourceError(f"island {self.name!r}: position {position}: {what}")
            occupied.add(position)
        if len(occupied) + sum(device.position is None for device in devices) > prod(self.mesh):
            raise InvalidResourceError(f"island {self.name!r}: its mesh {self.mesh} has no place for so many devices")
        free = (position for position in product(*map(range, self.mesh)) if position not in occupied)
        return [next(free) if device.position is None else device.position for device in devices]


class Inventory:
    """All islands and hosts, and what virtual devices use of each physical one.

    Attributes:
        islands: By name.
        hosts: By name, the devices of the host in order.
        devices: By number.
        leaving: Hosts that are still there, but whose devices are given to nobody any more.
        loads: By device, how many virtual devices it stands for.
        reserved_bytes: By device, the memory that these have asked for.
    """

    def __init__(self) -> None:
        self.islands: dict[str, Island] = {}
        self.hosts: dict[str, list[Device]] = {}
        self.devices: dict[int, Device] = {}
        self.leaving: set[str] = set()
        self.loads: dict[int, int] = {}
        self.reserved_bytes: dict[int, int] = {}
        self._host_islands: dict[str, str] = {}
        self._next_number = 0

    def add_island(self, name: str, mesh: tuple[int, ...] | None) -> None:
        """Add an island without hosts."""
        if name in self.islands:
            raise InvalidResourceError(f"island {name!r}: is there already")
        self.islands[name] = Island(name, mesh)

    def remove_island(self, name: str) -> list[Device]:
        """Remove an island with its hosts, and return their devices."""
        island = self.island(name)
        left = [device for host in self.hosts_of(island.name) for device in self.remove_host(host)]
        del self.islands[name]
        return left

    def add_host(self, name: str, island: str, devices: Sequence[NewDevice]) -> list[Device]:
        """Add a host with its devices."""
        if name in self.hosts:
            raise InvalidResourceError(f"host {name!r}: is there already")
        joined = self._join(name, self.island(island), devices)
        self.hosts[name] = joined.copy()
        self._host_islands[name] = island
        return joined

    def remove_host(self, name: str) -> list[Device]:
        """Remove a host, and return its devices."""
        left = self.remove_devices([device.number for device in self.host(name)])
        del self.hosts[name]
        del self._host_islands[name]
        self.leaving.discard(name)
        return left

    def add_devices(self, host: str, devices: Sequence[NewDevice]) -> list[Device]:
        """Add devices to a host."""
        self.host(host)
        joined = self._join(host, self.islands[self._host_islands[host]], devices)
        self.hosts[host] += joined
        return joined

    def remove_devices(self, numbers: Iterable[int]) -> list[Device]:
        """Remove devices, and return them."""
        left = [self.device(number) for number in dict.fromkeys(numbers)]
        for device in left:
            del self.devices[device.number]
            del self.islands[device.island].devices[device.number]
            self.hosts[device.host].remove(device)
            del self.loads[device.number]
            del self.reserved_bytes[device.number]
        return left

    def is_given(self, number: int) -> bool:
        """Return whether a device is there, and its host is not leaving."""
        return number in self.devices and self.devices[number].host not in self.leaving

    def use(self, numbers: Iterable[int], count: int, memory_bytes: int) -> None:
        """Add to what virtual devices use of physical ones, or take away; skip devices that left."""
        for number in numbers:
            if number in self.devices:
                self.loads[number] += count
                self.reserved_bytes[number] += memory_bytes

    def island(self, name: str) -> Island:
        """Return an island by name."""
        if name not in self.islands:
            raise UnknownResourceError(f"island {name!r}: is not there")
        return self.islands[name]

    def host(self, name: str) -> list[Device]:
        """Return the devices of a host by name."""
        if name not in self.hosts:
            raise UnknownResourceError(f"host {name!r}: is not there")
        return self.hosts[name]

    def device(self, number: int) -> Device:
        """Return a device by number."""
        if number not in self.devices:
            raise UnknownResourceError(f"device {number}: is not there")
        return self.devices[number]

    def hosts_of(self, island: str) -> list[str]:
        """Return the hosts of an island, in the order in which they joined."""
        return [host for host, name in self._host_islands.items() if name == island]

    def _join(self, host: str, island: Island, devices: Sequence[NewDevice]) -> list[Device]:
        for device in devices:
            if device.memory_bytes < 0:
                raise InvalidResourceError(
                    f"host {host!r}: memory_bytes: must not be negative, not {device.memory_bytes}"
                )
        joined = [
            Device(number, host, island.name, device.kind, device.memory_bytes, position)
            for number, (device, position) in enumerate(
                zip(devices, island.positions_for(devices), strict=True), self._next_number
            )
        ]
        self._next_number += len(joined)
        for new in joined:
            self.devices[new.number] = island.devices[new.number] = new
            self.loads[new.number] = self.reserved_bytes[new.number] = 0
        return joined
