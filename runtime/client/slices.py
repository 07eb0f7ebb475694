"""Virtual devices: a client asks for slices of an island, and never learns which devices they are."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runtime.client.session import Runtime


@dataclass(frozen=True, eq=False)
class VirtualSlice:
    """Virtual devices of one island, on which functions can be placed (``pmap``)."""

    runtime: "Runtime"
    number: int
    size: int
    island: str
    shape: tuple[int, ...] | None


class VirtualDeviceSet:
    """Slices of a client that share no physical device with each other; those of other sets may."""

    def __init__(self, runtime: "Runtime", number: int) -> None:
        self._runtime = runtime
        self._number = number

    def add_slice(
        self, devices: int | None = None, *, shape: Sequence[int] | None = None, island: str | None = None
    ) -> VirtualSlice:
        """Return a new slice: so many devices, or a mesh of a ``shape``, of any island or of the one named.

        Raises:
            RefusedError: No island has them; the message names what does not fit.
        """
        if (devices is None) == (shape is None):
            raise ValueError("expected either devices or shape")
        return self._runtime.add_slice(self._number, devices, shape, island)
