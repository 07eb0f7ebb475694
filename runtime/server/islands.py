"""The islands of a server: the resource manager's slices, as lowering and the schedulers see them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from runtime.lowering.assign import Placement
from runtime.resources.islands import NewDevice
from runtime.resources.manager import Manager, VirtualDeviceSet
from runtime.resources.slices import VirtualSlice
from runtime.server.settings import IslandSettings
from runtime.store.buffers import HOST

_DEVICE_KIND = "core"


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
        self.hosts: Mapping[int, IslandSettings] = dict(enumerate(each for each in settings for _ in range(each.hosts)))
        self._manager = Manager()
        self._sets: dict[tuple[str, int], VirtualDeviceSet] = {}
        self._places: dict[int, tuple[int, int]] = {}
        for each in settings:
            mesh = tuple(each.mesh) if each.mesh else None
            if mesh is not None and math.prod(mesh) < each.hosts * each.devices_per_host:
                raise ValueError(f"island {each.name}: its mesh has fewer places than it has devices")
            self._manager.add_island(each.name, mesh)
        for number, island in self.hosts.items():
            devices = [NewDevice(_DEVICE_KIND, island.device_memory_bytes)] * island.devices_per_host
            for index, device in enumerate(self._manager.add_host(str(number), island.name, devices).joined):
                self._places[device.number] = (number, index)

    @property
    def epoch(self) -> int:
        """The resource manager's epoch: what was lowered in an earlier one may be elsewhere now."""
        return self._manager.epoch

    def add_slice(
        self, client: str, device_set: int, devices: int | None, shape: tuple[int, ...] | None, island: str | None
    ) -> Slice:
        """Return a new slice. Raises ValueError, which names what does not fit."""
        found = self._sets.get((client, device_set))
        if found is None:
            found = self._sets[client, device_set] = self._manager.make_virtual_device_set(client)
        return self._slice(found.add_slice(devices, shape=shape, island=island))

    def remove_host(self, host: int) -> tuple[Sequence[Slice], Sequence[VirtualSlice]]:
        """Remove a host; return the slices that have other devices now, and those that have none any more."""
        change = self._manager.remove_host(str(host))
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
