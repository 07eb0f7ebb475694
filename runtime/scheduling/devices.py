"""Sets of devices, and the work that devices have been granted."""

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from runtime.scheduling.errors import InvalidGangError

_REMEMBERED_SETS = 4096


class DeviceSet:
    """The devices of a gang, in the forms that the scheduler computes with.

    Attributes:
        count: How many.
        mask: A bit per device: two sets overlap where the masks do.
        index: Selects the devices in an array by device number; a slice where their numbers follow each other.
        end: The largest number and one.
    """

    __slots__ = ("count", "end", "index", "mask")

    def __init__(self, devices: frozenset[int] | range) -> None:
        numbers = sorted(devices)
        if numbers[0] < 0:
            raise InvalidGangError(f"devices: must not be negative, not {numbers[0]}")
        self.count = len(numbers)
        self.end = numbers[-1] + 1
        is_run = self.end - numbers[0] == self.count
        self.index: slice | npt.NDArray[np.intp] = (
            slice(numbers[0], self.end) if is_run else np.array(numbers, dtype=np.intp)
        )
        bits = np.zeros(self.end, dtype=np.uint8)
        bits[self.index] = 1
        self.mask = int.from_bytes(np.packbits(bits, bitorder="little").tobytes(), "little")


device_set = lru_cache(maxsize=_REMEMBERED_SETS)(DeviceSet)
"""Return the set of some devices: programs ask for the same few sets over and over."""


class Backlog:
    """Work that devices were granted and have not completed.

    Costs are integer nanoseconds, so that a device that has completed everything is back at exactly 0.
    """

    def __init__(self, look_ahead_ns: int) -> None:
        self._look_ahead_ns = look_ahead_ns
        self._outstanding_ns = np.zeros(0, dtype=np.int64)
        self._free_since_s = np.zeros(0)

    def reach(self, devices: DeviceSet) -> None:
        """Make room for the numbers of these devices."""
        missing = devices.end - len(self._outstanding_ns)
        if missing > 0:
            missing = max(missing, len(self._outstanding_ns))
            self._outstanding_ns = np.append(self._outstanding_ns, np.zeros(missing, dtype=np.int64))
            self._free_since_s = np.append(self._free_since_s, np.full(missing, -np.inf))

    def has_room(self, devices: DeviceSet) -> bool:
        """Return whether every one of the devices has less outstanding than the look-ahead."""
        return bool(np.maximum.reduce(self._outstanding_ns[devices.index]) < self._look_ahead_ns)

    def grant(self, devices: DeviceSet, cost_ns: int) -> None:
        """Add work to each of the devices."""
        self._outstanding_ns[devices.index] += cost_ns

    def complete(self, devices: DeviceSet, cost_ns: int, granted_s: float, now_s: float) -> float:
        """Take work from each of the devices, and return for how long it occupied them, in seconds.

        It occupied them since it was granted, or since the last of them completed the gang before.
        """
        self._outstanding_ns[devices.index] -= cost_ns
        since_s = max(granted_s, float(np.maximum.reduce(self._free_since_s[devices.index])))
        self._free_since_s[devices.index] = now_s
        return max(0.0, now_s - since_s)

    def outstanding_s(self, device: int) -> float:
        """Return the work outstanding on a device, in seconds of cost."""
        return float(self._outstanding_ns[device]) * 1e-9 if device < len(self._outstanding_ns) else 0.0
