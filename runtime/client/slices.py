"""Virtual devices: a client asks for slices of an island, and never learns which devices they are."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from runtime.lowering.assign import host_cpus_of
from runtime.resources.slices import Constraints

if TYPE_CHECKING:
    from runtime.client.session import Runtime

_NONE = Constraints()


@dataclass(frozen=True, eq=False)
class VirtualSlice:
    """Virtual devices of one island, on which functions can be placed (``pmap``)."""

    runtime: "Runtime"
    number: int
    size: int
    island: str
    shape: tuple[int, ...] | None

    @property
    def host_cpus(self) -> "VirtualSlice":
        """The CPUs of the hosts of these devices, a shard for each device, whatever hosts these are on.

        What runs there does not occupy the devices. All shards of a host share one thread, so collective functions are
        refused.
        """
        return VirtualSlice(self.runtime, host_cpus_of(self.number), self.size, self.island, self.shape)


class VirtualDeviceSet:
    """Slices of a client that share no physical device with each other; those of other sets may."""

    def __init__(self, runtime: "Runtime", number: int) -> None:
        self._runtime = runtime
        self._number = number

    def add_slice(
        self,
        devices: int | None = None,
        *,
        shape: Sequence[int] | None = None,
        island: str | None = None,
        constraints: Constraints = _NONE,
    ) -> VirtualSlice:
        """Return a new slice: so many devices, or a mesh of a ``shape``, of any island or of the one named.

        The constraints hold wherever the slice is moved to later.

        Raises:
            RefusedError: No island has them; the message names what does not fit.
        """
        if (devices is None) == (shape is None):
            raise ValueError("expected either devices or shape")
        return self._runtime.add_slice(self._number, devices, shape, island, constraints)
