"""Arrays in the runtime, as clients see them: futures behind opaque handles."""

from contextlib import suppress
from typing import Any, Protocol

import numpy as np

from runtime.arrays import ArraySpec, Sharding
from runtime.client.arrivals import Arrival
from runtime.client.habits import Asked, Habit
from runtime.ray_objects import reference_to


class Fetcher(Protocol):
    """What an array needs of its client."""

    def fetch(self, array: "Array", data: bool, timeout_s: float | None) -> "np.ndarray[Any, Any] | None":
        """Wait for an array, and return its data if they are asked for, or have come anyway."""

    def release(self, handle: int) -> None:
        """Note that nobody needs an array any more. Any thread may call this, at any time."""


class Array:
    """An array in the runtime. It may not be computed yet: what asks for its data waits.

    Pass it to mapped functions and programs, which take it where it lies; ``numpy()`` brings it here. Whoever asks for
    what failed gets the error of the function that raised, with the traceback of the user's code. When the last
    reference goes, the runtime forgets the array.

    ``known_spec`` is what is known of it by now, ``arrival`` its way here where it was asked for beforehand.
    """

    def __init__(
        self,
        client: Fetcher,
        handle: int,
        spec: ArraySpec,
        sharding: Sharding,
        habit: Habit | None = None,
        arrival: Arrival | None = None,
    ) -> None:
        self.client = client
        self.handle = handle
        self.known_spec = spec
        self.sharding = sharding
        self.arrival = arrival
        self._habit = habit or Habit()
        self._is_asked = False
        self._data: np.ndarray[Any, Any] | None = None

    @property
    def spec(self) -> ArraySpec:
        """What it is. Where no bound of its rows is known, this waits until it is computed, and raises as ``wait``."""
        if not self.known_spec.is_bounded:
            self.client.fetch(self, False, None)
        return self.known_spec

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of its axes; of the rows of a ragged array the most that there may be. It waits as ``spec``."""
        return self.spec.shape

    @property
    def dtype(self) -> "np.dtype[Any]":
        """Its dtype."""
        return np.dtype(self.known_spec.dtype)

    def numpy(self, timeout_s: float | None = None) -> "np.ndarray[Any, Any]":
        """Return its data, once they are computed.

        Raises:
            RuntimeFailure: There are none, and there will not be; the class of the error says why.
            TimeoutError: They are not there yet.
        """
        self._ask(Asked.DATA)
        if self._data is None:
            self._keep(self.client.fetch(self, True, timeout_s))
            assert self._data is not None
        return self._data

    def wait(self, timeout_s: float | None = None) -> "Array":
        """Wait until it is computed, without bringing it here; return the array. Raises as ``numpy``."""
        self._ask(Asked.BEING_THERE)
        if self._data is None:
            self._keep(self.client.fetch(self, False, timeout_s))
        return self

    def object_ref(self, timeout_s: float | None = None) -> Any:
        """Return its data as an object of Ray, once they are computed: ``ray.get`` of the reference returns them.

        Raises as ``numpy``, and ValueError where this program is connected to no Ray cluster.
        """
        return reference_to(self.numpy(timeout_s))

    def _ask(self, asked: Asked) -> None:
        self._is_asked = True
        self._habit.last = asked

    def _keep(self, data: "np.ndarray[Any, Any] | None") -> None:
        if data is not None:
            data.flags.writeable = False
            self._data = data

    def item(self) -> Any:
        """Return the only element, as a number of Python. Raises as ``numpy``."""
        return self.numpy().item()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> "np.ndarray[Any, Any]":
        return np.array(self.numpy(), dtype=dtype, copy=copy)

    def __float__(self) -> float:
        return float(self.item())

    def __len__(self) -> int:
        if not self.known_spec.shape:
            raise TypeError("an array without axes has no length")
        return len(self.numpy()) if self.known_spec.is_ragged else self.known_spec.shape[0]

    def __repr__(self) -> str:
        return repr(self.numpy())

    def __del__(self) -> None:
        with suppress(AttributeError):  # made in part only, or at the end of the interpreter
            if not self._is_asked:
                self._habit.last = Asked.NOTHING
            self.client.release(self.handle)
