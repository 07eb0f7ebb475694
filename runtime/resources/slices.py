"""Virtual slices: what clients ask for, and which physical devices they have got."""

from dataclasses import dataclass

from runtime.resources.errors import InvalidResourceError
from runtime.resources.islands import Device


@dataclass(frozen=True, slots=True)
class Constraints:
    """What the devices of a slice must be.

    Attributes:
        kind: Their kind; None for any.
        memory_bytes: What each virtual device may fill. It is reserved: the sum over the virtual devices of a physical
            one never exceeds its memory.
        hosts: The hosts that may be used; None for all.
    """

    kind: str | None = None
    memory_bytes: int = 0
    hosts: frozenset[str] | None = None

    def __post_init__(self) -> None:
        if self.memory_bytes < 0:
            raise InvalidResourceError(f"memory_bytes: must not be negative, not {self.memory_bytes}")

    def admits(self, device: Device, reserved_bytes: int) -> bool:
        """Return whether a device, with so much of its memory reserved, may be used."""
        return (
            self.kind in (None, device.kind)
            and (self.hosts is None or device.host in self.hosts)
            and self.memory_bytes <= device.memory_bytes - reserved_bytes
        )


@dataclass(frozen=True, slots=True)
class SliceRequest:
    """What a client asks for.

    Attributes:
        shape: The sides of the slice; one side where the client asked for a number of devices.
        is_mesh: Whether the devices must form a mesh of this shape; else any devices of one island do.
        island: The island; None for any.
        constraints: What the devices must be.
    """

    shape: tuple[int, ...]
    is_mesh: bool
    island: str | None = None
    constraints: Constraints = Constraints()

    def __post_init__(self) -> None:
        if not self.shape or min(self.shape) < 1:
            raise InvalidResourceError(f"slice: every side must be positive, not {self.shape}")

    @property
    def num_devices(self) -> int:
        """How many devices the slice has."""
        count = 1
        for side in self.shape:
            count *= side
        return count

    def __str__(self) -> str:
        if self.is_mesh:
            return "slice of shape " + "x".join(map(str, self.shape))
        return f"slice of {self.num_devices} devices"


@dataclass(frozen=True, slots=True)
class VirtualSlice:
    """A slice of a client, as mapped since an epoch.

    Attributes:
        number: Unique over all clients, the same whatever the mapping.
        client: Whose it is.
        device_set: The set of virtual devices to which it belongs.
        request: What the client asked for.
        island: Where it is; None while it has no devices.
        devices: By virtual device, row by row over the shape, the physical one; empty while the client is suspended or
            the slice fits nowhere.
        epoch: When the mapping last changed. What was lowered for a slice holds as long as this stays.
    """

    number: int
    client: str
    device_set: int
    request: SliceRequest
    island: str | None
    devices: tuple[int, ...]
    epoch: int

    @property
    def is_mapped(self) -> bool:
        """Whether it has devices."""
        return bool(self.devices)


@dataclass(frozen=True, slots=True)
class Change:
    """What an operation of the resource manager changed.

    Attributes:
        epoch: The epoch from now on.
        remapped: Slices that have other devices than before.
        unmapped: Slices that have lost their devices.
        joined: Physical devices that are new.
        left: Physical devices that are gone.
    """

    epoch: int
    remapped: tuple[VirtualSlice, ...] = ()
    unmapped: tuple[VirtualSlice, ...] = ()
    joined: tuple[Device, ...] = ()
    left: tuple[Device, ...] = ()
