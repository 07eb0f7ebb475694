"""The mapping of virtual slices to physical devices."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from runtime.resources.errors import DoesNotFitError
from runtime.resources.islands import Inventory
from runtime.resources.path_loads import PathLoads
from runtime.resources.placement import place
from runtime.resources.slices import Change, SliceRequest, VirtualSlice


class Mapping:
    """All slices, and what they use of the physical devices. Whatever moves a slice begins a new epoch.

    Attributes:
        inventory: The physical devices.
        slices: By number, as mapped now.
        epoch: The current epoch.
        path_loads: How loaded the network is between islands. What is mapped stays where it is when they change.
    """

    def __init__(self) -> None:
        self.inventory = Inventory()
        self.slices: dict[int, VirtualSlice] = {}
        self.epoch = 0
        self.path_loads = PathLoads()

    def add(self, empty: VirtualSlice) -> VirtualSlice:
        """Map a new slice.

        Raises:
            DoesNotFitError: No island can hold it.
        """
        island, devices = self._placed(empty, empty.request)
        return self._set(replace(empty, island=island, devices=devices, epoch=self.epoch))

    def remove(self, number: int) -> None:
        """Forget a slice."""
        self._unuse(self.slices.pop(number))

    def unmap(self, slices: Iterable[VirtualSlice]) -> Change:
        """Take the devices of slices away."""
        mapped = [found for found in slices if found.is_mapped]
        self.epoch += bool(mapped)
        return Change(self.epoch, unmapped=tuple(map(self._unset, mapped)))

    def remap(self, slices: Sequence[VirtualSlice]) -> Change:
        """Map slices that lack devices anew as far as they fit; without a shape they keep the devices they have."""
        epoch = self.epoch + 1
        remapped: list[VirtualSlice] = []
        unmapped: list[VirtualSlice] = []
        for found in slices:
            island, devices = self._repaired(found)
            self._unuse(self.slices[found.number])
            if devices == found.devices:
                self._set(found)
            else:
                changed = self._set(replace(found, island=island, devices=devices, epoch=epoch))
                (remapped if devices else unmapped).append(changed)
        self.epoch += bool(remapped or unmapped)
        return Change(self.epoch, tuple(remapped), tuple(unmapped))

    def replace_all(self, slices: Sequence[VirtualSlice], island: str | None) -> Change:
        """Map slices anew from the beginning, all of them or none, on one island if it is given.

        Raises:
            DoesNotFitError: One fits nowhere; all are as they were.
        """
        for found in slices:
            self._unset(found)
        epoch = self.epoch + 1
        try:
            for found in slices:
                request = found.request if island is None else replace(found.request, island=island)
                at, devices = self._placed(found, request)
                is_same = devices == found.devices
                self._set(found if is_same else replace(found, island=at, devices=devices, epoch=epoch))
        except DoesNotFitError:
            self.restore(slices, self.epoch)
            raise
        remapped = tuple(self.slices[found.number] for found in slices if self.slices[found.number] != found)
        self.epoch += bool(remapped)
        return Change(self.epoch, remapped)

    def restore(self, slices: Iterable[VirtualSlice], epoch: int) -> None:
        """Map slices as they were in an epoch, after which nothing else has changed."""
        for found in slices:
            self._unuse(self.slices[found.number])
            self._set(found)
        self.epoch = epoch

    def _repaired(self, found: VirtualSlice) -> tuple[str | None, tuple[int, ...]]:
        """Return where a slice goes that lacks some of its devices or all; nowhere where it does not fit."""
        kept = [number for number in found.devices if self.inventory.is_given(number)]
        if kept and not found.request.is_whole:
            try:
                island, devices = self._placed(found, found.request, kept)
            except DoesNotFitError:
                pass
            else:
                spares = iter(devices)
                return island, tuple(
                    number if self.inventory.is_given(number) else next(spares) for number in found.devices
                )
        self._unset(found)
        try:
            return self._placed(found, found.request)
        except DoesNotFitError:
            return None, ()

    def _placed(
        self, wanted: VirtualSlice, request: SliceRequest, kept: Sequence[int] = ()
    ) -> tuple[str, tuple[int, ...]]:
        """Return where a slice goes beside all others. Raises DoesNotFitError."""
        taken, avoided = self._taken(wanted), self._avoided(wanted)
        return place(request, self.inventory, taken, avoided, kept, self._path_load(wanted))

    def _path_load(self, wanted: VirtualSlice) -> Callable[[str], float]:
        """Return by island how loaded its paths are to those where the client has other slices, or else to all."""
        others = {
            found.island
            for found in self.slices.values()
            if found.client == wanted.client and found.number != wanted.number
        }
        islands = [name for name in self.inventory.islands if name in others] or list(self.inventory.islands)
        return lambda island: self.path_loads.to(islands, island)

    def _taken(self, wanted: VirtualSlice) -> set[int]:
        """Return the devices of the other slices of a set."""
        return {
            device
            for found in self.slices.values()
            if found.device_set == wanted.device_set and found.number != wanted.number
            for device in found.devices
        }

    def _avoided(self, wanted: VirtualSlice) -> set[str]:
        """Return the hosts of the slices that are to be apart from a slice, or from which it is to be."""
        apart_from = wanted.request.constraints.apart_from
        return {
            self.inventory.devices[device].host
            for found in self.slices.values()
            if found.number in apart_from or wanted.number in found.request.constraints.apart_from
            for device in found.devices
            if device in self.inventory.devices
        }

    def _set(self, mapped: VirtualSlice) -> VirtualSlice:
        self.slices[mapped.number] = mapped
        self.inventory.use(mapped.devices, 1, mapped.request.constraints.memory_bytes)
        return mapped

    def _unset(self, mapped: VirtualSlice) -> VirtualSlice:
        self._unuse(mapped)
        return self._set(replace(mapped, island=None, devices=(), epoch=self.epoch))

    def _unuse(self, mapped: VirtualSlice) -> None:
        self.inventory.use(mapped.devices, -1, -mapped.request.constraints.memory_bytes)
