"""The resource manager: it maps virtual devices to physical ones, and maps them anew when those change."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from runtime.resources.errors import DoesNotFitError, InvalidResourceError, SuspendedError, UnknownResourceError
from runtime.resources.islands import Device, NewDevice
from runtime.resources.mapping import Mapping
from runtime.resources.path_loads import PathLoads
from runtime.resources.slices import Change, Constraints, SliceRequest, VirtualSlice


class VirtualDeviceSet:
    """Virtual devices of a client, added slice by slice; no two of them stand for the same physical device.

    Attributes:
        client: Whose they are.
        number: Unique over all clients.
    """

    def __init__(self, manager: "Manager", client: str, number: int) -> None:
        self.client = client
        self.number = number
        self._manager = manager

    def add_slice(
        self,
        devices: int | None = None,
        *,
        shape: tuple[int, ...] | None = None,
        island: str | None = None,
        constraints: Constraints | None = None,
    ) -> VirtualSlice:
        """Add a slice of so many devices, or of a mesh shape.

        Raises:
            InvalidResourceError: Neither or both of ``devices`` and ``shape`` are given, or one is not positive.
            DoesNotFitError: No island can hold it beside the other slices of this set.
            UnknownResourceError: The island or a host of the constraints is not there.
            SuspendedError: The client is suspended.
        """
        if (devices is None) == (shape is None):
            raise InvalidResourceError("slice: give either devices or shape")
        sides = (devices,) if devices is not None else shape or ()
        request = SliceRequest(sides, shape is not None, island, constraints or Constraints())
        return self._manager.add_slice(self, request)

    @property
    def slices(self) -> list[VirtualSlice]:
        """The slices of the set, as mapped now."""
        return [found for found in self._manager.slices(self.client) if found.device_set == self.number]


class Manager:
    """All islands, and the slices of all clients.

    Virtual devices of different sets share physical ones; static balance spreads them evenly. Among islands that are
    equal by it, a slice goes where the paths to the client's other slices are loaded least, or the paths to all islands
    where it has no others. What changes a mapping begins a new epoch.
    """

    def __init__(self) -> None:
        self._mapping = Mapping()
        self._inventory = self._mapping.inventory
        self._suspended: set[str] = set()
        self._next_set = 0
        self._next_slice = 0

    @property
    def epoch(self) -> int:
        """The current epoch."""
        return self._mapping.epoch

    def set_path_loads(self, loads: PathLoads) -> None:
        """Say how loaded the network is between islands, for what is mapped from now on."""
        self._mapping.path_loads = loads

    def add_island(self, name: str, mesh: tuple[int, ...] | None = None) -> None:
        """Add an island without hosts.

        Raises:
            InvalidResourceError: There is one of this name, or a side of the mesh is not positive.
        """
        self._inventory.add_island(name, mesh)

    def remove_island(self, name: str) -> Change:
        """Remove an island with its hosts.

        Raises:
            UnknownResourceError: It is not there.
        """
        return self._lose(self._inventory.remove_island(name))

    def add_host(self, name: str, island: str, devices: Sequence[NewDevice]) -> Change:
        """Add a host with its devices, and map slices that fitted nowhere.

        Raises:
            UnknownResourceError: The island is not there.
            InvalidResourceError: There is a host of this name, or a device does not fit into the mesh.
        """
        return self._gain(self._inventory.add_host(name, island, devices))

    def remove_host(self, name: str) -> Change:
        """Remove a host, and map the slices that used its devices anew.

        Raises:
            UnknownResourceError: It is not there.
        """
        return self._lose(self._inventory.remove_host(name))

    def vacate_host(self, name: str, check: Callable[[Change], None] = lambda _: None) -> Change:
        """Map the slices that use a host to others; from now on nobody gets its devices, and it may be removed.

        ``check`` sees the change. What it raises undoes it.

        Raises:
            UnknownResourceError: It is not there.
            InvalidResourceError: It is leaving already.
            DoesNotFitError: A slice fits nowhere else; all are as they were.
        """
        numbers = {device.number for device in self._inventory.host(name)}
        if name in self._inventory.leaving:
            raise InvalidResourceError(f"host {name!r}: is leaving already")
        hit = [found for found in self._mapping.slices.values() if not numbers.isdisjoint(found.devices)]
        epoch = self.epoch
        self._inventory.leaving.add(name)
        change = self._mapping.remap(hit)
        try:
            for lost in change.unmapped:
                raise DoesNotFitError(
                    f"host {name!r}: cannot leave: slice {lost.number} of client {lost.client!r}, {lost.request}, "
                    "fits nowhere else"
                )
            check(change)
        except ValueError:
            self._mapping.restore(hit, epoch)
            self._inventory.leaving.remove(name)
            raise
        return change

    def add_devices(self, host: str, devices: Sequence[NewDevice]) -> Change:
        """Add devices to a host, and map slices that fitted nowhere.

        Raises:
            UnknownResourceError: The host is not there.
            InvalidResourceError: A device does not fit into the mesh.
        """
        return self._gain(self._inventory.add_devices(host, devices))

    def remove_devices(self, numbers: Collection[int]) -> Change:
        """Remove devices, and map the slices that used them anew.

        Raises:
            UnknownResourceError: One is not there.
        """
        return self._lose(self._inventory.remove_devices(numbers))

    def device(self, number: int) -> Device:
        """Return a physical device.

        Raises:
            UnknownResourceError: It is not there.
        """
        return self._inventory.device(number)

    def devices(self, island: str | None = None) -> list[Device]:
        """Return the physical devices, of one island or of all.

        Raises:
            UnknownResourceError: The island is not there.
        """
        found = self._inventory.devices if island is None else self._inventory.island(island).devices
        return list(found.values())

    def is_given(self, device: int) -> bool:
        """Return whether a device is there and slices may get it: its host is not leaving."""
        return self._inventory.is_given(device)

    def load(self, device: int) -> int:
        """Return for how many virtual devices a physical one stands.

        Raises:
            UnknownResourceError: It is not there.
        """
        return self._inventory.loads[self._inventory.device(device).number]

    def make_virtual_device_set(self, client: str) -> VirtualDeviceSet:
        """Return a new, empty set of virtual devices."""
        self._next_set += 1
        return VirtualDeviceSet(self, client, self._next_set - 1)

    def add_slice(self, device_set: VirtualDeviceSet, request: SliceRequest) -> VirtualSlice:
        """Map a new slice; ``VirtualDeviceSet.add_slice`` calls it."""
        if device_set.client in self._suspended:
            raise SuspendedError(f"client {device_set.client!r}: is suspended")
        if request.island is not None:
            self._inventory.island(request.island)
        for host in request.constraints.hosts or ():
            self._inventory.host(host)
        for number in request.constraints.apart_from:
            if number not in self._mapping.slices or self.slice(number).client != device_set.client:
                raise UnknownResourceError(f"slice {number}: is not a slice of client {device_set.client!r}")
        added = self._mapping.add(
            VirtualSlice(self._next_slice, device_set.client, device_set.number, request, None, (), self.epoch)
        )
        self._next_slice += 1
        return added

    def slice(self, number: int) -> VirtualSlice:
        """Return a slice as it is mapped now.

        Raises:
            UnknownResourceError: It is not there.
        """
        if number not in self._mapping.slices:
            raise UnknownResourceError(f"slice {number}: is not there")
        return self._mapping.slices[number]

    def slices(self, client: str) -> list[VirtualSlice]:
        """Return the slices of a client as they are mapped now."""
        return [found for found in self._mapping.slices.values() if found.client == client]

    def remove_slice(self, number: int) -> None:
        """Give a slice back.

        Raises:
            UnknownResourceError: It is not there.
        """
        self._mapping.remove(self.slice(number).number)

    def remove_client(self, client: str) -> None:
        """Give all slices of a client back."""
        for found in self.slices(client):
            self.remove_slice(found.number)
        self._suspended.discard(client)

    def suspend(self, client: str) -> Change:
        """Reclaim the devices of a client; its slices stay, without devices.

        Raises:
            SuspendedError: It is suspended already.
        """
        if client in self._suspended:
            raise SuspendedError(f"client {client!r}: is suspended")
        self._suspended.add(client)
        return self._mapping.unmap(self.slices(client))

    def resume(self, client: str) -> Change:
        """Give a suspended client devices again, perhaps others.

        Raises:
            SuspendedError: It is not suspended.
            DoesNotFitError: Not all of its slices fit; it stays suspended.
        """
        if client not in self._suspended:
            raise SuspendedError(f"client {client!r}: is not suspended")
        change = self._mapping.replace_all(self.slices(client), None)
        self._suspended.remove(client)
        return change

    def migrate(self, client: str, island: str | None = None) -> Change:
        """Map the slices of a client anew, to one island or by static balance.

        Raises:
            SuspendedError: The client is suspended.
            DoesNotFitError: Not all of its slices fit, or one is bound to another island; all stay where they are.
            UnknownResourceError: The island is not there.
        """
        if client in self._suspended:
            raise SuspendedError(f"client {client!r}: is suspended")
        if island is not None:
            self._inventory.island(island)
            for found in self.slices(client):
                if found.request.island not in (None, island):
                    raise DoesNotFitError(
                        f"slice {found.number}: is bound to island {found.request.island!r}, not {island!r}"
                    )
        return self._mapping.replace_all(self.slices(client), island)

    def _gain(self, joined: list[Device]) -> Change:
        waiting = [
            found
            for found in self._mapping.slices.values()
            if not found.is_mapped and found.client not in self._suspended
        ]
        return replace(self._mapping.remap(waiting), joined=tuple(joined))

    def _lose(self, left: list[Device]) -> Change:
        gone = {device.number for device in left}
        hit = [found for found in self._mapping.slices.values() if not gone.isdisjoint(found.devices)]
        return replace(self._mapping.remap(hit), left=tuple(left))
