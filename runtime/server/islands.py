"""Islands of hosts, and the slices that clients have of them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from runtime.lowering.assign import Placement
from runtime.server.settings import IslandSettings


@dataclass(frozen=True)
class Slice:
    """Where a slice lies, and its devices by their numbers in the island."""

    placement: Placement
    gang: frozenset[int]


@dataclass(eq=False)
class _Device:
    host: int
    number: int
    in_island: int
    slices: int = 0


class Islands:
    """The devices of all islands. A slice gets those that the fewest slices have: the paper's static balance (4.1)."""

    def __init__(self, settings: Sequence[IslandSettings]) -> None:
        self.epoch = 0
        self.hosts: Mapping[int, tuple[str, int]] = dict(
            enumerate((each.name, each.devices_per_host) for each in settings for _ in range(each.hosts))
        )
        self._devices: dict[str, list[_Device]] = {each.name: [] for each in settings}
        self._numbers = count()
        self._slices: dict[str, list[list[_Device]]] = {}
        for host, (island, devices) in self.hosts.items():
            of_island = self._devices[island]
            first = len(of_island)
            of_island.extend(_Device(host, number, first + number) for number in range(devices))

    def add_slice(
        self, client: str, devices: int | None, shape: Sequence[int] | None, island: str | None
    ) -> tuple[int, Slice]:
        """Return the number of a new slice, and where it lies. Raises ValueError, which names what does not fit."""
        size = math.prod(shape) if shape is not None else devices
        if size is None or size < 1:
            raise ValueError(f"devices: expected at least one, got {size}")
        if island is not None and island not in self._devices:
            raise ValueError(f"island: expected one of {', '.join(self._devices)}, got {island!r}")
        fitting = {
            name: sorted(of_island, key=lambda device: device.slices)[:size]
            for name, of_island in self._devices.items()
            if island in (None, name) and size <= len(of_island)
        }
        if not fitting:
            most = max(len(each) for name, each in self._devices.items() if island in (None, name))
            raise ValueError(f"devices: {size} asked for, and {island or 'the largest island'} has {most}")
        name, chosen = min(fitting.items(), key=lambda item: sum(device.slices for device in item[1]))
        chosen.sort(key=lambda device: device.in_island)
        for device in chosen:
            device.slices += 1
        self._slices.setdefault(client, []).append(chosen)
        placement = Placement(name, tuple(device.host for device in chosen), tuple(device.number for device in chosen))
        return next(self._numbers), Slice(placement, frozenset(device.in_island for device in chosen))

    def drop_client(self, client: str) -> None:
        """Take back the slices of a client."""
        for chosen in self._slices.pop(client, ()):
            for device in chosen:
                device.slices -= 1
