"""Virtual slices: what clients ask for, and which physical devices they have got."""

from dataclasses import dataclass

from runtime.resources.errors import InvalidResourceError
from runtime.resources.islands import Device


@dataclass(frozen=True, slots=True)
class Constraints:
    """What the devices of a slice must be. They hold wherever the slice is mapped to.

    Attributes:
        kind: Their kind; None for any.
        memory_bytes: What each virtual device may fill. It is reserved: the sum over the virtual devices of a physical
            one never exceeds its memory.
        hosts: The hosts that may be used; None for all.
        same_host: Whether all must be of one host.
        contiguous: Whether they must follow each other in their island, or be a block of its mesh if it has one.
        apart_from: Slices of the same client, by number, with which it shares no host.
    """

    kind: str | None = None
    memory_bytes: int = 0
    hosts: tuple[str, ...] | None = None
    same_host: bool = False
    contiguous: bool = False
    apart_from: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.memory_bytes < 0:
            raise InvalidResourceError(f"memory_bytes: must not be negative, not {self.memory_bytes}")

    def objection(self, device: Device, reserved_bytes: int) -> str | None:
        """Say why a device may not be used, with so much of its memory reserved; None where it may."""
        if self.kind not in (None, device.kind):
            return f"not of kind {self.kind!r}"
        if self.hosts is not None and device.host not in self.hosts:
            return f"not of the hosts {', '.join(self.hosts)}"
        if self.memory_bytes > device.memory_bytes - reserved_bytes:
            return f"with less than {self.memory_bytes:,} bytes left"
        return None


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

    @property
    def is_whole(self) -> bool:
        """Whether no device can be replaced alone: which ones go together matters."""
        return self.is_mesh or self.constraints.same_host or self.constraints.contiguous

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
