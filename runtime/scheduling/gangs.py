"""Gangs: sharded computations that run on all of their devices at once, or on none."""

import math
from dataclasses import dataclass

from runtime.scheduling.errors import InvalidGangError

MAX_COST_S = 1e6
"""Bounds the cost of a gang, so that sums of costs stay exact in integer nanoseconds."""


@dataclass(frozen=True, slots=True)
class GangRequest:
    """One computation of one program, to be run by a gang of devices.

    Attributes:
        number: The order of arrival over all clients and islands.
        client: Whose account pays.
        devices: The physical devices, by number.
        cost_s: How long each device is expected to be occupied.
        need_s: When the result is needed, on the clock of the scheduler; None where no time is known.
        after: Gangs with smaller numbers whose results this one takes, whatever their island. It is granted after they
            are; it does not wait for them to complete.

    Raises:
        InvalidGangError: A field is out of range.
    """

    number: int
    client: str
    devices: frozenset[int] | range
    cost_s: float
    need_s: float | None = None
    after: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not self.devices:
            raise InvalidGangError(f"gang {self.number}: devices: must name at least one device")
        if not 0 < self.cost_s <= MAX_COST_S:
            raise InvalidGangError(
                f"gang {self.number}: cost_s: must lie above 0 and at most {MAX_COST_S:g}, not {self.cost_s}"
            )
        if self.need_s is not None and not math.isfinite(self.need_s):
            raise InvalidGangError(f"gang {self.number}: need_s: must be finite, not {self.need_s}")
        for earlier in self.after:
            if earlier >= self.number:
                raise InvalidGangError(f"gang {self.number}: after: gang {earlier} does not come before it")

    @property
    def latest_start_s(self) -> float:
        """When it must start so that its result comes as it is needed; infinity where no time is known.

        The slack at a time t is ``latest_start_s - t``, so gangs ordered by latest start are ordered by slack.
        """
        return math.inf if self.need_s is None else self.need_s - self.cost_s


@dataclass(frozen=True, slots=True)
class Grant:
    """Leave to enqueue a gang.

    Attributes:
        order: The position in the order of the island, counted from 0. Every device runs its gangs in this order.
        number: The gang.
    """

    order: int
    number: int
