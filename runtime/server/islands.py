"""The islands of a server: the resource manager's slices, as lowering and the schedulers see them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count

from runtime.lowering.assign import Placement
from runtime.resources.islands import NewDevice
from runtime.resources.manager import Manager, VirtualDeviceSet
from runtime.resources.path_loads import PathLoads
from runtime.resources.slices import Constraints, VirtualSlice
from runtime.server.settings import IslandSettings
from runtime.store.buffers import HOST
from runtime.substrates.interface import NewHost


@dataclass(frozen=True)
class Slice:
    """Where a slice lies since an epoch, and its devices by number.

    ``host_cpus`` and ``host_gang`` are the same of the CPUs of its hosts, shard by shard. They have schedulers of their
    own (``cpus_of``), which know each host by its number.
    """

    number: int
    client: str
    placement: Placement
    gang: frozenset[int]
    host_cpus: Placement
    host_gang: frozenset[int]


class Islands:
    """Hosts by number, and the resource manager that knows them by name."""

    def __init__(self, settings: Sequence[IslandSettings]) -> None:
        self.hosts: dict[int, NewHost] = {}
        self._numbers = count()
        self._manager = Manager()
        self._sets: dict[tuple[str, int], VirtualDeviceSet] = {}
        self._places: dict[int, tuple[int, int]] = {}
        for each in settings:
            self._manager.add_island(each.name, each.mesh)
            for _ in range(each.hosts):
                self.add_host(self.admit_host(each.new_host()))

    @property
    def epoch(self) -> int:
        """The resource manager's epoch: what was lowered in an earlier one may be elsewhere now."""
        return self._manager.epoch

    def set_path_loads(self, loads: PathLoads) -> None:
        """Say how loaded the network is between islands, for slices that are mapped from now on."""
        self._manager.set_path_loads(loads)

    def add_slice(
        self,
        client: str,
        device_set: int,
        devices: int | None,
        shape: tuple[int, ...] | None,
        island: str | None,
        constraints: Constraints,
    ) -> Slice:
        """Return a new slice. Raises ValueError, which names what does not fit."""
        found = self._sets.get((client, device_set))
        if found is None:
            found = self._sets[client, device_set] = self._manager.make_virtual_device_set(client)
        return self._slice(found.add_slice(devices, shape=shape, island=island, constraints=constraints))

    def admit_host(self, host: NewHost) -> int:
        """Return the number of a host that is going to join. Raises ValueError, which names what is wrong."""
        self._manager.devices(host.island)  # it is there
        number = next(self._numbers)
        self.hosts[number] = host
        return number

    def add_host(self, number: int) -> Sequence[Slice]:
        """Add the devices of a host that was admitted; return the slices that fit only now. Raises ValueError."""
        host = self.hosts[number]
        devices = [NewDevice(host.kind, host.device_memory_bytes)] * host.devices
        change = self._manager.add_host(str(number), host.island, devices)
        for index, device in enumerate(change.joined):
            self._places[device.number] = (number, index)
        return tuple(map(self._slice, change.remapped))

    def vacate_host(self, number: int, check: Callable[[Sequence[Slice]], None]) -> Sequence[Slice]:
        """Give the devices of a host to nobody any more; return the slices that have moved.

        ``check`` sees them before, and may raise ValueError: then nothing has changed. Raises ValueError.
        """
        change = self._manager.vacate_host(str(number), lambda change: check(tuple(map(self._slice, change.remapped))))
        return tuple(map(self._slice, change.remapped))

    def spares(self, island: str) -> dict[tuple[int, int], tuple[bool, int]]:
        """Return by host and index of the devices that stay whether they are of another island, and their load."""
        given = [each for each in self._manager.devices() if self._manager.is_given(each.number)]
        return {self._places[each.number]: (each.island != island, self._manager.load(each.number)) for each in given}

    def remove_host(self, host: int) -> tuple[Sequence[Slice], Sequence[VirtualSlice]]:
        """Remove a host; return the slices that have other devices now, and those that have none any more."""
        change = self._manager.remove_host(str(host))
        del self.hosts[host]
        for device in change.left:
            del self._places[device.number]
        return tuple(map(self._slice, change.remapped)), change.unmapped

    def suspend(self, client: str) -> None:
        """Take the devices of a client away. Raises ValueError, which names what is wrong."""
        self._manager.suspend(client)

    def resume(self, client: str) -> Sequence[Slice]:
        """Give a suspended client devices again; return its slices. Raises ValueError, which names what is wrong."""
        return tuple(map(self._slice, self._manager.resume(client).remapped))

    def migrate(self, client: str, island: str | None) -> Sequence[Slice]:
        """Move the slices of a client; return those that moved. Raises ValueError, which names what is wrong."""
        return tuple(map(self._slice, self._manager.migrate(client, island).remapped))

    def drop_client(self, client: str) -> None:
        """Take back the slices of a client."""
        self._manager.remove_client(client)
        self._sets = {key: found for key, found in self._sets.items() if key[0] != client}

    def _slice(self, mapped: VirtualSlice) -> Slice:
        places = [self._places[device] for device in mapped.devices]
        assert mapped.island is not None
        hosts = tuple(host for host, _ in places)
        placement = Placement(mapped.island, hosts, tuple(index for _, index in places))
        host_cpus = Placement(cpus_of(mapped.island), hosts, (HOST,) * len(hosts))
        return Slice(mapped.number, mapped.client, placement, frozenset(mapped.devices), host_cpus, frozenset(hosts))


def cpus_of(island: str) -> str:
    """Return what the scheduler of the CPUs of an island's hosts is called: their time is not that of devices."""
    return f"CPUs of {island}"
