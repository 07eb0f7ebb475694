"""Sets of devices, and the work that devices have been granted."""

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from runtime.scheduling.errors import InvalidGangError

_REMEMBERED_SETS = 4096
LONGEST = 10
"""A gang of so many look-aheads may have one behind it. Longer ones would let others wait, and gain little."""


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

    A gang is **long** if it takes the look-ahead or more. Of these, ``_num_long`` are outstanding on each device, and
    the last one that was granted takes ``_long_ns``.
    """

    def __init__(self, look_ahead_ns: int) -> None:
        self._look_ahead_ns = look_ahead_ns
        self._outstanding_ns = np.zeros(0, dtype=np.int64)
        self._free_since_s = np.zeros(0)
        self._num_long = np.zeros(0, dtype=np.int64)
        self._long_ns = np.zeros(0, dtype=np.int64)
        self._long_gangs = 0

    def reach(self, devices: DeviceSet) -> None:
        """Make room for the numbers of these devices."""
        missing = devices.end - len(self._outstanding_ns)
        if missing > 0:
            missing = max(missing, len(self._outstanding_ns))
            zeros = np.zeros(missing, dtype=np.int64)
            self._outstanding_ns = np.append(self._outstanding_ns, zeros)
            self._num_long = np.append(self._num_long, zeros)
            self._long_ns = np.append(self._long_ns, zeros)
            self._free_since_s = np.append(self._free_since_s, np.full(missing, -np.inf))

    def has_room(self, devices: DeviceSet) -> bool:
        """Return whether every one of the devices has less outstanding than the look-ahead, or just one long gang."""
        outstanding_ns = self._outstanding_ns[devices.index]
        if np.maximum.reduce(outstanding_ns) < self._look_ahead_ns:
            return True
        if not self._long_gangs:
            return False
        is_alone = (self._num_long[devices.index] == 1) & (outstanding_ns == self._long_ns[devices.index])
        return bool(np.all(is_alone | (outstanding_ns < self._look_ahead_ns)))

    def grant(self, devices: DeviceSet, cost_ns: int) -> None:
        """Add work to each of the devices."""
        self._outstanding_ns[devices.index] += cost_ns
        if self._is_long(cost_ns):
            self._long_gangs += 1
            self._num_long[devices.index] += 1
            self._long_ns[devices.index] = cost_ns

    def complete(self, devices: DeviceSet, cost_ns: int, granted_s: float, now_s: float) -> float:
        """Take work from each of the devices, and return for how long it occupied them, in seconds.

        It occupied them since it was granted, or since the last of them completed the gang before.
        """
        self._outstanding_ns[devices.index] -= cost_ns
        if self._is_long(cost_ns):
            self._long_gangs -= 1
            self._num_long[devices.index] -= 1
        since_s = max(granted_s, float(np.maximum.reduce(self._free_since_s[devices.index])))
        self._free_since_s[devices.index] = now_s
        return max(0.0, now_s - since_s)

    def _is_long(self, cost_ns: int) -> bool:
        return self._look_ahead_ns <= cost_ns <= LONGEST * self._look_ahead_ns

    def outstanding_s(self, device: int) -> float:
        """Return the work outstanding on a device, in seconds of cost."""
        return float(self._outstanding_ns[device]) * 1e-9 if device < len(self._outstanding_ns) else 0.0
